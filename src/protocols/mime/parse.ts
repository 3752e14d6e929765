/**
 * Reads a message with its parts: RFC 2045, 2046, 2047, 2231.
 *
 * 1. Header and body are split; addresses, subject and id are read from the header.
 * 2. The body is cut at its delimiter lines, level by level, up to the limits.
 * 3. Each leaf is decoded and becomes text, HTML, AMP or an attachment.
 *
 * What is wrong in a message is read around where that is possible. Left out: nested messages are
 * attachments, never opened (routes-inbound.md section 6 rule 4); flowed text (RFC 3676) stays in lines.
 *
 * Why not postal-mime's parser, whose address parser and word decoder are used here: it takes 10 to 13 µs
 * for each line of an unencoded part (300,000 empty lines: 3.9 s, here 1 ms), which makes small messages
 * stop the service; it has no limit of parts, and gives unencoded files and calendars changed line ends.
 */
import { addressParser } from 'postal-mime'
import { type Mailbox, parseAddressList, parseMailbox } from './address.ts'
import { decodeCharset } from './charset.ts'
import { decodeWords, withoutRawBytes } from './encoded-word.ts'
import { readStructured, type StructuredValue } from './parameters.ts'
import { blankControls } from './quoted/text-safety.ts'
import {
  asBuffer,
  HEADER_LIMITS,
  MimeSyntaxError,
  type RawHeader,
  splitMessage,
  unfoldedValue,
} from './split.ts'
import { decodeContent } from './transfer-encoding.ts'

type ParsedAttachment = {
  /** '' if the part has no name. May hold any character but controls: never use it as a path. */
  filename: string
  contentType: string
  sizeBytes: number
  /** Without angle brackets. */
  contentId: string | null
  disposition: string | null
  content: Uint8Array
}

export type ParsedMessage = {
  headers: [name: string, value: string][]
  from: Mailbox[]
  to: Mailbox[]
  cc: Mailbox[]
  /** '' if there is none. */
  subject: string
  /** With angle brackets as in the message; null if there is none. */
  messageId: string | null
  /** Line ends are LF. Several parts of one kind are joined by a line end. Null if the message has no such part. */
  text: string | null
  html: string | null
  amp: string | null
  attachments: ParsedAttachment[]
}

/** Levels of multipart; mail programs make about five. */
const DEPTH_MAX = 20
/** As Haraka; real mail has below a hundred. Counts multiparts too. */
const PARTS_MAX = 1_000
/** Header bytes of all parts together. */
const PART_HEADERS_BYTES_MAX = 2_097_152
/** Malformed address fields up to this length are searched for addresses that can be used. */
const LENIENT_TEXT_MAX = 65_536
/** Longer boundaries are not legal (70, RFC 2046 §5.1.1) but occur. */
const BOUNDARY_MAX = 200

const [TAB, LF, CR, SPACE, DASH] = [0x09, 0x0a, 0x0d, 0x20, 0x2d]

/**
 * Reads a message. The promise leaves room to read large ones elsewhere.
 * @throws MimeSyntaxError for a header over `limits`, 2 MiB of header in all parts, 20 levels or 1,000
 *   parts; nothing else, whatever the bytes.
 */
export async function parseMessage(raw: Uint8Array, limits = HEADER_LIMITS): Promise<ParsedMessage> {
  const { headers, bodyOffset } = splitMessage(raw, limits)
  const reader = new PartReader()
  reader.read(headers, asBuffer(raw).subarray(bodyOffset), 0, 'text/plain')
  return {
    headers: headers.map(({ name, value }) => [name, value]),
    from: addressesIn(headers, 'from'),
    to: addressesIn(headers, 'to'),
    cc: addressesIn(headers, 'cc'),
    subject: firstField(headers, 'subject')?.value ?? '',
    messageId: firstField(headers, 'message-id')?.value ?? null,
    ...sortLeaves(reader.leaves),
  }
}

/** A part that is no multipart; `content` is decoded. */
type Leaf = {
  type: StructuredValue
  disposition: string | null
  filename: string
  contentId: string | null
  content: Uint8Array
}

class PartReader {
  readonly leaves: Leaf[] = []
  #parts = 0
  #headerBytes = 0

  /** Reads a part and all below it. `defaultType` holds for a part without Content-Type (RFC 2046 §5.1.5). */
  read(headers: readonly RawHeader[], body: Buffer, depth: number, defaultType: string): void {
    if (++this.#parts > PARTS_MAX) throw new MimeSyntaxError(`Message has more than ${PARTS_MAX} parts`)
    const type = readStructured(fieldText(headers, 'content-type') ?? defaultType)
    const sections = type.value.startsWith('multipart/')
      ? sectionsOf(body, type.parameters.get('boundary'))
      : []
    if (sections.length === 0) {
      this.leaves.push(leafOf(headers, type, body, defaultType))
      return
    }
    if (depth === DEPTH_MAX) throw new MimeSyntaxError(`Message has more than ${DEPTH_MAX} levels`)
    const defaultBelow = type.value === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
    for (const section of sections) {
      const { headers: fields, bodyOffset } = splitMessage(section)
      this.#headerBytes += bodyOffset
      if (this.#headerBytes > PART_HEADERS_BYTES_MAX)
        throw new MimeSyntaxError('Headers of the parts are too long')
      this.read(fields, section.subarray(bodyOffset), depth + 1, defaultBelow)
    }
  }
}

/**
 * The bytes between delimiter lines, without the line end before each, which belongs to the delimiter (RFC
 * 2046 §5.1.1). Empty if there is none. The last one may lack its end. At most one more than is allowed.
 */
function sectionsOf(body: Buffer, boundary = ''): Buffer[] {
  if (boundary === '' || boundary.length > BOUNDARY_MAX) return []
  const mark = Buffer.from(`--${boundary}`)
  const sections: Buffer[] = []
  let start = -1
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + 1)) {
    const after = delimiterEnd(body, at, mark.length)
    if (!after) continue
    if (start >= 0) sections.push(body.subarray(start, Math.max(start, withoutLineEnd(body, at))))
    if (after.isLast || sections.length > PARTS_MAX) return sections
    start = after.end
    at = Math.max(at, after.end - 2)
  }
  if (start >= 0) sections.push(body.subarray(start))
  return sections
}

