/**
 * CPU time and memory of a system, which may be many processes, from /proc (proc(5)).
 *
 * A system is one or more root processes with their descendants. CPU time is `utime` + `stime` of those that run, plus
 * `cutime` + `cstime`, which a parent inherits from each child that it has waited for. So Postfix's short-lived
 * processes count too, since all of them are children of its master. The clock ticks 100 times a second per
 * process. cgroups would give the same figures, but are not available everywhere.
 */
import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100 // USER_HZ, fixed in Linux's interface
const SAMPLE_EVERY_MS = 1_000

interface ProcessTimes {
  pid: number
  parent: number
  name: string
  ticks: number
}

function readStat(pid: number): ProcessTimes | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null // it has ended
  }
  const nameEnd = text.lastIndexOf(')')
  const fields = text.slice(nameEnd + 2).split(' ')
  // From field 3 on: state, ppid; utime, stime, cutime, cstime are fields 14 to 17.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return { pid, parent: Number(fields[1]), name: text.slice(text.indexOf('(') + 1, nameEnd), ticks }
}

/** The roots and their descendants. */
export function processTree(roots: readonly number[]): ProcessTimes[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])
  const children = Map.groupBy(all, ({ parent }) => parent)
  const found = new Map(all.filter(({ pid }) => roots.includes(pid)).map((entry) => [entry.pid, entry]))
  for (const { pid } of found.values())
    for (const child of children.get(pid) ?? []) found.set(child.pid, child)
  return [...found.values()]
}

/** Seconds of CPU that the trees have used so far, user and system, with children that were waited for. */
export const cpuSeconds = (roots: readonly number[]): number =>
  processTree(roots).reduce((sum, { ticks }) => sum + ticks, 0) / TICKS_PER_SECOND

export interface Memory {
  rssMb: number
  /** Shared pages are divided among their users, so that a sum over processes is right. */
  pssMb: number
}

export function memoryOf(roots: readonly number[]): Memory {
  let rss = 0
  let pss = 0
  for (const { pid } of processTree(roots)) {
    let text = ''
    try {
      text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
    } catch {
      continue // ended, or not ours to see
    }
    rss += Number(/^Rss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
    pss += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
  }
  return { rssMb: rss / 1024, pssMb: pss / 1024 }
}

/** Samples once a second, which takes one percent of a core; `stop` returns the highest values. */
export function watchMemory(roots: readonly number[]): { stop(): Memory } {
  let peak: Memory = { rssMb: 0, pssMb: 0 }
  const look = () => {
    const now = memoryOf(roots)
    peak = { rssMb: Math.max(peak.rssMb, now.rssMb), pssMb: Math.max(peak.pssMb, now.pssMb) }
  }
  const timer = setInterval(look, SAMPLE_EVERY_MS)
  look()
  return {
    stop() {
      clearInterval(timer)
      look()
      return peak
    },
  }
}
