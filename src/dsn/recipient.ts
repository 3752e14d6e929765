/** What a report says of one recipient. */

/** RFC 3464 §2.3.3. `delivered`, `relayed` and `expanded` tell of success, `delayed` of an attempt to come. */
export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'

export interface DsnRecipient {
  action: DsnAction
  /** Bare address as the report has it; null: it names none. */
  recipient: string | null
  /** Where the sender sent it, if the reporter knows: it differs after forwarding. */
  originalRecipient: string | null
  /** Enhanced status code, the most specific one given, e.g. "5.1.1"; null: none. */
  status: string | null
  /** Reply code of the server that refused, e.g. 550; null: none. */
  replyCode: number | null
  /** What that server or the reporter said, on one line; '' if nothing. */
  diagnostic: string
  /** Host that refused; null: not given. */
  remoteMta: string | null
}

const DIAGNOSTIC_CHARS_MAX = 1_000

/** One line without control characters, cut to a length. */
export function tidy(text: string): string {
  return text
    .slice(0, 4 * DIAGNOSTIC_CHARS_MAX)
    .replace(/[\s\u0000-\u001f\u007f]+/gu, ' ')
    .trim()
    .slice(0, DIAGNOSTIC_CHARS_MAX)
    .toWellFormed()
}
