import type { ChildProcess } from 'node:child_process'

/** Kills a process started with `detached: true` and its process group; does nothing if they have ended. */
export function killGroup(leader: ChildProcess): void {
  try {
    if (leader.pid !== undefined) process.kill(-leader.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
