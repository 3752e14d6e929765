/** The CSV file of an import: unpacking, its header, and storing it. */
import { CsvSyntaxError, readCsv } from '../../base/csv.ts'
import { once, UnpackFailure, unpacked } from '../../base/flow/unpacked.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { KindTraits } from './kinds.ts'

/** A plain file has at most 25 MB; ten times as much is more than any real list, and stops gzip bombs. */
export const UNPACKED_BYTES_MAX = 250 * 1024 * 1024

/** Index by name of column. */
export type Columns = ReadonlyMap<string, number>

/** @throws BadRequest when the header lacks every column that a row needs */
export async function checkHeader(traits: KindTraits, file: Chunk): Promise<void> {
  const bytes = file instanceof Uint8Array ? once(file) : file.open()
  try {
    for await (const header of readCsv(unpacked(bytes, UNPACKED_BYTES_MAX))) {
      const columns = columnsOf(traits, header)
      if (traits.columns.needed.some((name) => columns.has(name))) return
      break
    }
  } catch (error) {
    if (!(error instanceof CsvSyntaxError || error instanceof UnpackFailure)) throw error
  }
  throw new BadRequest('while reading csv header')
}

/** Index of each known column; the first of two with the same name counts. */
export function columnsOf(traits: KindTraits, header: readonly string[]): Columns {
  const columns = new Map<string, number>()
  for (const [index, text] of header.entries()) {
    const name = text.trim().toLowerCase()
    if (traits.columns.all.includes(name) && !columns.has(name)) columns.set(name, index)
  }
  return columns
}

/** Stores the file as a blob and resolves to its name. */
export async function storeFile(blobs: BlobStore, file: Chunk): Promise<string> {
  if (!(file instanceof Uint8Array)) return blobs.keep(file)
  const spooled = await blobs.spool(once(file))
  return blobs.keep(spooled.chunk)
}
