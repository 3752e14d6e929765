/**
 * Reads a request body into fields, a JSON document and files.
 *
 * 1. Content-Encoding gzip is decompressed while reading; limits count decompressed bytes, so a small bomb stops early.
 * 2. A first non-blank byte `{` or `[` means JSON, whatever Content-Type says. It is counted while it arrives.
 * 3. Else multipart/form-data is streamed, and url-encoded text (also without Content-Type) is split.
 *
 * A large body is processed chunk by chunk, so that other calls run in between.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { ForeignJsonError, JsonCount, parseCounted } from '../../../base/foreign-json.ts'
import { BadRequest, PayloadTooLarge } from '../../../base/process/errors.ts'
import { isPlainObject, quotable } from '../../../base/values.ts'
import type { Arrival } from '../listening/arrival.ts'
import { readMultipart } from './multipart.ts'
import { Fields, parseUrlencoded, plainName } from './params.ts'
import { type FileSpool, Uploads } from './uploads.ts'
import { ByteBlocks, readUrlencoded } from './urlencoded.ts'

export interface BodyLimit {
  /** Limit of the whole body, decompressed. */
  bytes: number
  /** Limit of one file in it. */
  fileBytes?: number
  /** Limit of a JSON body; default JSON_BYTES_MAX, and never more than `bytes`. */
  jsonBytes?: number
  /** Text of the 413. */
  message: string
}

const MIB = 1024 * 1024
/** 1,000 list members with 4 KB of variables each. A document is parsed in one go. */
const JSON_BYTES_MAX = 4 * MIB
/**
 * 52.4 MiB, the figure in the text; the built message has its own limit of 25 MB. As JSON a call holds no files, only
 * one text of that size.
 */
export const SENDING_BODY_LIMIT: BodyLimit = {
  bytes: Math.floor(52.4 * MIB),
  jsonBytes: 26 * MIB,
  message: 'request size exceeds 52.4MiB limit',
}
export const DEFAULT_BODY_LIMIT: BodyLimit = {
  bytes: 4 * MIB,
  message: 'request size exceeds 4MiB limit',
}
/** Operations without a login take a key, a token or a button. */
export const PUBLIC_BODY_LIMIT: BodyLimit = { bytes: 4 * 1024, message: 'request size exceeds 4KiB limit' }

interface BodyOptions {
  limit: BodyLimit
  /** Null: the operation takes no files; they are skipped. */
  spool: FileSpool | null
  multipartOnly: boolean
  /** Media types whose bytes are wanted as they are; no other is read then. */
  bytesOf?: readonly string[] | undefined
  /** Accept a body with Content-Encoding gzip: only from authenticated callers. */
  packed: boolean
  /** Hash file contents, for `Params.digest`. */
  digest: boolean
}

interface RequestBody {
  fields: Fields
  document: unknown
  uploads: Uploads | null
  /** With `bytesOf`. */
  bytes: Buffer | undefined
}

/**
 * @throws PayloadTooLarge over the limit; BadRequest for a broken body; the connection's own error if the
 *   client leaves. When it throws, nothing it spooled is left, and the rest of the body is unread.
 */
