/** What a report says about one recipient. */

/** RFC 3464 §2.3.3. `delivered`, `relayed` and `expanded` mean success, `delayed` further attempts. */
export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded'

/** What a server refused; `data` is the content or its announcement. */
export type RefusedCommand = 'mail' | 'rcpt' | 'data'

export interface DsnRecipient {
  action: DsnAction
  /** Bare address as in the report; null: it names none. */
  recipient: string | null
  /** The address that the sender used, if the reporter knows it: it differs after forwarding. */
  originalRecipient: string | null
  /** Enhanced status code, the most specific one given, e.g. "5.1.1"; null: none. */
  status: string | null
  /** Reply code of the server that refused, e.g. 550; null: none. */
  replyCode: number | null
  /**
   * The enhanced code within that server's own text; null: none. It differs from `status` where the reporter guessed:
   * sendmail writes 5.1.1 for any refusal of RCPT TO, also for one of 5.7.1.
   */
  replyStatus: string | null
  /**
   * The command that it refused; null: the report does not say. "Unknown user" after the content is often the word of the
   * recipient's own filter.
   */
  command: RefusedCommand | null
  /** Text of that server or of the reporter, on one line; '' if none. */
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
