/**
 * Converts a message that a server cannot take as it is: into one without bytes above 127, for a server without 8BITMIME
 * (RFC 6152 §3), or without lines over 998 bytes (RFC 5322 §2.1.1).
 *
 * 1. The body is scanned once: which contents need it, and whether anything between them does.
 * 2. A content that needs it is transfer-encoded: text as quoted-printable or base64, a message within it by these same
 *    rules (RFC 2046 §5.2.1 allows no encoding of it), anything else as base64. Decoded it is unchanged.
 * 3. Header fields of parts, and text that readers never see, are rewritten where they need it.
 *
 * All other bytes stay. Nothing within multipart/signed or multipart/encrypted changes: long lines are kept there, and a
 * message with 8-bit bytes there cannot be converted.
 */
import { isAscii } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Chunk,
  chunkSize,
  type LazyChunk,
  readChunk,
  readChunks,
  scanChunks,
  sliceChunk,
} from '../message/mime-message.ts'
import { headerField, parameterField } from './header.ts'
import { readStructured } from './parameters.ts'
import { type InspectedBody, inspectBody, type MimeLeaf } from './part-map.ts'
import { MimeSyntaxError, type RawHeader, splitMessage, unfoldedValue } from './split.ts'
import {
  decodeContent,
  encodeBase64Chunk,
  encodeEightBit,
  LINE_MAX,
  type TransferEncoding,
  toCrlf,
} from './transfer-encoding.ts'

export type Need = 'seven-bit' | 'short-lines'

export interface Fit {
  /** Content fields that replace the message's own; null: keep those. */
  fields: string[] | null
  body: Chunk[]
  /** False: no conversion was needed. */
  changed: boolean
}

/** Texts up to this size are encoded in memory, as the shorter of two encodings; larger ones as base64 while they are read. */
const TEXT_IN_MEMORY_MAX = 1024 * 1024
/** Each piece of a lazy body is searched from the start of the body: with more parts the body is read once, as a whole. */
const LAZY_PIECES_MAX = 16
/** Header of a message within the message, as splitMessage takes it. */
const HEAD_BYTES_MAX = 1_048_576 + 65_536
/** Messages within messages; mail programs make two. */
const NESTED_MAX = 10

const [LF, HYPHEN, QUESTION_MARK] = [0x0a, 0x2d, 0x3f]
const NOT_ASCII = /[^\x00-\x7f]/
const ENCODING_FIELD = /^content-transfer-encoding$/i
const CONTENT_FIELD = /^content-(?:type|transfer-encoding)$/i
const IDENTITY = new Set(['7bit', '8bit', 'binary'])
const KNOWN_ENCODINGS = new Set([...IDENTITY, 'quoted-printable', 'base64'])

/**
 * `headers`: the message's own, of which only the content fields are read. Null: the message cannot be converted.
 * @throws MimeSyntaxError over 1,000 parts or 20 levels; what reading a lazy chunk throws
 */
export async function makeFit(
  headers: readonly RawHeader[],
  body: readonly Chunk[],
  need: Need,
  nested = 0,
): Promise<Fit | null> {
  let whole = joined(body)
  const found = await inspectBody(headers, whole)
  const needy = found.leaves.filter((leaf) => needs(found, leaf, need))
  const { eightBit, longLine } = found.outside
  if (needy.length === 0 && !(need === 'seven-bit' ? eightBit : longLine))
    return { fields: null, body: [...body], changed: false }
  if (found.leaves.length > LAZY_PIECES_MAX) whole = await readChunk(whole)
  const encoded = new Map<MimeLeaf, Encoded>()
  for (const leaf of needy) {
    const content = await encodeLeaf(leaf, sliceChunk(whole, leaf.start, leaf.end), need, nested)
    if (content) encoded.set(leaf, content)
    else if (need === 'seven-bit') return null
  }
  const writer = new Writer(whole, need)
  let fields = topFields(headers, need)
  for (const leaf of found.leaves) {
    const content = encoded.get(leaf) ?? null
    if (leaf.headerStart < 0 && content) fields = contentFields(headers, content.encoding, need)
    if (!(await writer.part(leaf, content))) return null
  }
  if (!(await writer.between(chunkSize(whole)))) return null
  return { fields, body: writer.chunks, changed: true }
}

/** Rewrites the body from its beginning to its end. */
class Writer {
  readonly chunks: Chunk[] = []
  readonly #whole: Chunk
  readonly #need: Need
  #at = 0
  /** The part before is sealed, and so is what follows it up to the next one. */
  #sealed = false

  constructor(whole: Chunk, need: Need) {
    this.#whole = whole
    this.#need = need
  }

