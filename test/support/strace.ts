/** Traces the system calls of a running process with strace, or makes them fail. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

export const hasStrace = (): boolean => spawnSync('strace', ['-V']).status === 0

export interface Strace {
  /** Detaches from the process. */
  detach(): Promise<void>
}

/** Attaches to all threads of `pid` and resolves once it has. @throws when that is not permitted */
export async function attachStrace(pid: number, args: readonly string[]): Promise<Strace> {
  const child: ChildProcess = spawn('strace', ['-f', '-p', String(pid), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (bytes: Buffer) => {
      said += bytes.toString()
      if (/attached/.test(said)) resolve()
    })
    child.once('exit', () => reject(new Error(`strace ended: ${said}`)))
  })
  return {
    async detach() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGINT')
      await ended
    },
  }
}
