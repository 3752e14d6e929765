/** Memory of another process, as Linux tells it. */
import { readFile } from 'node:fs/promises'

/** Resident set of a process now, in bytes. proc(5), `VmRSS`. */
export const residentBytes = (pid: number): Promise<number> => field(pid, 'VmRSS')

/** Highest resident set of a process so far, in bytes. proc(5), `VmHWM`. */
export const residentPeakBytes = (pid: number): Promise<number> => field(pid, 'VmHWM')

async function field(pid: number, name: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${name}`)
  return Number(kilobytes) * 1_024
}
