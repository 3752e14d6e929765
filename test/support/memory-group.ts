/**
 * A control group with a memory limit, version 1 or 2: the kernel kills a process that exceeds it, as in a container or on
 * a small machine. Only root may create one, and not everywhere.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = '/sys/fs/cgroup'
/** Version 1 has a separate hierarchy for memory. */
const isFirst = existsSync(join(ROOT, 'memory/memory.limit_in_bytes'))

export interface MemoryGroup {
  folder: string
  /** Highest use so far, files in the page cache included, in bytes. */
  peakBytes(): number
  /** Processes killed for lack of memory. */
  kills(): number
  remove(): void
}

let made = 0

/** Null where it cannot be created. */
export function makeMemoryGroup(limitBytes: number): MemoryGroup | null {
  const name = `sendwright-${process.pid}-${++made}`
  const folder = join(ROOT, isFirst ? 'memory' : '', name)
  try {
    mkdirSync(folder)
    writeFileSync(join(folder, isFirst ? 'memory.limit_in_bytes' : 'memory.max'), String(limitBytes))
  } catch {
    if (existsSync(folder)) rmdirSync(folder)
    return null
  }
  const read = (file: string) => readFileSync(join(folder, file), 'utf8')
  return {
    folder,
    peakBytes: () => Number(read(isFirst ? 'memory.max_usage_in_bytes' : 'memory.peak')),
    kills: () =>
      Number(/^oom_kill (\d+)$/m.exec(read(isFirst ? 'memory.oom_control' : 'memory.events'))?.[1] ?? 0),
    remove: () => rmdirSync(folder),
  }
}

/** `command` in the group from its start: V8 and the launcher derive their limits from it. */
export const withinGroup = (folder: string, command: readonly string[]): string[] => [
  '/bin/sh',
  ...['-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder],
  ...command,
]
