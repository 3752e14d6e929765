/** Runs a backup in a separate process: copying a database cannot be interrupted from the thread that runs it. */
import { spawn } from 'node:child_process'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { BackupLine } from './backup-process.ts'
import type { BackupRequest } from './make-backup.ts'
import { BackupError, type OnProgress } from './manifest.ts'

export type BackupSummary = Extract<BackupLine, { manifest: unknown }>['manifest']

export interface RunningBackup {
  /** Rejects with a BackupError if the request or the folder is at fault. */
  result: Promise<BackupSummary>
  /** Kills the process; the files written so far are no backup, as there is no manifest. */
  stop(): void
}

/** As a `nice` value: lower than the service's priority. */
const LOW_PRIORITY = 10

export function runBackup(request: BackupRequest, onProgress: OnProgress): RunningBackup {
  const program = join(import.meta.dirname, 'backup-process.ts')
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    if (child.pid !== undefined) setPriority(child.pid, LOW_PRIORITY)
  } catch {
    // The process has ended already, or the system does not allow it.
  }
  let outcome: Exclude<BackupLine, { progress: unknown }> | null = null
  createInterface(child.stdout).on('line', (text) => {
    const line = JSON.parse(text) as BackupLine
    if ('progress' in line) onProgress(line.progress)
    else outcome = line
  })
  const result = new Promise<BackupSummary>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => {
      if (outcome === null) reject(new BackupError('The backup was cut off'))
      else if ('manifest' in outcome) resolve(outcome.manifest)
      else reject(outcome.expected ? new BackupError(outcome.error) : new Error(outcome.error))
    })
  })
  child.stdin.on('error', () => {
    // The process ended before it read its input; `close` reports that.
  })
  child.stdin.end(JSON.stringify(request))
  return { result, stop: () => void child.kill('SIGKILL') }
}
