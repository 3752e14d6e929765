/**
 * Makes one backup. Reads the request as JSON from standard input (it may contain the secret, and every user can read
 * command lines); writes progress and result as lines of JSON to standard output.
 */
import { text } from 'node:stream/consumers'
import { type BackupRequest, makeBackup } from './make-backup.ts'
import { BackupError, type Manifest, type Progress } from './manifest.ts'

export type BackupLine =
  | { progress: Progress }
  | { manifest: Omit<Manifest, 'files'> & { sizeBytes: number } }
  | { error: string; expected: boolean }

if (import.meta.main) {
  // Whoever asked for the backup is gone: without a manifest it is none.
  process.stdout.on('error', () => process.exit(1))
  const write = (line: BackupLine) => process.stdout.write(`${JSON.stringify(line)}\n`)
  const request = JSON.parse(await text(process.stdin)) as BackupRequest
  try {
    const { files, ...manifest } = await makeBackup(request, (progress) => write({ progress }))
    const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
    write({ manifest: { ...manifest, sizeBytes } })
  } catch (error) {
    const { message, stack } = error as Error
    const expected = error instanceof BackupError
    write({ error: expected ? message : (stack ?? message), expected })
  }
}
