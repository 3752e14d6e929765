/** Processor time of processes, from Linux's /proc; elsewhere there is none to be had. */
import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, a fixed part of the kernel's interface. */
const TICKS_PER_SECOND = 100

/**
 * Milliseconds that a process, its descendants and those of them that have ended and been waited for have used, by user and
 * kernel together. 0 where the system does not tell.
 */
export function treeProcessorMs(root: number): number {
  const processes = new Map<number, { parent: number; ticks: number }>()
  for (const name of listProcesses()) {
    const found = readProcess(name)
    if (found) processes.set(Number(name), found)
  }
  const isWithin = (id: number): boolean => {
    if (id === root) return true
    const parent = processes.get(id)?.parent
    return parent !== undefined && parent !== id && isWithin(parent)
  }
  let ticks = 0
  for (const [id, process] of processes) if (isWithin(id)) ticks += process.ticks
  return (ticks * 1_000) / TICKS_PER_SECOND
}

function listProcesses(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

/** Undefined if it has ended. The name, in brackets, may hold anything: proc_pid_stat(5), fields 4 and 14 to 17. */
function readProcess(id: string): { parent: number; ticks: number } | undefined {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [user = 0, kernel = 0, childrenUser = 0, childrenKernel = 0] = fields.slice(11, 15)
    return { parent: fields[1] ?? 0, ticks: user + kernel + childrenUser + childrenKernel }
  } catch {
    return undefined
  }
}
