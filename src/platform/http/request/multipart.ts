/**
 * multipart/form-data (RFC 7578) read as it arrives. Fields are collected, files are consumed by `Uploads`
 * one after the other; while a file's consumer lags, nothing more is read from the connection.
 */
import { type EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MIMEType } from 'node:util'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { remember } from '../../../base/flow/cache.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { decodeWords } from '../../../protocols/mime/encoded-word.ts'
import { formatContentType, parseContentType } from '../../../protocols/mime/parameters.ts'
import { FIELDS_MAX, type Fields, plainName } from './params.ts'
import type { Uploads } from './uploads.ts'

/** A message holds at most this many files; the composer's own limit of 1,000 MIME parts is near. */
const FILES_MAX = 1_000
/** One text value: no html or text part can be larger than the largest built message. */
const FIELD_BYTES_MAX = 25 * 1024 * 1024
/** Header lines of one part: Content-Disposition, Content-Type and a few that clients add. */
const PART_HEADERS_MAX = 32
const PART_HEADER_BYTES_MAX = 16 * 1024
const malformed = (cause?: unknown) =>
  new BadRequest('malformed multipart/form-data request', cause === undefined ? {} : { cause })
const unparsable = (why: string) => new BadRequest(`unable to parse request: ${why}`)

/**
 * Reads the whole form. Files go to `uploads`, or are skipped where that is null.
 * @throws BadRequest `malformed multipart/form-data request` for anything that breaks the syntax, also an
 *   early end; and what `source` or `uploads` throw. No file is being read any more when it throws.
 */
export async function readMultipart(
  source: AsyncIterable<Uint8Array>,
  contentType: string,
  fields: Fields,
  uploads: Uploads | null,
): Promise<void> {
  const form = createForm(contentType)
  const texts = new TextValues(fields)
  const part = watchTypes(form)
  const open = new Set<BusboyFileStream>()
  const readers: Promise<void>[] = []
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {}) // also awaited below; a late failure must not count as unhandled
  form.on('error', (error) => failure.reject(malformed(error)))
  form.on('partsLimit', () => failure.reject(unparsable('too many parts')))
  form.on('filesLimit', () => failure.reject(unparsable(`more than ${FILES_MAX} files`)))
  form.on('field', (name, value, _nameCut, cut) => {
    try {
      checkField(name, cut)
      texts.add(name, value, part.charset)
    } catch (error) {
      failure.reject(error)
    }
  })
  form.on('file', (name, stream, filename) => {
    stream.on('error', () => {}) // the reader below sees it too
    if (name === undefined) failure.reject(malformed())
    if (uploads === null || name === undefined) {
      stream.resume()
      return
    }
    open.add(stream)
    const head = {
      ...{ fieldName: plainName(name), filename: fileName(filename ?? '') },
      contentType: part.type === null ? null : canonicalType(part.type),
    }
    const reader = uploads.receive(head, stream).finally(() => open.delete(stream))
    readers.push(reader)
    reader.catch((error) => failure.reject(error))
  })
  try {
    await feed(form, source, failure.promise)
    await Promise.race([Promise.all(readers), failure.promise])
    await texts.finish()
  } catch (error) {
    for (const stream of open) stream.destroy()
    await Promise.allSettled(readers)
    throw error
  }
}

function createForm(contentType: string): BusboyInstance {
  const limits = {
    fieldSize: FIELD_BYTES_MAX,
    fields: FIELDS_MAX + 1, // `Fields` itself refuses the one too many, with the same text for every encoding
    files: FILES_MAX,
    parts: FIELDS_MAX + FILES_MAX,
    headerPairs: PART_HEADERS_MAX,
    headerSize: PART_HEADER_BYTES_MAX,
  }
  try {
    return new Busboy({ headers: { 'content-type': contentType }, limits, defCharset: UNDECODED })
  } catch (error) {
    throw malformed(error) // no boundary
  }
}

/** What the parser does not tell about the part that it is reading. */
interface PartTypes {
  /** As sent; null: none. */
  type: string | null
  /** Charset of a text value; a name of the Encoding Standard. */
  charset: string
}

/** The parser leaves a text in this charset as it is: one character for each byte. */
const UNDECODED = 'latin1'
const UTF8 = 'utf-8'

/**
 * Reads the part's own header fields, which the parser's inner parser emits first.
 *
 * 1. The parser reports `text/plain` for a part without a Content-Type (RFC 7578 §4.4).
 * 2. It decodes a text in the charset named there, and takes up to 200 ms of a turn for a large one. The parameters are
 *    removed, and `TextValues` decodes.
 */
function watchTypes(form: BusboyInstance): PartTypes {
  const { parser } = (form as unknown as { _parser: { parser: EventEmitter } })._parser
  const types: PartTypes = { type: null, charset: UTF8 }
  parser.prependListener('part', (part: EventEmitter) => {
    part.once('header', (header: Record<string, string[]>) => {
      const type = header['content-type']?.[0]
      types.type = type ?? null
      types.charset = UTF8
      if (type === undefined) return
      const end = type.indexOf(';')
      if (end >= 0) types.charset = charsetOf(type)
      // The parser itself trims and unquotes a type with a semicolon only.
      header['content-type'] = [end < 0 ? type.trim() : type.slice(0, end + 1)]
    })
  })
  return types
}

