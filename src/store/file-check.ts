/**
 * Looks for damage in a database file by a process of its own, which can be ended at any time: SQLite's check of a large
 * file cannot be interrupted from the thread that runs it, and would hold up a stop.
 */
import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Finding } from './damage.ts'

export interface FileCheck {
  /** Never rejects. `complete`: it came to its end in time. */
  result: Promise<{ findings: Finding[]; complete: boolean }>
  stop(): void
}

/**
 * 1.2 GB a second from memory; from a slow disk the check sees a part only. While a large table is looked at the log cannot
 * begin anew, and grows by all that is written.
 */
const LIMIT_MS = 20_000
/** Of `nice`: behind everything else. */
const LOWEST_PRIORITY = 19

export function checkFileBeside(
  file: string,
  pragma: 'quick_check' | 'integrity_check' = 'quick_check',
  limitMs = LIMIT_MS,
): FileCheck {
  const program = join(import.meta.dirname, 'file-check-process.ts')
  const child = spawn(process.execPath, [program, file, pragma], { stdio: ['ignore', 'pipe', 'ignore'] })
  const stop = () => void child.kill('SIGKILL')
  const timer = setTimeout(stop, limitMs)
  timer.unref()
  const findings: Finding[] = []
  createInterface(child.stdout).on('line', (line) => void findings.push(JSON.parse(line) as Finding))
  const result = new Promise<{ findings: Finding[]; complete: boolean }>((resolve) => {
    const end = (complete: boolean) => {
      clearTimeout(timer)
      resolve({ findings, complete })
    }
    child.once('error', () => end(false))
    child.once('close', (code) => end(code === 0))
  })
  try {
    if (child.pid !== undefined) setPriority(child.pid, LOWEST_PRIORITY)
  } catch {
    // It is gone already, or the system does not allow it.
  }
  return { result, stop }
}