  /** False: it cannot be made fit. */
  async part(leaf: MimeLeaf, content: Encoded | null): Promise<boolean> {
    this.#sealed ||= leaf.sealed === true
    if (leaf.headerStart >= 0) {
      if (!(await this.between(leaf.headerStart))) return false
      const given = await readChunk(sliceChunk(this.#whole, leaf.headerStart, leaf.start))
      if (leaf.sealed && this.#need === 'seven-bit' && !isAscii(given)) return false
      const isFit = this.#need === 'seven-bit' ? isAscii(given) : !leaf.longLine
      const keeps = leaf.sealed || (content === null && isFit)
      this.chunks.push(keeps ? given : partHead(given, content?.encoding ?? null, this.#need))
    }
    this.#sealed = leaf.sealed === true
    if (content) this.chunks.push(...content.chunks)
    else if (leaf.end > leaf.start) this.chunks.push(sliceChunk(this.#whole, leaf.start, leaf.end))
    this.#at = leaf.end
    return true
  }

  /** Text before an offset that belongs to no part. False: it cannot be converted. */
  async between(end: number): Promise<boolean> {
    if (end <= this.#at) return true
    const given = await readChunk(sliceChunk(this.#whole, this.#at, end))
    const fit = this.#sealed ? sealed(given, this.#need) : await between(given, this.#need)
    if (fit === null) return false
    this.chunks.push(fit)
    this.#at = end
    return true
  }
}

const sealed = (bytes: Buffer, need: Need) => (need === 'short-lines' || isAscii(bytes) ? bytes : null)

function needs({ eightBit }: InspectedBody, leaf: MimeLeaf, need: Need): boolean {
  return need === 'seven-bit' ? eightBit.has(leaf) : leaf.longLine === true && leaf.sealed !== true
}

interface Encoded {
  encoding: TransferEncoding
  chunks: Chunk[]
}

/** Null: it may not be encoded. */
async function encodeLeaf(leaf: MimeLeaf, content: Chunk, need: Need, nested: number) {
  const { type, encoding } = leaf
  if (leaf.sealed || !KNOWN_ENCODINGS.has(encoding)) return null
  if (type.startsWith('message/') && IDENTITY.has(encoding)) {
    if (type !== 'message/rfc822' && type !== 'message/global') return encodeOther(type, content)
    return nested < NESTED_MAX ? encodeMessage(content, need, nested + 1) : null
  }
  if (type.startsWith('multipart/')) return null
  if (!IDENTITY.has(encoding)) {
    const decoded = Buffer.from(decodeContent(await readChunk(content), encoding))
    return type.startsWith('text/') ? asText(decoded) : base64(decoded)
  }
  if (!type.startsWith('text/') || chunkSize(content) > TEXT_IN_MEMORY_MAX) return base64(content)
  const text = (await readChunk(content)).toString('latin1')
  return asText(Buffer.from(toCrlf(text), 'latin1'))
}

const base64 = (content: Chunk): Encoded => ({ encoding: 'base64', chunks: [encodeBase64Chunk(content)] })

function asText(bytes: Buffer): Encoded {
  const { encoding, content } = encodeEightBit(bytes)
  return { encoding, chunks: [content] }
}

/** Reports are text in lines (RFC 3464); fragments and references cannot be encoded (RFC 2046 §5.2.2, §5.2.3). */
function encodeOther(type: string, content: Chunk): Encoded | null {
  return type === 'message/partial' || type === 'message/external-body' ? null : base64(content)
}

async function encodeMessage(content: Chunk, need: Need, nested: number): Promise<Encoded | null> {
  try {
    return await fitMessage(content, need, nested)
  } catch (error) {
    if (error instanceof MimeSyntaxError) return null
    throw error
  }
}

/** @throws MimeSyntaxError */
async function fitMessage(content: Chunk, need: Need, nested: number): Promise<Encoded | null> {
  const head = await readChunk(sliceChunk(content, 0, Math.min(chunkSize(content), HEAD_BYTES_MAX)))
  const { headers, bodyOffset } = splitMessage(head)
  const inner = await makeFit(headers, [sliceChunk(content, bodyOffset, chunkSize(content))], need, nested)
  if (!inner) return null
  const kept = inner.fields ? headers.filter(({ name }) => !CONTENT_FIELD.test(name)) : headers
  const fields = [...kept.map((header) => fitField(header, need)), ...(inner.fields ?? [])]
  return { encoding: '7bit', chunks: [Buffer.from(`${fields.join('\r\n')}\r\n\r\n`), ...inner.body] }
}

/** The fields of a multipart with its new label, when its parts have no 8-bit bytes any more. Null: the fields are right. */
function topFields(headers: readonly RawHeader[], need: Need): string[] | null {
  const label = headers.find(({ name }) => ENCODING_FIELD.test(name))
  if (need !== 'seven-bit' || !label || !/^(?:8bit|binary)$/i.test(label.value)) return null
  return contentFields(headers, '7bit', need)
}

function contentFields(headers: readonly RawHeader[], encoding: TransferEncoding, need: Need): string[] {
  const types = headers.filter(({ name }) => CONTENT_FIELD.test(name) && !ENCODING_FIELD.test(name))
  return [...types.map((header) => fitField(header, need)), `Content-Transfer-Encoding: ${encoding}`]
}

/** The header of a part with the empty line after it; `encoding` null: that of the part is kept. */
function partHead(given: Buffer, encoding: TransferEncoding | null, need: Need): Buffer {
  const { headers } = splitMessage(given)
  const kept = encoding === null ? headers : headers.filter(({ name }) => !ENCODING_FIELD.test(name))
  const fields = kept.map((header) => fitField(header, need))
  if (encoding !== null) fields.push(`Content-Transfer-Encoding: ${encoding}`)
  return Buffer.from(`${fields.map((field) => `${field}\r\n`).join('')}\r\n`)
}

/** A field as it is, or rewritten if it must not be sent so. */
function fitField({ name, raw, value }: RawHeader, need: Need): string {
  const isLong = raw.split('\r\n').some((line) => Buffer.byteLength(line) > LINE_MAX)
  if (!isLong && (need === 'short-lines' || !NOT_ASCII.test(raw))) return raw
  if (!/^content-(?:type|disposition)$/i.test(name)) return headerField(name, value)
  const { value: kind, parameters } = readStructured(unfoldedValue(raw))
  // A type or a parameter's name with such bytes means nothing to anybody.
  return parameterField(name, kind, [...parameters]).replace(/[^\x00-\x7f]/g, '?')
}

/** A stranger's preamble may have 25 MB: it is rewritten in slices, so that other work runs in between. */
const SLICE_BYTES = 131_072

/** Preambles, epilogues, delimiters, headers of multiparts. Null: a delimiter has bytes that cannot be replaced. */
async function between(bytes: Buffer, need: Need): Promise<Buffer | null> {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    if (at > 0) await nextTurn()
    const lineEnd = bytes.indexOf(LF, at + SLICE_BYTES)
    const end = lineEnd < 0 ? bytes.length : lineEnd + 1
    const lines = bytes.subarray(at, end)
    const fit = need === 'seven-bit' ? sevenBitLines(lines) : shortLines(lines)
    if (fit === null) return null
    pieces.push(fit)
    at = end
  }
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}

const ENCODING_LABEL = /^(content-transfer-encoding:[ \t]*)(?:8bit|binary)\b/gim

function sevenBitLines(lines: Buffer): Buffer | null {
  const fit = Buffer.from(lines)
  let lineStart = 0
  for (let at = 0; at < fit.length; at++) {
    const byte = fit[at] as number
    if (byte === LF) lineStart = at + 1
    if (byte < 0x80) continue
    if (fit[lineStart] === HYPHEN && fit[lineStart + 1] === HYPHEN) return null
    fit[at] = QUESTION_MARK
  }
  return Buffer.from(fit.toString('latin1').replace(ENCODING_LABEL, '$17bit'), 'latin1')
}

function shortLines(lines: Buffer): Buffer {
  const text = lines.toString('latin1')
  let fit = ''
  for (let at = 0; at < text.length; ) {
    const lineEnd = text.indexOf('\n', at)
    const end = lineEnd < 0 ? text.length : lineEnd + 1
    const line = text.slice(at, end)
    fit += end - at > LINE_MAX + 2 ? folded(line) : line
    at = end
  }
  return Buffer.from(fit, 'latin1')
}

/** Where a long line is broken, if there is a blank so soon. */
const FOLDED_MAX = 900

/** Breaks a line at its blanks, where a field may be folded. One without a blank stays. */
function folded(line: string): string {
  const isBreak = (at: number) => /[ \t]/.test(line[at] ?? '') && /[^\r\n]/.test(line[at + 1] ?? '\n')
  const pieces: string[] = []
  for (let start = 0; start < line.length; ) {
    let at = Math.min(start + FOLDED_MAX, line.length)
    while (at > start && !isBreak(at)) at--
    if (at === start) for (at = start + FOLDED_MAX; at < line.length && !isBreak(at); ) at++
    pieces.push(line.slice(start, at))
    start = at
  }
  return pieces.join('\r\n')
}

function joined(body: readonly Chunk[]): Chunk {
  const [only] = body
  if (only && body.length === 1) return only
  if (body.every((chunk) => chunk instanceof Uint8Array)) return Buffer.concat(body)
  const whole: LazyChunk = {
    sizeBytes: body.reduce((sum, chunk) => sum + chunkSize(chunk), 0),
    open: () => readChunks(body),
    openScratch: () => scanChunks(body),
  }
  return whole
}
