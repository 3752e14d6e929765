/** Restores a backup into an empty data folder. */
import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { blobPath } from '../../platform/store/blobs/blobs.ts'
import { BLOB_FOLDER, RESTORING_FILE } from '../../platform/store/blobs/data-folder.ts'
import { BackupError, counter, type OnProgress, sha256Of, syncPath, writeSynced } from './manifest.ts'
import { type Verdict, verifyBackup } from './verify.ts'

/** @throws BackupError if the backup has faults, or the data folder is not empty; then nothing is written */
export async function restoreBackup(
  folder: string,
  dataFolder: string,
  onProgress: OnProgress,
): Promise<Verdict> {
  const entries = await readdir(dataFolder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (entries.length > 0)
    throw new BackupError(
      `Cannot restore into "${dataFolder}": the folder is not empty; move what is in it away`,
    )
  const verdict = await verifyBackup(folder, onProgress)
  if (verdict.faults.length > 0)
    throw new BackupError(`Cannot restore from "${folder}": ${verdict.faults.join(' ')}`)
  await mkdir(dataFolder, { recursive: true, mode: 0o700 })
  // The service refuses to start on a folder that has this file (data-folder.ts).
  await writeSynced(join(dataFolder, RESTORING_FILE), `${folder}\n`)
  await copyFiles(folder, dataFolder, verdict, onProgress)
  await rm(join(dataFolder, RESTORING_FILE))
  await syncPath(dataFolder)
  return verdict
}

/** Path in the data folder; in a backup all blobs are in one folder. */
function targetPath(path: string): string {
  const [folder, name] = path.split('/')
  return folder === BLOB_FOLDER && name !== undefined ? join(BLOB_FOLDER, blobPath(name)) : path
}

async function copyFiles(
  folder: string,
  dataFolder: string,
  { manifest: { files } }: Verdict,
  onProgress: OnProgress,
): Promise<void> {
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const count = counter('files', totalBytes, onProgress)
  const folders = new Set([dataFolder])
  for (const { path, sha256 } of files) {
    const target = join(dataFolder, targetPath(path))
    for (let at = dirname(target); !folders.has(at); at = dirname(at)) folders.add(at)
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    await copyFile(join(folder, path), target, constants.COPYFILE_EXCL)
    await chmod(target, 0o600)
    await syncPath(target)
    if ((await sha256Of(target, count)) !== sha256)
      throw new BackupError(`Cannot restore: ${path} changed on its way; is the disk sound?`)
  }
  for (const created of folders) await syncPath(created)
}
