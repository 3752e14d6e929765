/**
 * Bytes too large for a database row. A blob has one owner (a message or a captured mail) and goes with it,
 * so nothing has to be counted or collected. Written to a spool file first, synced, then moved to its place:
 * a name that the database holds always has its bytes.
 */
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { ID_PATTERN, newId } from '../base/ids.ts'
import type { LazyChunk } from '../base/mime-message.ts'
import { BLOB_FOLDER } from './data-folder.ts'
import { StoreFull } from './store.ts'

/** A blob being handed in: either kept, which gives it a name, or discarded. */
export interface SpooledBlob {
  readonly chunk: LazyChunk
  /** Removes the bytes, kept or not. */
  discard(): Promise<void>
}

export interface BlobStore {
  /** Writes and syncs the bytes. @throws StoreFull */
  spool(content: AsyncIterable<Uint8Array>): Promise<SpooledBlob>
  /** Moves the bytes behind a chunk that `spool` gave to their place and resolves their name. */
  keep(chunk: LazyChunk): Promise<string>
  /** @throws when no blob has that name */
  read(name: string): Promise<LazyChunk>
  remove(name: string): Promise<void>
  /**
   * From now on removed blobs stay where they are, until the function that is given back is called: a copy of the
   * database may still name them. What a crash leaves behind by this is waste.
   */
  hold(): () => Promise<void>
}

/** Where a blob lies below the blob folder. The last two characters are random, so they spread the files over some 4,000 folders. */
export function blobPlace(name: string): string {
  if (!ID_PATTERN.test(name)) throw new RangeError(`"${name}" is not a blob name`)
  return join(name.slice(-3, -1), name)
}

/** Opens the blob folder below `folder`; spool files of an earlier run are removed. */
export async function openBlobs(folder: string): Promise<BlobStore> {
  const spoolFolder = join(folder, 'spool')
  const blobFolder = join(folder, BLOB_FOLDER)
  await mkdir(spoolFolder, { recursive: true, mode: 0o700 })
  await mkdir(blobFolder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(spoolFolder)) await rm(join(spoolFolder, name), { force: true })

  const placeOf = (name: string) => join(blobFolder, blobPlace(name))
  let holds = 0
  /** Names to remove once nobody holds them. */
  let removed: string[] = []
  /** Where the bytes behind each spooled chunk are now. */
  const places = new WeakMap<LazyChunk, { name: string; file: string }>()
  return {
    async spool(content) {
      const name = newId()
      const file = join(spoolFolder, name)
      const sizeBytes = await write(file, content)
      const place = { name, file }
      const chunk = chunkOf(() => place.file, 0, sizeBytes)
      places.set(chunk, place)
      return { chunk, discard: () => rm(place.file, { force: true }) }
    },
    async keep(chunk) {
      const place = places.get(chunk)
      if (!place) throw new TypeError('Cannot keep a chunk that was not spooled here')
      const target = placeOf(place.name)
      if (place.file !== target) {
        await mkdir(dirname(target), { recursive: true, mode: 0o700 })
        await rename(place.file, target)
        place.file = target
        await syncFolder(dirname(target))
        await syncFolder(blobFolder)
      }
      return place.name
    },
    async read(name) {
      const file = placeOf(name)
      const { size } = await stat(file)
      return chunkOf(() => file, 0, size)
    },
    async remove(name) {
      const place = placeOf(name)
      if (holds > 0) removed.push(name)
      else await rm(place, { force: true })
    },
    hold() {
      holds++
      let released = false
      return async () => {
        if (released) return
        released = true
        holds--
        if (holds > 0) return
        const names = removed
        removed = []
        for (const name of names) await rm(placeOf(name), { force: true })
      }
    },
  }
}

/** The bytes of a file from `start` to before `end`. */
function chunkOf(fileNow: () => string, start: number, end: number): LazyChunk {
  return {
    sizeBytes: end - start,
    open: () => (end > start ? createReadStream(fileNow(), { start, end: end - 1 }) : Readable.from([])),
    openScratch: () => scanFile(fileNow(), start, end),
    slice: (from, to) => chunkOf(fileNow, Math.min(start + from, end), Math.min(start + to, end)),
  }
}

/** As large as the pieces of `createReadStream`. */
const SCRATCH_BYTES = 64 * 1024

/** The file from `start` to before `end` in pieces that all lie in the same memory. */
async function* scanFile(file: string, start: number, end: number): AsyncGenerator<Uint8Array> {
  const handle = await open(file, 'r')
  try {
    const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
    for (let at = start; at < end; ) {
      const { bytesRead } = await handle.read(scratch, 0, Math.min(SCRATCH_BYTES, end - at), at)
      if (bytesRead === 0) return
      at += bytesRead
      yield scratch.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}

/** Writes and syncs; the file is gone again if anything fails. */
async function write(file: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  const handle = await open(file, 'wx', 0o600)
  let sizeBytes = 0
  try {
    for await (const bytes of content) {
      await handle.writeFile(bytes)
      sizeBytes += bytes.byteLength
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
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
