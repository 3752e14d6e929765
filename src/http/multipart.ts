/**
 * multipart/form-data (RFC 7578) read as it arrives. Fields are collected, files are consumed by `Uploads`
 * one after the other; while a file's consumer lags, nothing more is read from the connection.
 */
import { type EventEmitter, once } from 'node:events'
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import { BadRequest } from '../base/errors.ts'
import { FIELDS_MAX, type Fields, plainName } from './params.ts'
import { inTurn } from './turn-share.ts'
import type { Uploads } from './uploads.ts'

/** A message holds at most this many files; the composer's own limit of 1,000 MIME parts is near. */
const FILES_MAX = 1_000
/** One text value: no html or text part can be larger than the largest built message. */
export const FIELD_BYTES_MAX = 25 * 1024 * 1024
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
  const hasType = watchTypes(form)
  const open = new Set<BusboyFileStream>()
  const readers: Promise<void>[] = []
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => {}) // also awaited below; a late failure must not count as unhandled
  form.on('error', (error) => failure.reject(malformed(error)))
  form.on('partsLimit', () => failure.reject(unparsable('too many parts')))
  form.on('filesLimit', () => failure.reject(unparsable(`more than ${FILES_MAX} files`)))
  form.on('field', (name, value, _nameCut, cut) => {
    try {
      addField(fields, name, value, cut)
    } catch (error) {
      failure.reject(error)
    }
  })
  form.on('file', (name, stream, filename, _encoding, mimeType) => {
    stream.on('error', () => {}) // the reader below sees it too
    if (name === undefined) failure.reject(malformed())
    if (uploads === null || name === undefined) {
      stream.resume()
      return
    }
    open.add(stream)
    const sentType = hasType() ? mimeType : null
    const head = { fieldName: plainName(name), filename: filename ?? '', contentType: sentType }
    const reader = uploads.receive(head, stream).finally(() => open.delete(stream))
    readers.push(reader)
    reader.catch((error) => failure.reject(error))
  })
  try {
    await feed(form, source, failure.promise)
    await Promise.race([Promise.all(readers), failure.promise])
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
    return new Busboy({ headers: { 'content-type': contentType }, limits })
  } catch (error) {
    throw malformed(error) // no boundary
  }
}

/**
 * Whether the part that is being read has a Content-Type. The parser reports `text/plain` for a part without one
 * (RFC 7578 §4.4); only the part's own header fields, which its inner parser emits first, distinguish the two.
 */
function watchTypes(form: BusboyInstance): () => boolean {
  const { parser } = (form as unknown as { _parser: { parser: EventEmitter } })._parser
  let hasType = false
  parser.prependListener('part', (part: EventEmitter) => {
    part.once('header', (header: Record<string, unknown>) => {
      hasType = header['content-type'] !== undefined
    })
  })
  return () => hasType
}

/** `name` is undefined in a part without one, though the parser's types deny it. */
function addField(fields: Fields, name: string | undefined, value: string, cut: boolean): void {
  if (name === undefined) throw malformed()
  if (cut) throw unparsable(`parameter ${name.slice(0, 100)} is larger than 25MiB`)
  fields.add(name, value)
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
