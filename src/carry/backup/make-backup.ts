/**
 * Makes a backup of a data folder, with or without a running service.
 *
 * 1. `VACUUM INTO` writes a consistent snapshot of the database without blocking the writer. (SQLite's online backup
 *    restarts at each write of another connection: under 200 messages a second it did not finish.)
 * 2. The snapshot names its blobs. A blob never changes once it has its name, so a hard link is as good as a copy; on
 *    another file system it is copied. The service removes none meanwhile (`BlobStore.hold`).
 * 3. The secret is written if requested, then the manifest with a checksum of each file.
 *
 * Everything is synced before the manifest is written. A failed backup leaves no files.
 */
import { constants } from 'node:fs'
import { chmod, copyFile, link, mkdir, readdir, realpath, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { blobPath } from '../../platform/store/blobs/blobs.ts'
import { BLOB_FOLDER, DATABASE_FILE, SECRET_FILE } from '../../platform/store/blobs/data-folder.ts'
import {
  BackupError,
  type BackupFile,
  counter,
  type Manifest,
  type OnProgress,
  readManifest,
  sha256Of,
  syncPath,
  writeManifest,
  writeSynced,
} from './manifest.ts'
import { namedBlobs } from './named-blobs.ts'

export interface BackupRequest {
  dataFolder: string
  /** Must not exist, or be empty. */
  target: string
  /** Included in the backup; null: not included. */
  secret: string | null
  version: string
}

/** @throws BackupError; the target is then left as it was */
export async function makeBackup(request: BackupRequest, onProgress: OnProgress): Promise<Manifest> {
  const { dataFolder, target } = request
  const existed = await prepareTarget(dataFolder, target)
  try {
    return await fill(request, onProgress)
  } catch (error) {
    for (const name of await readdir(target)) await rm(join(target, name), { recursive: true, force: true })
    if (!existed) await rm(target, { recursive: true, force: true })
    throw error
  }
}

/** Resolves to whether the target existed. */
async function prepareTarget(dataFolder: string, target: string): Promise<boolean> {
  const entries = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new BackupError(`Cannot write to "${target}": ${error.message}`, { cause: error })
  })
  if (entries !== null && entries.length > 0)
    throw new BackupError(`Cannot back up to "${target}": the folder is not empty`)
  await mkdir(target, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new BackupError(`Cannot make "${target}": ${error.message}`, { cause: error })
  })
  const path = relative(await realpath(dataFolder), await realpath(target))
  if (path === '' || (!path.startsWith('..') && !path.startsWith('/'))) {
    if (entries === null) await rm(target, { recursive: true })
    throw new BackupError(`Cannot back up to "${target}": it lies within the data folder`)
  }
  return entries !== null
}

async function fill({ dataFolder, target, secret, version }: BackupRequest, onProgress: OnProgress) {
  const madeAt = new Date().toISOString()
  const copy = join(target, DATABASE_FILE)
  await copyDatabase(join(dataFolder, DATABASE_FILE), copy, onProgress)
  const { facts, blobs } = readCopy(copy)
  const { sizes, missing } = await copyBlobs(
    join(dataFolder, BLOB_FOLDER),
    join(target, BLOB_FOLDER),
    blobs,
    onProgress,
  )
  if (secret !== null) await writeSynced(join(target, SECRET_FILE), `${secret}\n`)
  const paths = [DATABASE_FILE, ...(secret === null ? [] : [SECRET_FILE])]
  paths.push(...[...sizes.keys()].map((name) => join(BLOB_FOLDER, name)))
  await writeManifest(target, {
    madeAt,
    version,
    schemaVersion: facts.schemaVersion,
    withSecret: secret !== null,
    counts: { ...facts.counts, blobs: sizes.size },
    missingBlobs: missing,
    files: await describeFiles(target, paths, onProgress),
  })
  return readManifest(target)
}

