/**
 * Offsets of the parts of a message, found line by line without holding the message: a body of any size is
 * read once, as a stream. With the offsets one part can be exchanged and all other bytes sent as given.
 *
 * 1. The content fields of the message's own header say whether the body is one part or a multipart.
 * 2. A line that is a delimiter of an open multipart ends the part before it (RFC 2046 §5.1.1); a delimiter
 *    of an outer one ends the inner ones too.
 * 3. The header of each part decides its type; multiparts are opened, everything else is a leaf. Messages
 *    within messages stay closed.
 */
import { isAscii } from 'node:buffer'
import { type Chunk, chunkSize } from '../message/mime-message.ts'
import { decodeWords } from './encoded-word.ts'
import { readStructured } from './parameters.ts'
import { MimeSyntaxError, type RawHeader, splitMessage, unfoldedValue } from './split.ts'
import { LINE_MAX } from './transfer-encoding.ts'

/** Offsets count bytes of the body, from 0. */
export interface MimeLeaf {
  /** Begin of the part's header; -1 if the body is the only part and the message's header describes it. */
  headerStart: number
  start: number
  /** End of the content, without the line end that belongs to the delimiter. */
  end: number
  /** `type/subtype` in lower case. */
  type: string
  charset: string
  /** Lower case; `7bit` if none is given. */
  encoding: string
  disposition: 'inline' | 'attachment' | null
  filename: string
  /** Without angle brackets. */
  contentId: string | null
  /** Size of the content without its transfer encoding; for quoted-printable, of the encoded content. */
  sizeBytes: number
  /** A line of the content, or of the part's header, is longer than a message may have (RFC 5322 §2.1.1). */
  longLine?: true
  /** In a multipart/signed or multipart/encrypted: no byte of it may change (RFC 1847 §2). */
  sealed?: true
}

/** As parseMessage. */
const PARTS_MAX = 1_000
const DEPTH_MAX = 20
/** Header of one part; real ones have a few hundred bytes. */
const PART_HEADER_BYTES_MAX = 65_536
/** Start of a line, as far as a delimiter can reach: RFC 2046 §5.1.1 allows 70 characters. */
const DELIMITER_BYTES_MAX = 256
/**
 * Bytes in memory are scanned in slices, so that other work runs in between: one of nothing but line ends takes about
 * 10 ms.
 */
const SLICE_BYTES = 131_072
const EMPTY = Buffer.alloc(0)
const SEALED = new Set(['multipart/signed', 'multipart/encrypted'])

const [TAB, LF, CR, SPACE, HYPHEN, EQUALS] = [0x09, 0x0a, 0x0d, 0x20, 0x2d, 0x3d]

/** The leaves of a body in order. @throws MimeSyntaxError over 1,000 parts or 20 levels */
export async function findLeaves(headers: readonly RawHeader[], body: Chunk): Promise<MimeLeaf[]> {
  const scanner = new Scanner(headers, false)
  for await (const bytes of slices(body)) scanner.push(bytes)
  return scanner.finish()
}

export interface InspectedBody {
  leaves: MimeLeaf[]
  /** Leaves with bytes above 127 in their content. */
  eightBit: ReadonlySet<MimeLeaf>
  /** Text between contents (headers of parts, delimiters, preambles) has such bytes, or a line that is too long. */
  outside: { eightBit: boolean; longLine: boolean }
}

/** The same, with what a server may refuse. @throws as findLeaves */
export async function inspectBody(headers: readonly RawHeader[], body: Chunk): Promise<InspectedBody> {
  const scanner = new Scanner(headers, true)
  for await (const bytes of slices(body)) scanner.push(bytes)
  const leaves = scanner.finish()
  return { leaves, eightBit: scanner.eightBit, outside: scanner.outside }
}

async function* slices(body: Chunk): AsyncGenerator<Buffer> {
  if (!(body instanceof Uint8Array)) {
    for await (const bytes of body.open()) yield asBuffer(bytes)
    return
  }
  for (let at = 0; at < chunkSize(body); at += SLICE_BYTES) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    yield asBuffer(body.subarray(at, at + SLICE_BYTES))
  }
}

type PartHead = Omit<MimeLeaf, 'headerStart' | 'start' | 'end' | 'sizeBytes'> & { boundary: string | null }

