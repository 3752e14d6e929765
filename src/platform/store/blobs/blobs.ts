/**
 * Bytes too large for a database row. A blob has one owner (a message or a captured mail) and is removed with it,
 * so there is nothing to reference-count or collect. The bytes are written to a spool file and synced before the file
 * is moved to its final path: a name in the database always has its bytes.
 */
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ID_PATTERN, newId } from '../../../base/ids.ts'
import { noteSpent } from '../../../base/process/spent-buffers.ts'
import type { LazyChunk } from '../../../protocols/message/mime-message.ts'
import { StoreFull } from '../store.ts'
import { BLOB_FOLDER } from './data-folder.ts'

/** A blob whose bytes are written: either kept, which gives it a name, or discarded. */
export interface SpooledBlob {
  readonly chunk: LazyChunk
  /** Removes the bytes, kept or not. */
  discard(): Promise<void>
}

export type BlobStore = Awaited<ReturnType<typeof openBlobs>>

/** Path of a blob below the blob folder. Characters near the end are random, so they spread the files over about 4,000 folders. */
export function blobPath(name: string): string {
  if (!ID_PATTERN.test(name)) throw new RangeError(`"${name}" is not a blob name`)
  return join(name.slice(-3, -1), name)
}

/** Opens the blob folder below `folder` and removes spool files of an earlier run. */
export async function openBlobs(folder: string) {
  const spoolFolder = join(folder, 'spool')
  const blobFolder = join(folder, BLOB_FOLDER)
  await mkdir(spoolFolder, { recursive: true, mode: 0o700 })
  await mkdir(blobFolder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(spoolFolder)) await rm(join(spoolFolder, name), { force: true })

  const pathOf = (name: string) => join(blobFolder, blobPath(name))
  let holds = 0
  /** Blobs to remove once the last hold is released. */
  let deferredRemovals: string[] = []
  /** Current file of each spooled chunk. */
  const spooled = new WeakMap<LazyChunk, { name: string; file: string }>()
  return {
    /** Writes and syncs the bytes. @throws StoreFull */
    async spool(content: AsyncIterable<Uint8Array>): Promise<SpooledBlob> {
      const name = newId()
      const file = join(spoolFolder, name)
      const sizeBytes = await writeFileSynced(file, content)
      const blob = { name, file }
      const chunk = chunkOf(() => blob.file, 0, sizeBytes)
      spooled.set(chunk, blob)
      return { chunk, discard: () => rm(blob.file, { force: true }) }
    },
    /** Moves the bytes of a chunk returned by `spool` to their final path; resolves to the blob's name. */
    async keep(chunk: LazyChunk): Promise<string> {
      const blob = spooled.get(chunk)
      if (!blob) throw new TypeError('Cannot keep a chunk that was not spooled here')
      const target = pathOf(blob.name)
      if (blob.file !== target) {
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await rename(blob.file, target)
        blob.file = target
        await syncFolder(dirname(target))
        await syncFolder(blobFolder)
      }
      return blob.name
    },
    /** @throws when no blob has that name */
    async read(name: string): Promise<LazyChunk> {
      const file = pathOf(name)
      const { size } = await stat(file)
      return chunkOf(() => file, 0, size)
    },
    async remove(name: string): Promise<void> {
      const file = pathOf(name)
      if (holds > 0) deferredRemovals.push(name)
      else await rm(file, { force: true })
    },
    /**
     * Defers all removals until the returned function is called: a copy of the database may still name the blobs.
     * After a crash, blobs whose removal was deferred stay on the disk.
     */
    hold(): () => Promise<void> {
      holds++
      let released = false
      return async () => {
        if (released) return
        released = true
        holds--
        if (holds > 0) return
        const names = deferredRemovals
        deferredRemovals = []
        for (const name of names) await rm(pathOf(name), { force: true })
      }
    },
  }
}

/** Bytes `start` (inclusive) to `end` (exclusive) of a file, which may move between reads. */
export function chunkOf(currentFile: () => string, start: number, end: number): LazyChunk {
  return {
    sizeBytes: end - start,
    open: () => scanFile(currentFile(), start, end, false),
    openScratch: () => scanFile(currentFile(), start, end, true),
    file: () => ({ path: currentFile(), start, end }),
    slice: (from, to) => chunkOf(currentFile, Math.min(start + from, end), Math.min(start + to, end)),
  }
}

/** As `createReadStream` reads. */
const PIECE_BYTES = 64 * 1024

/** Bytes `start` to `end` of the file. `isScratch`: all pieces reuse one buffer. */
async function* scanFile(
  file: string,
  start: number,
  end: number,
  isScratch: boolean,
): AsyncGenerator<Uint8Array> {
  if (start >= end) return
  const handle = await open(file, 'r')
  try {
    let buffer = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, end - start))
    for (let at = start; at < end; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.byteLength, end - at), at)
      if (bytesRead === 0) return
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
      if (isScratch || at >= end) continue
      noteSpent(buffer.byteLength)
      buffer = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, end - at))
    }
  } finally {
    await handle.close()
  }
}

/** Writes and syncs; removes the file if anything fails. */
export async function writeFileSynced(file: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  const handle = await open(file, 'wx', 0o600)
  let sizeBytes = 0
  try {
    for await (const bytes of content) {
      await handle.writeFile(bytes)
      sizeBytes += bytes.byteLength
      noteSpent(bytes.byteLength)
    }
    await handle.sync()
    await handle.close()
    return sizeBytes
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(file, { force: true })
    const full = ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')
    throw full ? new StoreFull('No space left for large bodies', { cause: error }) : error
  }
}

/** A renamed file survives a power loss only once its folder is synced. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Columns that name blobs. A new one that is missing here fails a test (carry/migrate/every-table.test.ts). */
interface BlobColumn {
  table: string
  column: string
  /** A JSON list of names; else one name, or null. */
  isList: boolean
}

export const BLOB_COLUMNS: readonly BlobColumn[] = [
  { table: 'messages', column: 'blobs_json', isList: true },
  { table: 'inbox', column: 'raw_blob', isList: false },
  { table: 'suppression_imports', column: 'blob', isList: false },
  { table: 'validation_jobs', column: 'blob', isList: false },
  { table: 'exports', column: 'blobs_json', isList: true },
  { table: 'person_tasks', column: 'blobs_json', isList: true },
]

/** Names that a value of such a column holds. */
export const blobsIn = ({ isList }: BlobColumn, value: string): string[] =>
  isList ? (JSON.parse(value) as string[]) : [value]

/** Condition for rows that name any. */
export const namesBlobs = ({ column, isList }: BlobColumn): string =>
  `${column} IS NOT NULL${isList ? ` AND ${column} <> '[]'` : ''}`
