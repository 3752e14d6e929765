/**
 * Reads a message: its header block (splitMessage) and, through postal-mime, its parts (parseMessage).
 *
 * There is one view of the header block: postal-mime sees only the content fields that splitMessage found,
 * so that nobody can show one From to a check and another to a reader. The block ends, as Postfix has it,
 * at the first empty line or at the first line that is no field; that line is body.
 *
 * Left out: nested messages are attachments, never opened (contract, routes-inbound.md rule 4).
 */
import PostalMime, { type Attachment, addressParser, type Email } from 'postal-mime'
import { type Mailbox, parseAddressList, parseMailbox } from './address.ts'
import { decodeWords } from './encoded-word.ts'
import { isHeaderName } from './header.ts'

export class MimeSyntaxError extends Error {
  override name = 'MimeSyntaxError'
}

/**
 * `raw` is the field as sent, without its final CRLF, folds as CRLF; bare CR and NUL in it are spaces. It is
 * decoded as UTF-8 where the bytes are that, else as Latin-1, so that no byte is lost.
 * `value` is unfolded, with encoded words decoded: for people, not for parsing addresses.
 */
export type RawHeader = { name: string; raw: string; value: string }

export type ParsedAttachment = {
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
  /** Line ends are LF. Null if the message has no such part. */
  text: string | null
  html: string | null
  amp: string | null
  attachments: ParsedAttachment[]
}

/** As Haraka; real mail has below a hundred. */
const FIELDS_MAX = 1_000
const HEADER_BYTES_MAX = 1_048_576
/** Levels of multipart; mail clients make about five. */
const DEPTH_MAX = 20
const PARTS_MAX = 1_000
/** Malformed address fields up to this length are searched for addresses that can be used. */
const LENIENT_TEXT_MAX = 65_536

const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20]
const CONTENT_FIELDS = new Set([
  'content-type',
  'content-transfer-encoding',
  'content-disposition',
  'content-id',
])

/**
 * Splits a message into header fields and body; line ends may be CRLF or LF. A leading mbox line ("From ")
 * is skipped. `bodyOffset` counts bytes from the start of `raw`; without a body it is the length.
 * @throws MimeSyntaxError for more than 1,000 fields or 1 MiB of header.
 */
export function splitMessage(raw: Uint8Array): { headers: RawHeader[]; bodyOffset: number } {
  const bytes = asBuffer(raw)
  const headers: RawHeader[] = []
  let at = isMboxLine(bytes) ? lineEnd(bytes, 0) : 0
  while (at < bytes.length) {
    const emptyLine = emptyLineLength(bytes, at)
    if (emptyLine > 0) return { headers, bodyOffset: at + emptyLine }
    const end = fieldEnd(bytes, at)
    if (end > HEADER_BYTES_MAX) throw new MimeSyntaxError(`Header is longer than ${HEADER_BYTES_MAX} bytes`)
    const header = readField(bytes.subarray(at, end))
    if (!header) return { headers, bodyOffset: at }
    if (headers.length === FIELDS_MAX) throw new MimeSyntaxError(`Header has more than ${FIELDS_MAX} fields`)
    headers.push(header)
    at = end
  }
  return { headers, bodyOffset: bytes.length }
}

/** The value of a raw field without its folds and surrounding blanks; encoded words stay. RFC 5322 §2.2.3. */
export function unfoldedValue(raw: string): string {
  return raw
    .slice(raw.indexOf(':') + 1)
    .replaceAll('\r\n', '')
    .trim()
}

/**
 * Reads a message with all its parts. What is wrong in a message is read around where that is possible.
 * @throws MimeSyntaxError over the limits of splitMessage, 20 levels or 1,000 parts; nothing else.
 */
export async function parseMessage(raw: Uint8Array): Promise<ParsedMessage> {
  const { headers, bodyOffset } = splitMessage(raw)
  const body = asBuffer(raw).subarray(bodyOffset)
  if (countParts(headers, body) > PARTS_MAX)
    throw new MimeSyntaxError(`Message has more than ${PARTS_MAX} parts`)
  const email = await readParts(headers, body)
  const { attachments, amp } = sortAttachments(email.attachments)
  return {
    headers: headers.map(({ name, value }) => [name, value]),
    from: addressesIn(headers, 'from'),
    to: addressesIn(headers, 'to'),
    cc: addressesIn(headers, 'cc'),
    subject: firstValue(headers, 'subject') ?? '',
    messageId: firstValue(headers, 'message-id'),
    text: email.text ?? null,
    html: email.html ?? null,
    amp,
    attachments,
  }
}

function isMboxLine(bytes: Buffer): boolean {
  return bytes.subarray(0, 6).toString('latin1').replace(/^>/, '').startsWith('From ')
}

/** Offset behind the line that contains `at`. */
function lineEnd(bytes: Buffer, at: number): number {
  const end = bytes.indexOf(LF, at)
  return end < 0 ? bytes.length : end + 1
}