class Scanner {
  readonly eightBit = new Set<MimeLeaf>()
  readonly outside = { eightBit: false, longLine: false }
  readonly #inspects: boolean
  readonly #leaves: MimeLeaf[] = []
  /** Delimiters of the open multiparts, outermost first. */
  readonly #open: string[] = []
  /** How many of them are open at the outermost one that is sealed; 0: none is. */
  #sealedAt = 0
  /** The line being read has bytes above 127. */
  #lineEightBit = false
  /** The header being read has a line that is too long. */
  #longHead = false
  /** In a part's header, in a leaf, or in text that is never shown (before the first part, after the last). */
  #state: 'header' | 'leaf' | 'between' = 'between'
  #leaf: MimeLeaf | null = null
  #head: Buffer[] = []
  #headBytes = 0
  #headStart = 0
  /** First bytes of the line being read. */
  #line: Buffer = EMPTY
  #lineStart = 0
  #at = 0
  /** Bytes of the line end before the present line. */
  #lineEndBytes = 0
  /** Bytes of the leaf's line ends, and "=" at the end of its last line that is not empty. */
  #breakBytes = 0
  #padding = 0
  /** The last bytes of the previous piece, for a line end that is split between two. */
  #before: Buffer = EMPTY

  constructor(headers: readonly RawHeader[], inspects: boolean) {
    this.#inspects = inspects
    this.#enter(headOf(headers), -1, 0)
  }