/** .NET writes a name that is not ASCII as an encoded word, which RFC 7578 §4.2 does not know. */
const fileName = (given: string): string =>
  given.includes('=?')
    ? decodeWords(given)
        .trim()
        .replace(/^.*[\\/]/, '')
    : given

/** Null: it cannot be read. Some clients put the media type in quotes. */
function canonicalType(given: string): string | null {
  const type = parseContentType(given.replace(/^\s*"([^";]*)"/, '$1'))
  return type === null ? null : formatContentType(type)
}

/** By the content types that clients send, which are few. */
const charsets = new Map<string, string>()
const REMEMBERED_MAX = 50

const charsetOf = (contentType: string): string =>
  charsets.get(contentType) ?? remember(charsets, REMEMBERED_MAX, contentType, charsetIn(contentType))

/** By the name that the Encoding Standard has for it. What that does not know is read as UTF-8. */
function charsetIn(contentType: string): string {
  try {
    return new TextDecoder(new MIMEType(contentType).params.get('charset') ?? UTF8).encoding
  } catch {
    return UTF8
  }
}

/** `name` is undefined in a part without one, though the parser's types deny it. */
function checkField(name: string | undefined, cut: boolean): void {
  if (name === undefined) throw malformed()
  if (cut) throw unparsable(`parameter ${name.slice(0, 100)} is larger than 25MiB`)
}

/** A text of this size is decoded in a tenth of a millisecond, in the slowest charset in 7 ms. */
const AT_ONCE_MAX_BYTES = 64 * 1024

interface UndecodedText {
  name: string
  /** One character for each byte. */
  bytes: string
  charset: string
}

/** Decodes the text values of a form, large ones in turns of their own, and adds them to `fields` in their order. */
class TextValues {
  readonly #fields: Fields
  /** The first large value and all after it, until they are decoded. */
  readonly #waiting: UndecodedText[] = []

  constructor(fields: Fields) {
    this.#fields = fields
  }

  /** @throws BadRequest over FIELDS_MAX values. */
  add(name: string, bytes: string, charset: string): void {
    const text = { name, bytes, charset }
    if (this.#waiting.length === 0 && bytes.length <= AT_ONCE_MAX_BYTES) this.#take(text)
    else this.#waiting.push(text)
  }

  /** @throws BadRequest over FIELDS_MAX values. */
  async finish(): Promise<void> {
    for (;;) {
      const text = this.#waiting.shift()
      if (text === undefined) return
      if (text.bytes.length <= AT_ONCE_MAX_BYTES) await inTurn(() => this.#take(text))
      else await this.#takeLarge(text)
    }
  }

  #take({ name, bytes, charset }: UndecodedText): void {
    this.#fields.add(name, bytes === '' ? '' : decode(Buffer.from(bytes, 'latin1'), charset))
  }

  /** What comes next, such as the use of the values, is in another turn. */
  async #takeLarge({ name, bytes, charset }: UndecodedText): Promise<void> {
    await nextTurn()
    this.#fields.add(name, await decodeInPieces(bytes, charset))
    await nextTurn()
  }
}

const decoderOf = (charset: string) => new TextDecoder(charset, { ignoreBOM: true })

function decode(bytes: Buffer, charset: string): string {
  return charset === UTF8 ? bytes.toString('utf8') : decoderOf(charset).decode(bytes)
}

/** @param bytes one character for each byte */
async function decodeInPieces(bytes: string, charset: string): Promise<string> {
  const decoder = decoderOf(charset)
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += AT_ONCE_MAX_BYTES) {
    const end = at + AT_ONCE_MAX_BYTES
    const decodePiece = () => decoder.decode(Buffer.from(bytes.slice(at, end), 'latin1'), { stream: true })
    pieces.push(await inTurn(decodePiece))
  }
  await nextTurn()
  return pieces.join('') + decoder.decode()
}

async function feed(form: BusboyInstance, source: AsyncIterable<Uint8Array>, failure: Promise<never>) {
  const finished = once(form, 'finish')
  finished.catch(() => {}) // rejects on 'error', which `failure` reports with the contract's text
  for await (const chunk of source) {
    const mayGoOn = await inTurn(() => form.write(chunk))
    if (!mayGoOn) await Promise.race([once(form, 'drain').catch(() => failure), failure])
    else await Promise.race([failure, Promise.resolve()])
  }
  form.end()
  await Promise.race([finished.catch(() => failure), failure])
}

/**
 * The time that splitting forms may take between two turns of the event loop, shared by all requests: the chunks of
 * many connections arrive in the same turn, and a chunk of small parts takes up to 10 ms.
 */
const TURN_MS = 10

let spentMs = 0
let isResetDue = false

/** Runs `work` in the first turn that has time left; the time it takes counts for that turn. */
async function inTurn<T>(work: () => T): Promise<T> {
  while (spentMs >= TURN_MS) await nextTurn()
  if (!isResetDue) {
    isResetDue = true
    setImmediate(reset)
  }
  const startedAt = performance.now()
  try {
    return work()
  } finally {
    spentMs += performance.now() - startedAt
  }
}

function reset(): void {
  spentMs = 0
  isResetDue = false
}
