/** The command line as a process of its own. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'

export interface CommandResult {
  code: number
  out: string
  err: string
}

/** Runs `sendwright ARGS` with the settings in `env` and nothing else, and resolves when it ends. */
export function runCommand(env: Record<string, string>, ...args: string[]): Promise<CommandResult> {
  const main = join(import.meta.dirname, '../../src/main.ts')
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env['PATH'], ...env } }
    execFile(process.execPath, [main, ...args], options, (error, out, err) => {
      const code = typeof error?.code === 'number' ? error.code : error ? -1 : 0
      resolve({ code, out, err })
    })
  })
}
