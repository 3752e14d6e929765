/**
 * Splits raw messages and parts into header fields and body. RFC 5322 §2.1, §2.2.
 *
 * The header block ends, as Postfix has it, at the first empty line or at the first line that is no field;
 * that line is body.
 */
import type { Chunk } from '../message/mime-message.ts'
import { decodeWords } from './encoded-word.ts'
import { HEADER_BYTES_MAX, isHeaderName } from './header.ts'

export class MimeSyntaxError extends Error {
  override name = 'MimeSyntaxError'
}

/**
 * `raw` is the field as sent, without its final CRLF, folds as CRLF; bare CR and NUL in it are spaces. It is
 * decoded as UTF-8 where the bytes are that, else as Latin-1, so that no byte is lost.
 * `value` is unfolded, with encoded words decoded: for people, not for parsing addresses.
 */
export type RawHeader = { name: string; raw: string; value: string }

interface HeaderLimits {
  fields: number
  bytes: number
}

/** Limits of a received message. As Haraka; real mail has fewer than a hundred fields. */
export const HEADER_LIMITS: HeaderLimits = { fields: 1_000, bytes: HEADER_BYTES_MAX }
/** Limits of a message within those that is delivered: with signatures and the fields of lists and servers. */
export const DELIVERED_HEADER_LIMITS: HeaderLimits = { fields: 1_100, bytes: HEADER_BYTES_MAX + 131_072 }

/** More header than is accepted anywhere. */
const HEAD_BYTES_MAX = DELIVERED_HEADER_LIMITS.bytes + 65_536

const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20]

/**
 * Splits a message into header fields and body; line ends may be CRLF or LF. A leading mbox line ("From ")
 * is skipped. `bodyOffset` counts bytes from the start of `raw`; without a body it is the length.
 * @throws MimeSyntaxError over the limits, by default 1,000 fields and 1 MiB
 */
export function splitMessage(
  raw: Uint8Array,
  limits = HEADER_LIMITS,
): { headers: RawHeader[]; bodyOffset: number } {
  const bytes = asBuffer(raw)
  const headers: RawHeader[] = []
  let at = isMboxLine(bytes) ? lineEnd(bytes, 0) : 0
  while (at < bytes.length) {
    const emptyLine = emptyLineLength(bytes, at)
    if (emptyLine > 0) return { headers, bodyOffset: at + emptyLine }
    const end = fieldEnd(bytes, at, limits.bytes)
    if (end > limits.bytes) throw new MimeSyntaxError(`Header is longer than ${limits.bytes} bytes`)
    const header = readField(bytes.subarray(at, end))
    if (!header) return { headers, bodyOffset: at }
    if (headers.length === limits.fields)
      throw new MimeSyntaxError(`Header has more than ${limits.fields} fields`)
    headers.push(header)
    at = end
  }
  return { headers, bodyOffset: bytes.length }
}

/** The beginning of a message, including the first empty line, or as much as `splitMessage` may read of it. */
export async function readHead(chunk: Chunk): Promise<Uint8Array> {
  if (chunk instanceof Uint8Array) return chunk.subarray(0, HEAD_BYTES_MAX)
  let head = Buffer.alloc(0)
  for await (const bytes of chunk.open()) {
    // The empty line may be split between two pieces.
    const from = Math.max(0, head.length - 3)
    head = Buffer.concat([head, bytes])
    if (head.indexOf('\n\n', from) >= 0 || head.indexOf('\n\r\n', from) >= 0) break
    if (head.length >= HEAD_BYTES_MAX) break
  }
  return head
}

/** The value of a raw field without its folds and surrounding blanks; encoded words stay. RFC 5322 §2.2.3. */
export function unfoldedValue(raw: string): string {
  return raw
    .slice(raw.indexOf(':') + 1)
    .replaceAll('\r\n', '')
    .trim()
}

function isMboxLine(bytes: Buffer): boolean {
  return bytes.subarray(0, 6).toString('latin1').replace(/^>/, '').startsWith('From ')
}

/** Offset after the line that contains `at`. */
function lineEnd(bytes: Buffer, at: number): number {
  const end = bytes.indexOf(LF, at)
  return end < 0 ? bytes.length : end + 1
}

/** Bytes of the empty line at `at`, 0 if the line is not empty. */
function emptyLineLength(bytes: Buffer, at: number): number {
  if (bytes[at] === LF) return 1
  return bytes[at] === CR && bytes[at + 1] === LF ? 2 : 0
}

/** Offset after the field at `at` with its continuation lines. */
function fieldEnd(bytes: Buffer, at: number, bytesMax: number): number {
  let end = lineEnd(bytes, at)
  while ((bytes[end] === SPACE || bytes[end] === TAB) && end <= bytesMax) end = lineEnd(bytes, end)
  return end
}

/** Null if the line is no field: no colon, or a name with other characters than RFC 5322 §3.6.8 has. */
function readField(bytes: Buffer): RawHeader | null {
  // Blanks before the colon are obsolete syntax (RFC 5322 §4.5) that still occurs. No pattern: it would be quadratic.
  let end = Math.max(0, bytes.indexOf(0x3a))
  while (end > 0 && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end -= 1
  const name = bytes.subarray(0, end).toString('latin1')
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

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