/** Bytes of the empty line at `at`, 0 if the line is not empty. */
function emptyLineLength(bytes: Buffer, at: number): number {
  if (bytes[at] === LF) return 1
  return bytes[at] === CR && bytes[at + 1] === LF ? 2 : 0
}

/** Offset behind the field at `at` with its continuation lines. */
function fieldEnd(bytes: Buffer, at: number): number {
  let end = lineEnd(bytes, at)
  while ((bytes[end] === SPACE || bytes[end] === TAB) && end <= HEADER_BYTES_MAX) end = lineEnd(bytes, end)
  return end
}

/** Null if the line is no field: no colon, or a name with other characters than RFC 5322 §3.6.8 has. */
function readField(bytes: Buffer): RawHeader | null {
  const colon = bytes.indexOf(0x3a)
  // Blanks before the colon are obsolete syntax (RFC 5322 §4.5) that still occurs.
  const name = bytes
    .subarray(0, Math.max(0, colon))
    .toString('latin1')
    .replace(/[ \t]+$/, '')
  if (!isHeaderName(name)) return null
  const raw = decodeBytes(bytes)
    .replace(/\r?\n$/, '')
    .replace(/\r?\n/g, '\n')
    .replace(/[\r\0]/g, ' ')
    .replaceAll('\n', '\r\n')
  return { name, raw, value: decodeWords(unfoldedValue(raw)).trim() }
}

function decodeBytes(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  return text.includes('\ufffd') && !Buffer.from(text).equals(bytes) ? bytes.toString('latin1') : text
}

function firstValue(headers: readonly RawHeader[], name: string): string | null {
  return headers.find((header) => header.name.toLowerCase() === name)?.value ?? null
}

/** All addresses in the fields of one name. */
function addressesIn(headers: readonly RawHeader[], name: string): Mailbox[] {
  return headers
    .filter((header) => header.name.toLowerCase() === name)
    .flatMap((header) => readAddresses(unfoldedValue(header.raw)))
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

/** Runs postal-mime over the body with the content fields only. */
async function readParts(headers: readonly RawHeader[], body: Buffer): Promise<Email> {
  const fields = headers.filter((header) => CONTENT_FIELDS.has(header.name.toLowerCase()))
  const head = `${fields.map((header) => `${header.raw}\r\n`).join('')}\r\n`
  const options = {
    maxNestingDepth: DEPTH_MAX,
    maxHeadersSize: HEADER_BYTES_MAX,
    forceRfc822Attachments: true,
  }
  try {
    return await PostalMime.parse(Buffer.concat([Buffer.from(head), body]), options)
  } catch (cause) {
    throw new MimeSyntaxError(`Cannot read message: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
}

/**
 * Counts delimiter lines before anything is built. A delimiter is any line that is "--" and a value that
 * stands as boundary parameter somewhere in the message, so the count may be too high for a message that
 * contains another as text. Boundaries written as RFC 2231 sections are not seen; those parts cost time
 * in proportion to their bytes only.
 */
function countParts(headers: readonly RawHeader[], body: Buffer): number {
  if (!body.includes('--')) return 1
  const text = body.toString('latin1')
  const boundaries = new Set<string>()
  for (const source of [...headers.map((header) => header.raw), text]) {
    for (const match of source.matchAll(
      /boundary\*?\s{0,9}=\s{0,9}(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))/gi,
    )) {
      boundaries.add(match[1] ?? (match[2] as string))
    }
  }
  let count = 1
  for (let at = text.startsWith('--') ? 0 : text.indexOf('\n--') + 1; at >= 0 && count <= PARTS_MAX; ) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at + 2, Math.min(end < 0 ? text.length : end, at + 300)).trimEnd()
    if (boundaries.has(line)) count++
    const next = text.indexOf('\n--', at)
    if (next < 0) break
    at = next + 1
  }
  return count
}

function sortAttachments(found: readonly Attachment[]): {
  attachments: ParsedAttachment[]
  amp: string | null
} {
  const attachments: ParsedAttachment[] = []
  let amp: string | null = null
  for (const attachment of found) {
    const content = contentOf(attachment)
    const isAmp = attachment.mimeType === 'text/x-amp-html' && attachment.disposition !== 'attachment'
    if (isAmp && amp === null) {
      amp = asBuffer(content).toString('utf8').replaceAll('\r\n', '\n')
      continue
    }
    attachments.push({
      filename: decodeWords(attachment.filename ?? '').trim(),
      contentType: attachment.mimeType,
      sizeBytes: content.byteLength,
      contentId: attachment.contentId?.trim().replace(/^<([^<>]*)>$/, '$1') ?? null,
      disposition: attachment.disposition,
      content,
    })
  }
  return { attachments, amp }
}

function contentOf({ content }: Attachment): Uint8Array {
  return typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
