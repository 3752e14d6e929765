/**
 * Makes one backup: the request as JSON on standard input (it may hold the secret, which command lines show to
 * everybody), progress and result as lines of JSON on standard output.
 */
import { text } from 'node:stream/consumers'
import { type BackupRequest, makeBackup } from './make-backup.ts'
import { BackupError, type Manifest, type Progress } from './manifest.ts'

export type BackupLine =
  | { progress: Progress }
  | { manifest: Omit<Manifest, 'files'> & { sizeBytes: number } }
  | { error: string; expected: boolean }

if (import.meta.main) {
  const tell = (line: BackupLine) => process.stdout.write(`${JSON.stringify(line)}\n`)
  const request = JSON.parse(await text(process.stdin)) as BackupRequest
  try {
    const { files, ...manifest } = await makeBackup(request, (progress) => tell({ progress }))
    const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
    tell({ manifest: { ...manifest, sizeBytes } })
  } catch (error) {
    const { message, stack } = error as Error
    const expected = error instanceof BackupError
    tell({ error: expected ? message : (stack ?? message), expected })
  }
}
