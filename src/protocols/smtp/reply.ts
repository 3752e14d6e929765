/**
 * Server replies (RFC 5321 §4.2): one or more lines `250-text`, the last one `250 text`; the text may begin with an
 * enhanced status code (RFC 2034, 3463). Parsed from the wire in any pieces.
 */
import { remember } from '../../base/flow/cache.ts'

export interface SmtpReply {
  /** 200 to 599. */
  readonly code: number
  /** Enhanced status code such as "4.2.2", from the first line that has one of the reply's class; null without. */
  readonly enhanced: string | null
  /** Text of each line after the code, enhanced codes included, control characters replaced by spaces. */
  readonly lines: readonly string[]
  /** All lines as one, the enhanced code only once, in front: "5.1.1 No such user, see ..." */
  readonly text: string
}

/** What the server sent is not a reply, or does not end. */
export class ReplySyntaxError extends Error {
  override name = 'ReplySyntaxError'
}

/** RFC 5321 §4.5.3.1.5 allows 512; real servers put addresses and links into theirs. */
const LINE_BYTES_MAX = 4096

/** The longest replies are EHLO's, with some 20 lines. */
const LINES_MAX = 100

/** Single-line replies that a parser caches, and how long they may be. */
const KNOWN_MAX = 8
const KNOWN_LENGTH_MAX = 128

const LF = 10
const CR = 13
const LINE_PATTERN = /^([2-5][0-9]{2})(?:([ -])(.*))?$/s
const ENHANCED_PATTERN = /^([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[ \t]+|$)/

/** Splits the incoming bytes into replies. Lines may end in LF alone, which does no harm in replies. */
export class ReplyParser {
  #held: Buffer = Buffer.alloc(0)
  #lines: string[] = []
  #code = 0
  /** Single-line replies by their line: those to MAIL and RCPT are the same for every message. */
  readonly #known = new Map<string, SmtpReply>()

  /** A line or reply is incomplete. */
  get partial(): boolean {
    return this.#held.length > 0 || this.#lines.length > 0
  }

  /**
   * Takes bytes and calls `onReply` for each reply that they complete.
   * @throws ReplySyntaxError at the first line that is not a reply or exceeds a limit; not to be used after that.
   */
  push(bytes: Uint8Array, onReply: (reply: SmtpReply) => void): void {
    const fresh = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const data = this.#held.length > 0 ? Buffer.concat([this.#held, fresh]) : fresh
    let from = 0
    for (let end = data.indexOf(LF); end >= 0; end = data.indexOf(LF, from)) {
      const lineEnd = end > from && data[end - 1] === CR ? end - 1 : end
      const reply = this.#line(data.subarray(from, lineEnd))
      from = end + 1
      if (reply !== null) onReply(reply)
    }
    this.#held = data.subarray(from)
    if (this.#held.length > LINE_BYTES_MAX) throw tooLong()
  }

  #line(line: Buffer): SmtpReply | null {
    if (line.length > LINE_BYTES_MAX) throw tooLong()
    const text = line.toString()
    if (this.#lines.length > 0) return this.#read(text, line)
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const reply = this.#read(text, line)
    if (reply === null || text.length > KNOWN_LENGTH_MAX) return reply
    return remember(this.#known, KNOWN_MAX, text, reply)
  }

  #read(text: string, line: Buffer): SmtpReply | null {
    const match = LINE_PATTERN.exec(text)
    if (match === null) throw new ReplySyntaxError(`Cannot read the reply line "${printable(line)}"`)
    const code = Number(match[1])
    if (this.#lines.length > 0 && code !== this.#code) {
      throw new ReplySyntaxError(`Cannot read the reply: code ${this.#code} goes on with ${code}`)
    }
    this.#code = code
    this.#lines.push(withoutControls(match[3] ?? ''))
    if (match[2] === '-') {
      if (this.#lines.length >= LINES_MAX) {
        throw new ReplySyntaxError(`Cannot read the reply: over ${LINES_MAX} lines`)
      }
      return null
    }
    const lines = this.#lines
    this.#lines = []
    return makeReply(code, lines)
  }
}

/** A reply from its code and the text of its lines. */
export function makeReply(code: number, lines: string[]): SmtpReply {
  let enhanced: string | null = null
  const texts: string[] = []
  for (const line of lines) {
    const match = ENHANCED_PATTERN.exec(line)
    // The class must agree with the code (RFC 2034 §4), else it is only text that looks like one.
    const status = match !== null && line.startsWith(String(code)[0] as string) ? (match[1] as string) : null
    enhanced ??= status
    const rest = status !== null && status === enhanced && match !== null ? line.slice(match[0].length) : line
    if (rest !== '') texts.push(rest)
  }
  if (enhanced !== null) texts.unshift(enhanced)
  return { code, enhanced, lines, text: texts.join(' ') }
}

/** The whole reply on one line, for logs and events: "550 5.1.1 No such user". */
export function replyText(reply: SmtpReply): string {
  return reply.text === '' ? String(reply.code) : `${reply.code} ${reply.text}`
}

function withoutControls(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

/** The start of unreadable input, for an error message. */
function printable(line: Buffer): string {
  return withoutControls(line.subarray(0, 80).toString('latin1'))
}

function tooLong(): ReplySyntaxError {
  return new ReplySyntaxError(`Cannot read the reply: a line is over ${LINE_BYTES_MAX} bytes`)
}
