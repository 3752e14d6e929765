/** Verifies that a backup is complete and usable. Reads only. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { BLOB_FOLDER, DATABASE_FILE, SECRET_FILE } from '../../platform/store/blobs/data-folder.ts'
import { SECRET_MARK } from '../../platform/store/installation.ts'
import { readMigrations } from '../../platform/store/migrate.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { counter, type Manifest, type OnProgress, readManifest, sha256Of } from './manifest.ts'
import { namedBlobs } from './named-blobs.ts'

export interface Verdict {
  manifest: Manifest
  /** Why the backup cannot be restored, one sentence each. Empty: it is intact. */
  faults: string[]
  /** What to know before restoring it. */
  warnings: string[]
}

/** @throws BackupError without a manifest */
export async function verifyBackup(folder: string, onProgress: OnProgress): Promise<Verdict> {
  const manifest = await readManifest(folder)
  const faults = await checkFiles(folder, manifest, onProgress)
  const warnings = manifest.withSecret
    ? []
    : [
        'The secret is not in it: what it seals (DKIM keys, signing keys, links in sent mail) is lost without it.',
      ]
  if (manifest.missingBlobs.length > 0) {
    warnings.push(
      `${manifest.missingBlobs.length} large bodies or attachments were lost before this backup was made.`,
    )
  }
  const newest = readMigrations('sqlite').at(-1)?.version ?? 0
  if (manifest.schemaVersion > newest)
    warnings.push(
      `It needs a newer Sendwright: this one knows schema ${newest}, it has ${manifest.schemaVersion}.`,
    )
  if (faults.length === 0) faults.push(...(await checkContents(folder, manifest, onProgress)))
  return { manifest, faults, warnings }
}

async function checkFiles(folder: string, { files }: Manifest, onProgress: OnProgress): Promise<string[]> {
  const faults: string[] = []
  const count = counter(
    'checksums',
    files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    onProgress,
  )
  for (const { path, sizeBytes, sha256 } of files) {
    const file = join(folder, path)
    const size = await stat(file).then(
      (found) => found.size,
      () => null,
    )
    if (size === null) faults.push(`${path} is missing.`)
    else if (size !== sizeBytes) faults.push(`${path} has ${size} bytes instead of ${sizeBytes}.`)
    else if ((await sha256Of(file, count)) !== sha256) faults.push(`${path} was changed.`)
  }
  return faults
}

async function checkContents(
  folder: string,
  { files, missingBlobs }: Manifest,
  onProgress: OnProgress,
): Promise<string[]> {
  const faults: string[] = []
  onProgress({ step: 'integrity', doneBytes: 0, totalBytes: 0 })
  const database = new DatabaseSync(join(folder, DATABASE_FILE), { readOnly: true })
  try {
    const [row] = database.prepare('PRAGMA integrity_check(1)').all()
    const integrity = String(row?.['integrity_check'])
    if (integrity !== 'ok') faults.push(`The database is damaged: ${integrity}.`)
    const present = new Set([...files.map(({ path }) => path)])
    const lost = new Set(missingBlobs)
    for (const name of namedBlobs(database)) {
      const path = join(BLOB_FOLDER, name)
      if (!present.has(path) && !lost.has(name))
        faults.push(`${path} is named by a row and not in the backup.`)
    }
    if (present.has(SECRET_FILE)) {
      const secret = (await readFile(join(folder, SECRET_FILE), 'utf8')).trim()
      const mark = database.prepare('SELECT value FROM installation WHERE name = ?').get(SECRET_MARK)
      if (mark && !opens(secret, mark['value'] as Uint8Array))
        faults.push('The secret in it does not open what the database has sealed.')
    }
  } finally {
    database.close()
  }
  return faults
}

function opens(secret: string, sealed: Uint8Array): boolean {
  try {
    createSealer(secret).open(SECRET_MARK, sealed)
    return true
  } catch {
    return false
  }
}