  push(bytes: Buffer): void {
    let from = 0
    while (from < bytes.length) {
      const newline = bytes.indexOf(LF, from)
      const to = newline < 0 ? bytes.length : newline + 1
      const limit = this.#state === 'header' ? PART_HEADER_BYTES_MAX : DELIMITER_BYTES_MAX
      const mayDelimit = this.#at === this.#lineStart && bytes[from] === HYPHEN
      const wanted = this.#state === 'header' || this.#line.length > 0 || mayDelimit
      if (wanted && this.#line.length < limit) {
        const more = bytes.subarray(from, Math.min(to, from + limit - this.#line.length))
        this.#line = this.#line.length === 0 ? more : Buffer.concat([this.#line, more])
      }
      this.#lineEightBit ||= this.#inspects && !isAscii(bytes.subarray(from, to))
      this.#at += to - from
      if (newline >= 0) {
        const lineEndBytes = this.#byteBefore(bytes, newline, 1) === CR ? 2 : 1
        const leaf = this.#leaf
        this.#endLine(lineEndBytes)
        if (leaf !== null && leaf === this.#leaf) this.#countBreak(bytes, newline, lineEndBytes)
      }
      from = to
    }
    this.#before = Buffer.from(
      bytes.length >= 3 ? bytes.subarray(-3) : Buffer.concat([this.#before, bytes]).subarray(-3),
    )
    // What is kept of an unfinished line must not share memory with a buffer that is used again.
    if (this.#line.length > 0) this.#line = Buffer.from(this.#line)
  }

  /** Up to three bytes before an offset, which may be in the previous piece. */
  #byteBefore(bytes: Buffer, at: number, back: number): number | undefined {
    return at >= back ? bytes[at - back] : this.#before.at(at - back)
  }

  /** Called for every line of a leaf, millions of times in a large one: it allocates nothing. */
  #countBreak(bytes: Buffer, newline: number, lineEndBytes: number): void {
    this.#breakBytes += lineEndBytes
    const last = this.#byteBefore(bytes, newline, lineEndBytes)
    if (last === LF || last === CR) return
    if (last !== EQUALS) this.#padding = 0
    else this.#padding = this.#byteBefore(bytes, newline, lineEndBytes + 1) === EQUALS ? 2 : 1
  }

  finish(): MimeLeaf[] {
    if (this.#at > this.#lineStart) this.#endLine(0)
    if (this.#state === 'header') this.#endHeader(this.#at)
    this.#endLeaf(this.#at)
    return this.#leaves
  }

  #endLine(lineEndBytes: number): void {
    const isLong = this.#at - this.#lineStart - lineEndBytes > LINE_MAX
    this.#takeLine(this.#line, this.#lineStart)
    // A line that is no field ends the header, and is content.
    if (isLong || this.#lineEightBit) this.#noteLine(isLong)
    this.#line = EMPTY
    this.#lineStart = this.#at
    this.#lineEndBytes = lineEndBytes
  }

  #noteLine(isLong: boolean): void {
    if (this.#lineEightBit && this.#leaf) this.eightBit.add(this.#leaf)
    else if (this.#lineEightBit) this.outside.eightBit = true
    this.#lineEightBit = false
    if (!isLong) return
    if (this.#leaf) this.#leaf.longLine = true
    else if (this.#state === 'header') this.#longHead = true
    else this.outside.longLine = true
  }

  #takeLine(line: Buffer, start: number): void {
    if (line[0] === HYPHEN && line[1] === HYPHEN && this.#delimiter(line, start)) return
    if (this.#state !== 'header') return
    if (line[0] === LF || (line[0] === CR && line[1] === LF)) this.#endHeader(this.#at)
    else if (isHeaderLine(line) && this.#headBytes + line.length <= PART_HEADER_BYTES_MAX) {
      this.#head.push(Buffer.from(line))
      this.#headBytes += line.length
    } else this.#endHeader(start)
  }

  /** True if the line is a delimiter of an open multipart. */
  #delimiter(line: Buffer, start: number): boolean {
    if (this.#open.length === 0) return false
    const text = line.toString('latin1').trimEnd().slice(2)
    const level = this.#open.findLastIndex((boundary) => text === boundary || text === `${boundary}--`)
    if (level < 0) return false
    if (this.#state === 'header') this.#endHeader(start)
    this.#endLeaf(Math.max(start - this.#lineEndBytes, 0))
    const closes = text !== this.#open[level]
    this.#open.length = closes ? level : level + 1
    if (this.#sealedAt > this.#open.length) this.#sealedAt = 0
    this.#state = closes ? 'between' : 'header'
    this.#head = []
    this.#headBytes = 0
    this.#headStart = this.#at
    return true
  }

  #endHeader(start: number): void {
    const { headers } = splitMessage(Buffer.concat(this.#head))
    this.#enter(headOf(headers), this.#headStart, start)
  }

  #enter({ boundary, ...head }: PartHead, headerStart: number, start: number): void {
    if (boundary !== null) {
      if (this.#open.length === DEPTH_MAX)
        throw new MimeSyntaxError(`Message has more than ${DEPTH_MAX} levels`)
      this.#open.push(boundary)
      this.#longHead = false
      if (this.#sealedAt === 0 && SEALED.has(head.type)) this.#sealedAt = this.#open.length
      this.#state = 'between'
      return
    }
    if (this.#leaves.length === PARTS_MAX)
      throw new MimeSyntaxError(`Message has more than ${PARTS_MAX} parts`)
    this.#leaf = { headerStart, start, end: start, ...head, sizeBytes: 0 }
    if (this.#sealedAt > 0) this.#leaf.sealed = true
    if (this.#longHead) this.#leaf.longLine = true
    this.#longHead = false
    this.#breakBytes = 0
    this.#padding = 0
    this.#leaves.push(this.#leaf)
    this.#state = 'leaf'
  }

  #endLeaf(end: number): void {
    const leaf = this.#leaf
    if (!leaf) return
    leaf.end = Math.max(end, leaf.start)
    const encoded = leaf.end - leaf.start
    // The last break belongs to the delimiter, if there is one; it was counted with the others.
    const breaks = this.#breakBytes - Math.max(0, this.#at - leaf.end > 0 ? this.#lineEndBytes : 0)
    const characters = Math.max(0, encoded - Math.max(0, breaks))
    leaf.sizeBytes =
      leaf.encoding === 'base64' ? Math.max(0, Math.floor((characters * 3) / 4) - this.#padding) : encoded
    this.#leaf = null
  }
}

/** A field's first line or a continuation of it. */
function isHeaderLine(line: Buffer): boolean {
  if (line[0] === SPACE || line[0] === TAB) return true
  return /^[\x21-\x39\x3b-\x7e]+[ \t]*:/.test(line.toString('latin1'))
}

function headOf(headers: readonly RawHeader[]): PartHead {
  const field = (name: string) => {
    const header = headers.find((candidate) => candidate.name.toLowerCase() === name)
    return header ? unfoldedValue(header.raw) : ''
  }
  const content = readStructured(field('content-type'))
  const disposition = readStructured(field('content-disposition'))
  const type = /^[^\s/;]+\/[^\s/;]+$/.test(content.value) ? content.value : 'text/plain'
  const boundary = type.startsWith('multipart/') ? content.parameters.get('boundary') : undefined
  const kind = disposition.value
  return {
    type,
    boundary: boundary === undefined || boundary === '' ? null : boundary.trimEnd(),
    charset: content.parameters.get('charset') ?? 'us-ascii',
    encoding: field('content-transfer-encoding').toLowerCase() || '7bit',
    disposition: kind === 'inline' || kind === 'attachment' ? kind : null,
    filename: decodeWords(
      disposition.parameters.get('filename') ?? content.parameters.get('name') ?? '',
    ).trim(),
    contentId: /<([^<>]{1,900})>/.exec(field('content-id'))?.[1] ?? null,
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