/** Where the delimiter line at `at` ends, null if it is none: text before or after it on its line. */
function delimiterEnd(body: Buffer, at: number, markLength: number): { end: number; isLast: boolean } | null {
  if (at > 0 && body[at - 1] !== LF) return null
  let end = at + markLength
  const isLast = body[end] === DASH && body[end + 1] === DASH
  if (isLast) end += 2
  while (body[end] === SPACE || body[end] === TAB) end++
  if (body[end] === CR && body[end + 1] === LF) end++
  if (end < body.length && body[end] !== LF) return null
  return { end: Math.min(end + 1, body.length), isLast }
}

function withoutLineEnd(body: Buffer, at: number): number {
  if (at === 0 || body[at - 1] !== LF) return at
  return body[at - 2] === CR ? at - 2 : at - 1
}

function leafOf(headers: readonly RawHeader[], given: StructuredValue, body: Buffer, defaultType: string) {
  // A multipart without any delimiter, or what is no type at all, is text.
  const isType = /^[^\s/]+\/[^\s/]+$/.test(given.value) && !given.value.startsWith('multipart/')
  const type = isType ? given : readStructured(defaultType)
  const disposition = fieldText(headers, 'content-disposition')
  const { value, parameters } = readStructured(disposition ?? '')
  const encoding = /[\w-]+/.exec(fieldText(headers, 'content-transfer-encoding') ?? '')?.[0] ?? ''
  const filename = parameters.get('filename') ?? type.parameters.get('name') ?? ''
  return {
    type,
    disposition: value === '' ? null : value,
    filename: decodeWords(filename).trim(),
    contentId: contentIdOf(fieldText(headers, 'content-id')),
    content: decodeContent(body, encoding.toLowerCase()),
  }
}

function contentIdOf(text: string | null): string | null {
  return text === null
    ? null
    : blankControls(text)
        .trim()
        .replace(/^<([^<>]*)>$/, '$1')
}

function sortLeaves(leaves: readonly Leaf[]): Pick<ParsedMessage, 'text' | 'html' | 'amp' | 'attachments'> {
  const texts = new Map<string, string[]>()
  const attachments: ParsedAttachment[] = []
  for (const leaf of leaves) {
    const type = leaf.type.value
    const isBody = leaf.disposition !== 'attachment' && leaf.filename === '' && BODY_TYPES.includes(type)
    // There is one AMP part in the structure that mail programs know; others are files.
    if (isBody && !(type === 'text/x-amp-html' && texts.has(type))) {
      texts.set(type, [...(texts.get(type) ?? []), textOf(leaf)])
    } else attachments.push(attachmentOf(leaf))
  }
  const joined = (type: string) => texts.get(type)?.join('\n') ?? null
  return {
    text: joined('text/plain'),
    html: joined('text/html'),
    amp: joined('text/x-amp-html'),
    attachments,
  }
}

const BODY_TYPES = ['text/plain', 'text/html', 'text/x-amp-html']

function textOf({ content, type }: Leaf): string {
  return decodeCharset(content, type.parameters.get('charset')).replaceAll('\r\n', '\n')
}

function attachmentOf({ type, filename, content, contentId, disposition }: Leaf): ParsedAttachment {
  return { filename, contentType: type.value, sizeBytes: content.byteLength, contentId, disposition, content }
}

function firstField(headers: readonly RawHeader[], name: string): RawHeader | undefined {
  return headers.find((header) => header.name.toLowerCase() === name)
}

/** The first field of a name, unfolded; what decides how a part is read must not be decoded before. */
function fieldText(headers: readonly RawHeader[], name: string): string | null {
  const header = firstField(headers, name)
  return header ? unfoldedValue(header.raw) : null
}

/** All addresses in the fields of one name. */
function addressesIn(headers: readonly RawHeader[], name: string): Mailbox[] {
  return headers
    .filter((header) => header.name.toLowerCase() === name)
    .flatMap((header) => readAddresses(withoutRawBytes(unfoldedValue(header.raw))))
}

/** What can be used of an address field: one bad address must not hide the others. */
function readAddresses(text: string): Mailbox[] {
  try {
    return parseAddressList(text)
  } catch {
    if (text.length > LENIENT_TEXT_MAX) return []
  }
  return addressParser(text, { flatten: true }).flatMap(({ name, address }) => {
    try {
      return address === undefined ? [] : [{ ...parseMailbox(address), name: decodeWords(name).trim() }]
    } catch {
      return []
    }
  })
}
