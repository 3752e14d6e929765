/**
 * Reads a request body into fields, a JSON document and files.
 *
 * 1. Content-Encoding gzip is unpacked while reading; limits count unpacked bytes, so a small bomb stops early.
 * 2. A first non-blank byte `{` or `[` means JSON, whatever Content-Type says.
 * 3. Else multipart/form-data is streamed, and url-encoded text (also without Content-Type) is split.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { BadRequest, PayloadTooLarge } from '../base/errors.ts'
import type { Arrival } from './arrival.ts'
import { readMultipart } from './multipart.ts'
import { Fields, isPlainObject, parseUrlencoded, plainName, quotable } from './params.ts'
import { type FileSpool, Uploads } from './uploads.ts'

export interface BodyLimit {
  /** Of the whole body, unpacked. */
  bytes: number
  /** Of one file in it. */
  fileBytes?: number
  /** Text of the 413. */
  message: string
}

/** 52.4 MiB, the figure in the text; the built message has its own limit of 25 MB. */
export const SENDING_BODY_LIMIT: BodyLimit = {
  bytes: Math.floor(52.4 * 1024 * 1024),
  message: 'request size exceeds 52.4MiB limit',
}
/** Imports: a file of 25 MB, and room for the form around it. */
export const IMPORT_BODY_LIMIT: BodyLimit = {
  bytes: 26 * 1024 * 1024,
  fileBytes: 25_000_000,
  message: 'file size exceeds 25MB limit',
}
/** Everything else: 1,000 list members with 4 KB of variables each. */
export const DEFAULT_BODY_LIMIT: BodyLimit = {
  bytes: 4 * 1024 * 1024,
  message: 'request size exceeds 4MiB limit',
}

export interface BodyOptions {
  limit: BodyLimit
  /** Null: the operation takes no files; those that come are skipped. */
  spool: FileSpool | null
  multipartOnly: boolean
  /** Hash file contents on the way, for `Params.digest`. */
  digest: boolean
}

export interface RequestBody {
  fields: Fields
  document: unknown
  uploads: Uploads | null
}

/**
 * @throws PayloadTooLarge over the limit; BadRequest for a broken body; the connection's own error if the
 *   client goes away. When it throws, nothing it spooled is left, and the rest of the body is unread.
 */
export async function readBody(
  { headers, body: arrived }: Pick<Arrival, 'headers' | 'body'>,
  options: BodyOptions,
): Promise<RequestBody> {
  const { limit, spool, multipartOnly, digest } = options
  const contentType = headers['content-type'] ?? ''
  const mediaType = mediaTypeOf(contentType)
  if (multipartOnly && mediaType !== 'multipart/form-data') {
    const got = quotable(mediaType)
    throw new BadRequest(`Invalid request content type. Expecting 'multipart/form-data' but got '${got}'`)
  }
  const body: RequestBody = { fields: new Fields(), document: undefined, uploads: null }
  if (arrived.kind === 'none') return body
  if (Number(headers['content-length'] ?? 0) > limit.bytes) throw new PayloadTooLarge(limit.message)
  if (arrived.kind === 'form') {
    for (const [name, value] of arrived.fields) body.fields.add(name, value)
    return body
  }
  const source = new PeekedSource(
    arrived.kind === 'whole' ? oneChunk(arrived.bytes) : limited(unpacked(arrived.stream, headers), limit),
  )
  try {
    const first = await source.firstByte()
    if (first === undefined) return body
    if (first === BRACE || first === BRACKET || isJson(mediaType)) {
      readJson(body, await source.all())
    } else if (mediaType === 'multipart/form-data') {
      if (spool !== null) body.uploads = new Uploads(spool, limit, digest)
      await readMultipart(source, contentType, body.fields, body.uploads)
    } else if (mediaType === 'application/x-www-form-urlencoded' || mediaType === '') {
      body.fields = parseUrlencoded((await source.all()).toString('utf8'))
    } else {
      throw new BadRequest(`unable to parse request: unsupported Content-Type '${quotable(mediaType)}'`)
    }
    return body
  } catch (error) {
    await source.close()
    await body.uploads?.discardAll()
    throw error
  }
}

/** Text is held as it came, decoded, and taken apart; files of a form go to the disk as they come. */
const TEXT_MEMORY_FACTOR = 4

/**
 * About what reading a body takes at its peak, in bytes; 0 for one that is refused unread. A client that does not tell
 * its length counts with the limit.
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

/** In lower case, without parameters; empty for what is none, and then the body is read as one that has none. */
export function mediaTypeOf(contentType: string): string {
  const end = contentType.indexOf(';')
  const mediaType = (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
  return MEDIA_TYPE.test(mediaType) ? mediaType : ''
}

const BRACE = 0x7b
const BRACKET = 0x5b
/** Blank bytes before the first one that counts; a longer run is no body that anyone sends. */
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

  async all(): Promise<Buffer> {
    const chunks: Uint8Array[] = []
    for await (const chunk of this) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  async close(): Promise<void> {
    await this.iterator.return?.().catch(() => {})
  }
}

/** The body's bytes without its Content-Encoding. Leaving the loop early leaves the connection open. */
async function* unpacked(request: Readable, headers: IncomingHttpHeaders): AsyncGenerator<Uint8Array> {
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const raw: AsyncIterable<Uint8Array> = request.iterator({ destroyOnReturn: false })
  if (encoding === 'identity' || encoding === '') return yield* raw
  if (encoding !== 'gzip' && encoding !== 'x-gzip') {
    throw new BadRequest(`unable to parse request: unsupported Content-Encoding '${quotable(encoding)}'`)
  }
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

function readJson(body: RequestBody, bytes: Buffer): void {
  const document = parseJson(bytes.toString('utf8').replace(/^\uFEFF/, ''))
  body.document = document
  if (!isPlainObject(document)) return
  try {
    for (const [name, value] of Object.entries(document)) addMember(body.fields, name, value)
  } catch (error) {
    if (error instanceof RangeError) throw invalidJson(error) // stringify recurses where parse does not
    throw error
  }
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

/** @throws BadRequest `Invalid json: <reason>`; also for a document that is neither object nor list. */
export function parseJson(text: string): unknown {
  let document: unknown
  try {
    document = JSON.parse(text)
    // A member of that name is an own property here, yet the first careless copy would make it a prototype.
    if (text.includes('__proto__') || text.includes('\\u')) document = JSON.parse(text, dropPrototype)
  } catch (error) {
    throw invalidJson(error as Error)
  }
  if (typeof document !== 'object' || document === null) {
    throw new BadRequest('Invalid json: expected an object or an array')
  }
  return document
}

function invalidJson(error: Error): BadRequest {
  const reason = error instanceof RangeError ? 'nested too deeply' : error.message
  return new BadRequest(`Invalid json: ${quotable(reason)}`)
}

const dropPrototype = (key: string, value: unknown) => (key === '__proto__' ? undefined : value)
