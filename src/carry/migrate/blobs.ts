/** Copies and compares the files that rows name: between a data folder and S3, or between two folders. */
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  BLOB_COLUMNS,
  blobPath,
  blobsIn,
  chunkOf,
  namesBlobs,
  syncFolder,
  writeFileSynced,
} from '../../platform/store/blobs/blobs.ts'
import { BLOB_FOLDER } from '../../platform/store/blobs/data-folder.ts'
import type { S3Client } from '../../platform/store/blobs/s3-client.ts'
import type { Side } from './side.ts'

export interface BlobPlace {
  /** For messages; equal names are equal places. */
  name: string
  /** Null: it is not there. */
  size(blob: string): Promise<number | null>
  /** SHA-256 of its bytes, hexadecimal; null: it is not there. */
  digest(blob: string): Promise<string | null>
  /** Hands the bytes of a blob that is there to `use`, which may be called again after a failure. */
  read(blob: string, use: (bytes: AsyncIterable<Uint8Array>) => Promise<void>): Promise<void>
  /** Its file, where blobs are files. */
  path?(blob: string): string
  write(blob: string, from: BlobPlace, sizeBytes: number): Promise<void>
  /** Does nothing if it is not there. */
  remove(blob: string): Promise<void>
}

export function folderPlace(dataFolder: string): BlobPlace {
  const path = (blob: string) => join(dataFolder, BLOB_FOLDER, blobPath(blob))
  const size = (blob: string) =>
    stat(path(blob)).then(
      (found) => found.size,
      () => null,
    )
  const place: BlobPlace = {
    name: join(dataFolder, BLOB_FOLDER),
    path,
    size,
    digest: (blob) => digestOf(place, blob),
    async read(blob, use) {
      const bytes = await size(blob)
      await use(chunkOf(() => path(blob), 0, bytes ?? 0).open())
    },
    async write(blob, from) {
      const file = path(blob)
      const partial = `${file}.part`
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      await from.read(blob, async (bytes) => {
        await rm(partial, { force: true })
        await writeFileSynced(partial, bytes)
      })
      await rename(partial, file)
      await syncFolder(dirname(file))
      await syncFolder(join(dataFolder, BLOB_FOLDER))
    },
    remove: (blob) => rm(path(blob), { force: true }),
  }
  return place
}

export function s3Place(client: S3Client, bucket: string, prefix: string): BlobPlace {
  const key = (blob: string) => `${prefix}${blobPath(blob)}`
  const place: BlobPlace = {
    name: `s3://${bucket}/${prefix}`,
    size: (blob) => client.size(key(blob)),
    digest: (blob) => digestOf(place, blob),
    async read(blob, use) {
      if (!(await client.get(key(blob), use))) throw new Error(`there is no blob "${blob}"`)
    },
    async write(blob, from, sizeBytes) {
      const put = (file: string) =>
        client.put(
          key(blob),
          chunkOf(() => file, 0, sizeBytes),
        )
      const file = from.path?.(blob)
      if (file !== undefined) return put(file)
      // A request may be sent again, so it needs bytes that can be read again.
      const folder = await mkdtemp(join(tmpdir(), 'sendwright-'))
      const copy = join(folder, blob)
      try {
        await from.read(blob, async (bytes) => {
          await rm(copy, { force: true })
          await writeFileSynced(copy, bytes)
        })
        await put(copy)
      } finally {
        await rm(folder, { recursive: true, force: true })
      }
    },
    remove: (blob) => client.remove(key(blob)),
  }
  return place
}

async function digestOf(place: BlobPlace, blob: string): Promise<string | null> {
  if ((await place.size(blob)) === null) return null
  let digest = ''
  await place.read(blob, async (bytes) => {
    const hash = createHash('sha256')
    for await (const piece of bytes) hash.update(piece)
    digest = hash.digest('hex')
  })
  return digest
}

const NAMES_PER_QUERY = 1_000

type Rows = Pick<Side, 'query'>

/** Names in all rows of a database. `accountId`: only in those of this account. */
export async function* namedBlobs(side: Rows, accountId: string | null = null): AsyncGenerator<string> {
  const [condition, values] = accountId === null ? ['', []] : [' AND account_id = ?', [accountId]]
  for (const place of BLOB_COLUMNS) {
    let last = ''
    for (;;) {
      const rows = await side.query(
        `SELECT id, ${place.column} FROM ${place.table} WHERE id > ? AND ${namesBlobs(place)}${condition}
          ORDER BY id LIMIT ${NAMES_PER_QUERY}`,
        [last, ...values],
      )
      for (const [, value] of rows) yield* blobsIn(place, String(value))
      if (rows.length < NAMES_PER_QUERY) break
      last = String(rows.at(-1)?.[0])
    }
  }
}

export interface BlobResult {
  files: number
  bytes: number
  /** Named by rows, but not there: lost before, or on another node. */
  missing: string[]
}

/** Copies what is not there yet. `onFile` is called after each. */
export async function copyBlobs(
  side: Rows,
  from: BlobPlace,
  to: BlobPlace,
  onFile: (result: BlobResult) => void,
  accountId: string | null = null,
): Promise<void> {
  const result: BlobResult = { files: 0, bytes: 0, missing: [] }
  for await (const blob of namedBlobs(side, accountId)) {
    const size = await from.size(blob)
    if (size === null) continue
    if ((await to.size(blob)) !== size) await to.write(blob, from, size)
    result.files++
    result.bytes += size
    onFile(result)
  }
}

/** Compares all bytes. `to` null: the files stay where they are, and are counted. */
export async function compareBlobs(
  side: Rows,
  from: BlobPlace,
  to: BlobPlace | null,
  onFile: (result: BlobResult) => void,
  accountId: string | null = null,
): Promise<{ result: BlobResult; differences: string[] }> {
  const result: BlobResult = { files: 0, bytes: 0, missing: [] }
  const differences: string[] = []
  for await (const blob of namedBlobs(side, accountId)) {
    const size = await from.size(blob)
    if (size === null) {
      result.missing.push(blob)
      continue
    }
    result.files++
    result.bytes += size
    if (to) {
      const [wanted, found] = [await from.digest(blob), await to.digest(blob)]
      if (found === null) differences.push(`File ${blob} is missing in ${to.name}.`)
      else if (found !== wanted) differences.push(`File ${blob} is different in ${to.name}.`)
    }
    onFile(result)
  }
  return { result, differences }
}
