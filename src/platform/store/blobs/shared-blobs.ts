/**
 * Blobs in S3-compatible storage, for nodes that share a database.
 *
 * 1. `keep` moves the spooled file to its place in the data folder and uploads it; the name is returned when S3 has it.
 * 2. `read` uses the file of this node if there is one. Otherwise the object's bytes are fetched into the data folder when
 *    they are first read.
 * 3. The files here are copies, so the oldest are removed when they take more than CACHE_MAX_BYTES.
 */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { LazyChunk } from '../../../protocols/message/mime-message.ts'
import { type BlobStore, blobPath, chunkOf, writeFileSynced } from './blobs.ts'
import { BLOB_FOLDER } from './data-folder.ts'
import type { S3Client } from './s3-client.ts'

interface SharedBlobParts {
  /** Blobs of the data folder `folder`. */
  files: BlobStore
  folder: string
  client: S3Client
  /** Keys begin with it; '' or `name/`. */
  prefix: string
  log: Logger
  cacheMaxBytes?: number
}

interface SharedBlobs extends BlobStore {
  /** Removes the oldest copies beyond the limit. */
  trim(): Promise<void>
}

const CACHE_MAX_BYTES = 1_000_000_000

export function createSharedBlobs(parts: SharedBlobParts): SharedBlobs {
  const { files, client, prefix, log, cacheMaxBytes = CACHE_MAX_BYTES } = parts
  const blobFolder = join(parts.folder, BLOB_FOLDER)
  const pathOf = (name: string) => join(blobFolder, blobPath(name))
  const keyOf = (name: string) => `${prefix}${blobPath(name)}`
  const fetching = new Map<string, Promise<void>>()

  /** Concurrent readers share one download. */
  function fetched(name: string): Promise<void> {
    const running = fetching.get(name)
    if (running) return running
    const run = fetchOnce(name).finally(() => fetching.delete(name))
    fetching.set(name, run)
    return run
  }

  async function fetchOnce(name: string): Promise<void> {
    const file = pathOf(name)
    if (await sizeOf(file)) return
    const partial = join(parts.folder, 'spool', `${name}.fetched`)
    const isThere = await client.get(keyOf(name), async (bytes) => {
      await rm(partial, { force: true })
      await writeFileSynced(partial, bytes)
    })
    if (!isThere) throw missing(name)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await rename(partial, file)
  }

  function lazy(name: string, start: number, end: number): LazyChunk {
    const own = chunkOf(() => pathOf(name), start, end)
    async function* bytes(open: () => AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      await fetched(name)
      yield* open()
    }
    return {
      sizeBytes: end - start,
      open: () => Readable.from(bytes(() => own.open())),
      openScratch: () => bytes(() => own.openScratch?.() ?? own.open()),
      slice: (from, to) => lazy(name, Math.min(start + from, end), Math.min(start + to, end)),
    }
  }

  async function removeObject(name: string): Promise<void> {
    await rm(pathOf(name), { force: true })
    await client.remove(keyOf(name)).catch((error: unknown) => {
      // Its row is gone: nothing would find it again.
      log.warn({ err: error, blob: name }, 'a blob that is not needed any more stays in the object store')
    })
  }

  return {
    spool: (content) => files.spool(content),
    async keep(chunk) {
      const name = await files.keep(chunk)
      await client.put(keyOf(name), chunk as LazyChunk)
      return name
    },
    async read(name) {
      const local = await sizeOf(pathOf(name))
      const size = local ?? (await client.size(keyOf(name)))
      if (size === null) throw missing(name)
      return lazy(name, 0, size)
    },
    remove: removeObject,
    // Only backups of SQLite's data folder hold blobs, and there they are never shared.
    hold: () => files.hold(),
    async trim() {
      const copies = await copiesIn(blobFolder)
      let total = copies.reduce((sum, { bytes }) => sum + bytes, 0)
      for (const { file, bytes } of copies) {
        if (total <= cacheMaxBytes) break
        await rm(file, { force: true })
        total -= bytes
      }
    },
  }
}

/** As the file system says it. */
const missing = (name: string) => Object.assign(new Error(`there is no blob "${name}"`), { code: 'ENOENT' })

/** Null: there is no such file. */
async function sizeOf(file: string): Promise<number | null> {
  return stat(file).then(
    ({ size }) => size,
    () => null,
  )
}

/** Oldest first. */
async function copiesIn(folder: string): Promise<{ file: string; bytes: number; at: number }[]> {
  const found: { file: string; bytes: number; at: number }[] = []
  for (const shelf of await readdir(folder)) {
    for (const name of await readdir(join(folder, shelf)).catch(() => [])) {
      const file = join(folder, shelf, name)
      const facts = await stat(file).catch(() => null)
      if (facts?.isFile()) found.push({ file, bytes: facts.size, at: facts.mtimeMs })
    }
  }
  return found.sort((a, b) => a.at - b.at)
}
