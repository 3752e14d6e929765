/** Memory of a process: another one's as Linux reports it, our own after a garbage collection. */
import { readFile } from 'node:fs/promises'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * What JavaScript holds after a garbage collection, in megabytes: its heap and the buffers outside. The resident set also
 * has pages that were freed and not returned.
 */
export function heldMb(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

/** Our own resident set after a garbage collection, in megabytes. */
export function collectedMb(): number {
  collectGarbage()
  return process.memoryUsage().rss / 2 ** 20
}

/**
 * Megabytes that `run` adds to the old generation of our heap: objects that outlived the collections of the young
 * generation, dead or alive. Earlier objects are in the old generation already.
 */
export function grownOldMb(run: () => void): number {
  // The second one promotes an object.
  collectGarbage()
  collectGarbage()
  const before = oldMb()
  run()
  return oldMb() - before
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

const oldMb = () =>
  (getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0) /
  2 ** 20

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

/** Processor time used by a process so far, all threads together. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name before it may contain blanks; utime and stime are fields 14 and 15 (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** USER_HZ, which is 100 on every Linux. */
const TICKS_PER_SECOND = 100
