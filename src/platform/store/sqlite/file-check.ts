/**
 * Checks a database file for damage in a separate process, which can be killed at any time: SQLite's check of a large
 * file cannot be interrupted from the thread that runs it, and would delay a stop of the service.
 */
import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Finding } from './damage.ts'

interface FileCheck {
  /** Never rejects. `complete`: the whole file was checked within the time limit. */
  result: Promise<{ findings: Finding[]; complete: boolean }>
  stop(): void
}

/**
 * 1.2 GB a second from memory; on a slow disk this covers only a part of the file. While a large table is checked the log
 * cannot restart, and grows with every write.
 */
const LIMIT_MS = 20_000
/** As a `nice` value. */
const LOWEST_PRIORITY = 19

export function startFileCheck(
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
    // The process has ended already, or the system does not allow it.
  }
  return { result, stop }
}
