/** File names within the data folder, for code that copies it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StoreUnavailable } from '../store.ts'

export const DATABASE_FILE = 'sendwright.db'
export const BLOB_FOLDER = 'blobs'
export const SECRET_FILE = 'secret'
/** Stands in a folder while a backup is restored into it. */
export const RESTORING_FILE = 'restoring'

/** @throws StoreUnavailable after an interrupted restore: a start would create a new, empty database there. */
export function refuseHalfRestored(folder: string): void {
  if (!existsSync(join(folder, RESTORING_FILE))) return
  throw new StoreUnavailable(
    `Cannot open data folder "${folder}": a restore into it did not end. Empty the folder and restore again.`,
  )
}
