/** A received mail, parsed, as input to the readers of reports (`dsn`, `arf`). */
export interface ReportMail {
  /** Top header fields in order; values are unfolded and decoded. */
  headers: readonly (readonly [name: string, value: string])[]
  /** Body text of all plain parts, lines end in LF; of a mail with HTML only, that as text. '' if there is none. */
  text: string
  /** All other parts in order, decoded. `type` is "type/subtype" in lower case. */
  parts: readonly { type: string; content: Uint8Array }[]
}

/** The first field of that name (lower case); '' if there is none. */
export function fieldOf(headers: ReportMail['headers'], name: string): string {
  return headers.find(([given]) => given.toLowerCase() === name)?.[1] ?? ''
}

/** Longest block of fields that is read, and most fields of it: reports have about 20 of 100 characters. */
const BLOCK_CHARS_MAX = 65_536
const FIELDS_MAX = 500

/**
 * Fields in blocks that empty lines separate, as in message/delivery-status (RFC 3464 §2.1), message/feedback-report
 * (RFC 5965 §3) and the header of a returned message. Folded values are joined by one blank; lines that are no field
 * are left out. At most `blocksMax` blocks. Never throws.
 */
export function readFieldBlocks(
  content: Uint8Array | string,
  blocksMax: number,
): (readonly [name: string, value: string])[][] {
  const text = typeof content === 'string' ? content.slice(0, BLOCK_CHARS_MAX) : decode(content)
  const blocks: [string, string][][] = []
  let block: [string, string][] = []
  let fields = 0
  for (const line of text.split(/\r\n|\n|\r/)) {
    const last = block.at(-1)
    if (line.trim() === '') {
      if (block.length > 0) blocks.push(block)
      if (blocks.length === blocksMax) return blocks
      block = []
    } else if (/^[ \t]/.test(line) && last) {
      last[1] = `${last[1]} ${line.trim()}`
    } else if (++fields <= FIELDS_MAX) {
      const [, name = '', value = ''] = /^([!-9;-~]{1,100})[ \t]*:(.*)$/.exec(line) ?? []
      if (name !== '') block.push([name, value.trim()])
    }
  }
  if (block.length > 0) blocks.push(block)
  return blocks
}

/**
 * ISO-2022-JP by its escape sequences, UTF-8 where the bytes are that, else Latin-1: reports claim no character set that
 * could be trusted.
 */
function decode(content: Uint8Array): string {
  const bytes = Buffer.from(content.buffer, content.byteOffset, Math.min(content.byteLength, BLOCK_CHARS_MAX))
  const text = bytes.toString('utf8')
  if (/\x1b\$[@B]/.test(text)) return new TextDecoder('iso-2022-jp').decode(bytes)
  return text.includes('\ufffd') ? bytes.toString('latin1') : text
}

/** Bytes are no report, or one beyond its limits; the message says why, for the log. */
export class NoReport extends Error {
  override name = 'NoReport'
}

const ORIGINAL_TYPES = new Set([
  'message/rfc822',
  'text/rfc822-headers',
  'message/rfc822-headers',
  'message/global',
  'message/global-headers',
])

/** Header of the mail that a report is about, as far as it returns it; empty: nothing of it. */
export function originalHeaders(mail: ReportMail): ReportMail['headers'] {
  const part = mail.parts.find(({ type }) => ORIGINAL_TYPES.has(type))
  return part ? (readFieldBlocks(part.content, 1)[0] ?? []) : []
}
