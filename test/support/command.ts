/** The command line as a separate process. */
import { execFile } from 'node:child_process'
import { COMPILE_CACHE, MAIN } from './program.ts'

export interface CommandResult {
  code: number
  out: string
  err: string
}

/** No settings; compiled sources are shared with the processes of the service (service-process.ts). */
export const commandEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: COMPILE_CACHE,
})

/** Runs `sendwright ARGS` with only the settings in `env`, and resolves when it ends. */
export function runCommand(env: Record<string, string>, ...args: string[]): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { env: { ...commandEnvironment(), ...env } }
    execFile(process.execPath, [MAIN, ...args], options, (error, out, err) => {
      const code = typeof error?.code === 'number' ? error.code : error ? -1 : 0
      resolve({ code, out, err })
    })
  })
}
