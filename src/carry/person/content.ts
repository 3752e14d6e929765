/** The address in what was sent or captured: texts, bytes of mails, and files. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { once } from '../../base/flow/unpacked.ts'
import {
  blobsOf,
  CONTENT_IN_ROW_MAX_BYTES,
  contentBytes,
  contentOfBytes,
  type MessageContent,
  type StoredBytes,
} from '../../mail/record/record.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import type { SqlValue } from '../../platform/store/store.ts'
import { type LazyChunk, readChunk } from '../../protocols/message/mime-message.ts'
import { findLeaves, type MimeLeaf } from '../../protocols/mime/part-map.ts'
import { DELIVERED_HEADER_LIMITS, splitMessage } from '../../protocols/mime/split.ts'
import { type Person, replacedText, replacedValue } from './person.ts'

/** More than any mail or uploaded file. */
const UNPACKED_BYTES_MAX = 256 * 1024 * 1024

/** A blob's bytes; null: it is gone, or on another node. */
export async function blobBytes(blobs: BlobStore, name: string): Promise<Buffer | null> {
  const blob = await blobOf(blobs, name)
  return blob && readChunk(blob)
}

/** A blob, whose bytes are not read yet; null: it is gone, or on another node. */
export async function blobOf(blobs: BlobStore, name: string): Promise<LazyChunk | null> {
  try {
    return await blobs.read(name)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** No blob has that name here. */
export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException)?.code === 'ENOENT'

/** Searched at a time: some milliseconds. */
const SLICE_BYTES = 256 * 1024
/** Longer than an address, in any form and on any number of lines. */
const OVERLAP_BYTES = 2_048

/** As `Person.masked`, for bytes of any number. */
export async function maskedBytes(bytes: Buffer, person: Person): Promise<Buffer | null> {
  let result: Buffer | null = null
  for (let at = 0; at === 0 || at < bytes.byteLength; at += SLICE_BYTES) {
    if (at > 0) await nextTurn()
    const from = Math.max(0, at - OVERLAP_BYTES)
    const masked = person.masked(bytes.subarray(from, at + SLICE_BYTES))
    if (masked === null) continue
    result ??= Buffer.from(bytes)
    // What begins before this slice was seen whole by the one before.
    const seen = at === 0 ? 0 : OVERLAP_BYTES / 2
    masked.copy(result, from + seen, seen)
  }
  return result
}

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b
const unpacked = async (bytes: Buffer) =>
  isGzip(bytes) ? promisify(gunzip)(bytes, { maxOutputLength: UNPACKED_BYTES_MAX }) : bytes

/** The file without the address, compressed or not; null: it is not in it. */
export async function maskedFile(bytes: Buffer, person: Person): Promise<Buffer | null> {
  const masked = await maskedBytes(await unpacked(bytes), person)
  return masked && isGzip(bytes) ? promisify(gzip)(masked) : masked
}

/** The body of a mail without the address: in plain sight, and within texts in base64. Its parts stay where they are. */
export async function maskedBody(
  body: Buffer,
  leaves: readonly MimeLeaf[],
  person: Person,
): Promise<Buffer | null> {
  let masked = await maskedBytes(body, person)
  for (const leaf of leaves) {
    if (leaf.encoding !== 'base64' || !leaf.type.startsWith('text/')) continue
    const part = (masked ?? body).subarray(leaf.start, leaf.end)
    const plain = await maskedBytes(Buffer.from(part.toString('latin1'), 'base64'), person)
    if (plain === null) continue
    masked ??= Buffer.from(body)
    masked.set(await sameLines(part, plain), leaf.start)
  }
  return masked
}

/** `plain` in base64, with the line ends of `before`. */
async function sameLines(before: Buffer, plain: Buffer): Promise<Buffer> {
  const letters = Buffer.from(plain.toString('base64'), 'latin1')
  const text = Buffer.from(before)
  let next = 0
  for (let at = 0; at < text.byteLength; at++) {
    if (at > 0 && at % SLICE_BYTES === 0) await nextTurn()
    if (BASE64.has(text[at] as number) && next < letters.byteLength) text[at] = letters[next++] as number
  }
  return text
}

const BASE64 = new Set(Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/='))

/** Writes a blob; returns its name. */
export const writeBlob = async (blobs: BlobStore, bytes: Uint8Array): Promise<string> =>
  blobs.keep((await blobs.spool(once(bytes))).chunk)

/** What changes in a row; `gone`: blobs that it named before, and those that it names now, if the change comes too late. */
export interface ContentChange {
  changes: Record<string, SqlValue>
  gone: string[]
}

/** A message shared with others, without the address; null: it is not in it. */
export async function contentChange(
  row: MessageRow,
  blobs: BlobStore,
  person: Person,
): Promise<ContentChange | null> {
  const changes: Record<string, SqlValue> = {}
  const gone: string[] = []
  for (const column of ['summary_json', 'options_json'] as const) {
    const replaced = replacedText(row[column], person)
    if (replaced !== row[column]) changes[column] = replaced
  }
  const bytes = row.content
    ? Buffer.from(row.content)
    : row.content_blob === null
      ? null
      : await blobBytes(blobs, row.content_blob)
  if (bytes) {
    const content = contentOfBytes(bytes)
    const replaced = await replacedContent(content, blobs, person, gone)
    const after = contentBytes(replaced)
    if (!after.equals(contentBytes(content))) {
      const isSmall = after.byteLength <= CONTENT_IN_ROW_MAX_BYTES
      changes['content'] = isSmall ? after : null
      changes['content_blob'] = isSmall ? null : await writeBlob(blobs, after)
      for (const name of [row.content_blob, changes['content_blob']]) if (name) gone.push(String(name))
      const names = blobsOf(replaced)
      if (changes['content_blob'] !== null) names.push(changes['content_blob'] as string)
      changes['blobs_json'] = JSON.stringify(names)
    }
  }
  return Object.keys(changes).length === 0 ? null : { changes, gone }
}

async function replacedContent(
  content: MessageContent,
  blobs: BlobStore,
  person: Person,
  gone: string[],
): Promise<MessageContent> {
  /** Bytes of base 64, or of a blob; `masked` gets them all. */
  const stored = async (
    bytes: StoredBytes,
    masked: (given: Buffer) => Promise<Buffer | null>,
  ): Promise<StoredBytes> => {
    if ('base64' in bytes) {
      const after = await masked(Buffer.from(bytes.base64, 'base64'))
      return after ? { base64: after.toString('base64') } : bytes
    }
    const before = await blobBytes(blobs, bytes.blob)
    const after = before && (await masked(before))
    if (!after) return bytes
    const blob = await writeBlob(blobs, after)
    gone.push(bytes.blob, blob)
    return { ...bytes, blob }
  }
  if (content.kind === 'mime') {
    const { body, ...rest } = content
    const { sizeBytes, ...bytes } = body
    const masked = await stored(bytes as StoredBytes, async (given) => {
      // In front of the body is the header that it came with.
      const from = 'blob' in bytes ? (bytes.offset ?? 0) : 0
      const [head, rest] = [given.subarray(0, from), given.subarray(from + sizeBytes)]
      const [newHead, newBody] = [
        await maskedBytes(head, person),
        await maskedBody(given.subarray(from, from + sizeBytes), content.leaves, person),
      ]
      if (!newHead && !newBody) return null
      return Buffer.concat([newHead ?? head, newBody ?? given.subarray(from, from + sizeBytes), rest])
    })
    return { ...(replacedValue(rest, person) as typeof rest), body: { ...masked, sizeBytes } }
  }
  const { files, ...rest } = content
  const replaced = []
  for (const file of files) {
    const isText = file.contentType.toLowerCase().startsWith('text/')
    replaced.push(
      isText ? { ...file, bytes: await stored(file.bytes, (given) => maskedBytes(given, person)) } : file,
    )
  }
  return { ...(replacedValue(rest, person) as typeof rest), files: replaced }
}

/** The raw bytes of a captured mail without the address; null: it is not in them. */
export async function maskedMail(raw: Buffer, person: Person): Promise<Buffer | null> {
  const { headers, bodyOffset } = splitMessage(raw, DELIVERED_HEADER_LIMITS)
  const [head, body] = [raw.subarray(0, bodyOffset), raw.subarray(bodyOffset)]
  const newHead = await maskedBytes(head, person)
  const newBody = await maskedBody(body, await findLeaves(headers, body), person)
  return newHead || newBody ? Buffer.concat([newHead ?? head, newBody ?? body]) : null
}