export async function readBody(
  { headers, body: sent }: Pick<Arrival, 'headers' | 'body'>,
  options: BodyOptions,
): Promise<RequestBody> {
  const { limit, spool, multipartOnly, packed, digest } = options
  const contentType = headers['content-type'] ?? ''
  const mediaType = mediaTypeOf(contentType)
  if (multipartOnly && mediaType !== 'multipart/form-data') {
    const got = quotable(mediaType)
    throw new BadRequest(`Invalid request content type. Expecting 'multipart/form-data' but got '${got}'`)
  }
  const isUnknown = options.bytesOf !== undefined && !options.bytesOf.includes(mediaType)
  if (isUnknown && sent.kind !== 'none') throw unsupported(mediaType)
  const body: RequestBody = { fields: new Fields(), document: undefined, uploads: null, bytes: undefined }
  if (sent.kind === 'none') return body
  if (Number(headers['content-length'] ?? 0) > limit.bytes) throw new PayloadTooLarge(limit.message)
  if (sent.kind === 'form') {
    for (const [name, value] of sent.fields) body.fields.add(name, value)
    return body
  }
  const source = new PeekedSource(
    sent.kind === 'whole'
      ? oneChunk(sent.bytes)
      : limited(decompressed(sent.stream, encodingOf(headers, packed)), limit),
  )
  try {
    if (options.bytesOf !== undefined) {
      body.bytes = await allOf(source)
      return body
    }
    const first = await source.firstByte()
    if (first === undefined) return body
    if (first === BRACE || first === BRACKET || isJson(mediaType)) {
      await readJson(body, source, limit)
    } else if (mediaType === 'multipart/form-data') {
      if (spool !== null) body.uploads = new Uploads(spool, limit, digest)
      await readMultipart(source, contentType, body.fields, body.uploads)
    } else if (mediaType === 'application/x-www-form-urlencoded' || mediaType === '') {
      if (sent.kind === 'whole') body.fields = parseUrlencoded(sent.bytes.toString('utf8'))
      else await readUrlencoded(source, body.fields)
    } else {
      throw unsupported(mediaType)
    }
    return body
  } catch (error) {
    await source.close()
    await body.uploads?.discardAll()
    throw error
  }
}

const unsupported = (mediaType: string) =>
  new BadRequest(`unable to parse request: unsupported Content-Type '${quotable(mediaType)}'`)

async function allOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Text is held as received, decoded, and split; files of a form are spooled as they arrive. */
const TEXT_MEMORY_FACTOR = 4

/**
 * Memory that reading a body takes at its peak, roughly, in bytes; 0 for one that is refused unread. Without a length the
 * limit counts.
 */
export function memoryOfBody(headers: IncomingHttpHeaders, limit: BodyLimit): number {
  const announced = headers['content-encoding'] === undefined ? Number(headers['content-length']) : Number.NaN
  if (announced > limit.bytes) return 0
  const bytes = Number.isNaN(announced) ? limit.bytes : announced
  return mediaTypeOf(headers['content-type'] ?? '') === 'multipart/form-data'
    ? bytes
    : TEXT_MEMORY_FACTOR * bytes
}

const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/

/** In lower case, without parameters; empty for an invalid one, whose body is read as if it had none. */
export function mediaTypeOf(contentType: string): string {
  const end = contentType.indexOf(';')
  const mediaType = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
  return MEDIA_TYPE.test(mediaType) ? mediaType : ''
}

const BRACE = 0x7b
const BRACKET = 0x5b
/** Blank bytes before the first significant one; no client sends more. */
const BLANKS_MAX = 64 * 1024

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const isJson = (mediaType: string) => mediaType === 'application/json' || mediaType.endsWith('+json')

/** Tab, line ends, space, and the three bytes of a UTF-8 byte order mark. */
const isBlank = (byte: number) =>
  byte === 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0xef || byte === 0xbb || byte === 0xbf

/** A body whose first byte can be looked at before it is read. */
class PeekedSource implements AsyncIterable<Uint8Array> {
  private readonly iterator: AsyncIterator<Uint8Array>
  private readonly held: Uint8Array[] = []

  constructor(source: AsyncIterable<Uint8Array>) {
    this.iterator = source[Symbol.asyncIterator]()
  }

  /** The first byte that is not blank; undefined if there is none. */
  async firstByte(): Promise<number | undefined> {
    let blanks = 0
    while (blanks <= BLANKS_MAX) {
      const next = await this.iterator.next()
      if (next.done) return undefined
      this.held.push(next.value)
      const at = next.value.findIndex((byte) => !isBlank(byte))
      if (at >= 0) return next.value[at]
      blanks += next.value.byteLength
    }
    throw new BadRequest('unable to parse request: blank body')
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    yield* this.held.splice(0)
    yield* { [Symbol.asyncIterator]: () => this.iterator }
  }

