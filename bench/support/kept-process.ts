/**
 * A program that never outlives this process: a small shell supervises it and kills it when our end of a pipe
 * closes, which happens however we end. Its output goes to a file, so that reading it costs no time.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { within } from './rig.ts'

// Descriptor 3 reports the program's process id, 4 closes when we end. The shell exits with the program's status.
const KEEPER = `
"$@" </dev/null 3>&- 4>&- &
program=$!
(cat <&4 3>&-; kill -KILL "$program") >/dev/null 2>&1 &
echo "$program" >&3
exec 3>&- 4>&-
wait "$program"
exit $?
`

export interface KeptProcess {
  readonly pid: number
  isRunning(): boolean
  /** The end of its output. */
  output(): string
  /** Sends the signal, and SIGKILL if it still runs after `limitMs`. */
  end(signal: NodeJS.Signals, limitMs?: number): Promise<void>
}

const START_LIMIT_MS = 120_000
const END_LIMIT_MS = 30_000
const OUTPUT_SHOWN_CHARS = 4_000

export async function startKept(
  command: readonly string[],
  options: { env: NodeJS.ProcessEnv; cwd: string; outputFile: string },
): Promise<KeptProcess> {
  const output = openSync(options.outputFile, 'a')
  const keeper = spawn('/bin/sh', ['-c', KEEPER, 'keeper', ...command], {
    cwd: options.cwd,
    env: options.env,
    detached: true, // Ctrl-C reaches only us: we stop it in an orderly way
    stdio: ['ignore', output, output, 'pipe', 'pipe'],
  })
  closeSync(output)
  const [, , , pidPipe, holdPipe] = keeper.stdio as unknown as Socket[]
  holdPipe?.on('error', () => {})
  let running = true
  const ended = new Promise<void>((resolve) => {
    keeper.once('exit', () => {
      running = false
      holdPipe?.destroy()
      resolve()
    })
    keeper.once('error', () => resolve())
  })
  const [line] = (await within(
    START_LIMIT_MS,
    `start of ${command[0]}`,
    once(pidPipe as Socket, 'data'),
  )) as [Buffer]
  const pid = Number(line.toString())
  const signalProgram = (signal: NodeJS.Signals) => {
    try {
      process.kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  return {
    pid,
    isRunning: () => running,
    output: () => readFileSync(options.outputFile, 'utf8').slice(-OUTPUT_SHOWN_CHARS),
    async end(signal, limitMs = END_LIMIT_MS) {
      if (!running) return
      signalProgram(signal)
      await within(limitMs, `end of ${command[0]}`, ended).catch(async () => {
        if (running) signalProgram('SIGKILL')
        await within(END_LIMIT_MS, `end of ${command[0]} by SIGKILL`, ended)
      })
    },
  }
}