async function copyDatabase(source: string, copy: string, onProgress: OnProgress): Promise<void> {
  // VACUUM INTO writes into an existing empty file, which keeps its mode.
  await writeSynced(copy, '')
  const database = new DatabaseSync(source, { timeout: BUSY_MS })
  try {
    const size = database
      .prepare(
        `SELECT (page_count - freelist_count) * page_size AS bytes
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
      )
      .get()
    const bytes = Number(size?.['bytes'])
    await checkSpace(dirname(copy), bytes)
    onProgress({ step: 'database', doneBytes: 0, totalBytes: bytes })
    // Applies to the copy: a restored database can release space to the disk, even if the original could not.
    database.exec('PRAGMA auto_vacuum = INCREMENTAL')
    database.prepare('VACUUM INTO ?').run(copy)
    onProgress({ step: 'database', doneBytes: bytes, totalBytes: bytes })
  } catch (error) {
    if (error instanceof BackupError) throw error
    throw new BackupError(`Cannot copy the database "${source}": ${(error as Error).message}`, {
      cause: error,
    })
  } finally {
    database.close()
  }
  await syncPath(copy)
}

/** Long enough for a checkpoint that holds the log. */
const BUSY_MS = 10_000

async function checkSpace(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize >= bytes) return
  const megabytes = (count: number) => `${Math.ceil(count / 1024 / 1024)} MB`
  throw new BackupError(
    `Cannot back up to "${folder}": ${megabytes(bytes)} are needed, ${megabytes(bavail * bsize)} are free`,
  )
}

function readCopy(file: string) {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const number = (sql: string) => Number(Object.values(database.prepare(sql).get() ?? {})[0] ?? 0)
    const count = (from: string) => number(`SELECT count(*) FROM ${from}`)
    return {
      facts: {
        schemaVersion: number('SELECT max(version) FROM schema_versions'),
        counts: {
          messages: count('messages'),
          waiting: count("deliveries WHERE state IN ('scheduled', 'queued', 'sending')"),
          events: count('events'),
          domains: count('domains'),
        },
      },
      blobs: new Set(namedBlobs(database)),
    }
  } finally {
    database.close()
  }
}

/** Resolves to the sizes of the copied blobs, and the names of missing ones. */
async function copyBlobs(from: string, to: string, names: ReadonlySet<string>, onProgress: OnProgress) {
  const sizes = new Map<string, number>()
  const missing: string[] = []
  for (const name of names) {
    const found = await stat(join(from, blobPath(name))).catch(() => null)
    if (found) sizes.set(name, found.size)
    else missing.push(name)
  }
  const count = counter('blobs', sumOf(sizes.values()), onProgress)
  await mkdir(to, { mode: 0o700 })
  for (const [name, sizeBytes] of sizes) {
    await linkOrCopy(join(from, blobPath(name)), join(to, name), sizeBytes)
    count(sizeBytes)
  }
  // A single folder needs a single sync: each sync delays the service's commits.
  await syncPath(to)
  return { sizes, missing }
}

const sumOf = (sizes: Iterable<number>) => [...sizes].reduce((sum, size) => sum + size, 0)

/** Errors of file systems that do not support links, not to this target, or no more for this file. */
const NO_LINK = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EACCES'])

async function linkOrCopy(from: string, to: string, sizeBytes: number): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!NO_LINK.has((error as NodeJS.ErrnoException).code ?? '')) throw error
    await checkSpace(dirname(to), sizeBytes)
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    await chmod(to, 0o600)
    await syncPath(to)
  }
}

async function describeFiles(
  folder: string,
  paths: readonly string[],
  onProgress: OnProgress,
): Promise<BackupFile[]> {
  const sizes = await Promise.all(paths.map(async (path) => (await stat(join(folder, path))).size))
  const count = counter('checksums', sumOf(sizes), onProgress)
  const files: BackupFile[] = []
  for (const [at, path] of paths.entries())
    files.push({
      path,
      sizeBytes: sizes[at] as number,
      sha256: await sha256Of(join(folder, path), count),
    })
  return files
}