  async close(): Promise<void> {
    await this.iterator.return?.().catch(() => {})
  }
}

/** @throws BadRequest for an encoding that is not accepted, from this caller or at all */
function encodingOf(headers: IncomingHttpHeaders, packed: boolean): 'identity' | 'gzip' {
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity' || encoding === '') return 'identity'
  if (packed && (encoding === 'gzip' || encoding === 'x-gzip')) return 'gzip'
  throw new BadRequest(`unable to parse request: unsupported Content-Encoding '${quotable(encoding)}'`)
}

/** The decoded body. Leaving the loop early leaves the connection open. */
async function* decompressed(request: Readable, encoding: 'identity' | 'gzip'): AsyncGenerator<Uint8Array> {
  const raw: AsyncIterable<Uint8Array> = request.iterator({ destroyOnReturn: false })
  if (encoding === 'identity') return yield* raw
  const gunzip = createGunzip()
  const onGone = (error?: Error) => gunzip.destroy(error ?? new Error('connection closed'))
  request.once('error', onGone)
  request.pipe(gunzip)
  try {
    yield* gunzip
  } catch (error) {
    if (request.errored !== null) throw error
    throw new BadRequest('unable to parse request: broken gzip data', { cause: error })
  } finally {
    request.unpipe(gunzip)
    request.removeListener('error', onGone)
    gunzip.destroy()
  }
}

async function* limited(source: AsyncIterable<Uint8Array>, limit: BodyLimit): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > limit.bytes) throw new PayloadTooLarge(limit.message)
    yield chunk
  }
}

/** Concatenating, decoding and parsing less than this takes few milliseconds together. */
const ONE_TURN_MAX_BYTES = MIB

async function readJson(body: RequestBody, source: PeekedSource, limit: BodyLimit): Promise<void> {
  const bytesMax = Math.min(limit.jsonBytes ?? JSON_BYTES_MAX, limit.bytes)
  try {
    const count = new JsonCount()
    const blocks = new ByteBlocks()
    for await (const chunk of source) {
      count.add(chunk)
      blocks.add(chunk)
      if (blocks.sizeBytes > bytesMax) {
        throw new PayloadTooLarge(`request size exceeds ${bytesMax / MIB}MiB limit`)
      }
    }
    const isLarge = blocks.sizeBytes > ONE_TURN_MAX_BYTES
    // From here on each step is alone in its turn: the last chunk came in the part of a turn that reads sockets, and the
    // first `nextTurn` after it resolves in the same turn.
    if (isLarge) await nextTurn()
    const bytes = blocks.take()
    if (isLarge) await nextTurn()
    const text = bytes.toString('utf8')
    if (isLarge) await nextTurn()
    body.document = documentIn(text, count)
    if (isLarge) await nextTurn()
    if (isPlainObject(body.document)) addMembers(body.fields, body.document)
    // Members that are objects are texts now, and are parsed again by those who read them.
    if (isLarge) await nextTurn()
  } catch (error) {
    if (error instanceof ForeignJsonError) throw invalidJson(error.message, error)
    throw error
  }
}

/** @throws ForeignJsonError; also for a document that is neither object nor list */
function documentIn(text: string, count: JsonCount): object {
  const document = parseCounted(text.startsWith('\uFEFF') ? text.slice(1) : text, count)
  if (typeof document === 'object' && document !== null) return document
  throw new ForeignJsonError('expected an object or an array')
}

const invalidJson = (reason: string, cause: Error) =>
  new BadRequest(`Invalid json: ${quotable(reason)}`, { cause })

function addMembers(fields: Fields, document: Record<string, unknown>): void {
  for (const name of Object.keys(document)) addMember(fields, name, document[name])
}

/** A member as text values: a list of scalars repeats the name, anything deeper is its JSON text. */
function addMember(fields: Fields, name: string, value: unknown): void {
  if (value === null) return
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) {
    for (const item of value) fields.add(plainName(name), String(item))
  } else {
    fields.add(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
}
