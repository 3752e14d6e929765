/** Codes in texts that people and servers wrote: enhanced status codes (RFC 3463) and SMTP reply codes. */

/** Not within a longer number or an IP address: `5.1.1`, `#5.1.1`, `(5.7.1)`, but not `195.5.1.1` or `5.1.1.7`. */
const ENHANCED = /(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?!\.?\d)/g
/** `550 5.1.1 text`, `550-text`, `error 550:`, `code :550`; not a port, a year or a part of a longer number. */
const REPLY = /(?:(?<=code ?[:=] ?)|(?<![\d.:#/-]))([45]\d\d)(?=[ \-:,;)]|$)/i
/** What a server says after its reply code is its own; a code before that may be the reporter's. */
const OWN = /(?<![\d.:#/-])[45]\d\d[ -]{1,3}['"(#]{0,2}([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/
/** Codes examined in one text; the first specific one is used. */
const CODES_MAX = 50

export interface Codes {
  /** E.g. "5.1.1"; null: none found. */
  status: string | null
  /** E.g. 550; null: none found. */
  reply: number | null
}

/**
 * The codes in a text: those of its first reply, else the first ones. A generic status (`5.0.0`) is replaced by a later
 * specific one of its class.
 */
export function codesIn(text: string): Codes {
  const [, own] = OWN.exec(text) ?? []
  const reply = REPLY.exec(text)?.[1]
  return {
    status: own === undefined || isVague(own) ? firstStatus(text) : own,
    reply: reply === undefined ? null : Number(reply),
  }
}

function firstStatus(text: string): string | null {
  let status: string | null = null
  let seen = 0
  for (const [code] of text.matchAll(ENHANCED)) {
    if (++seen > CODES_MAX) break
    if (status === null || (isVague(status) && code[0] === status[0])) status = code
    if (!isVague(status)) break
  }
  return status
}

/** Means no more than its class: `5.0.0`. */
export const isVague = (status: string) => /^\d\.0\.0$/.test(status)

/** The code in the value of a Status field, which may carry a comment; null: none. */
export function statusOf(value: string): string | null {
  const [, status] = /^[^\d]{0,20}([245]\.\d{1,3}\.\d{1,3})(?!\.?\d)/.exec(value) ?? []
  return status ?? null
}
