/**
 * What one attempt came to, and how a server's reply becomes that. Pure: the engine turns an outcome into
 * rows and events.
 */
import type { SmtpReply } from '../smtp/reply.ts'

/** Why an attempt failed; `reason` is a word of events.md ("reason and codes of failed"). */
export interface Failure {
  reason: string
  /** The server's code, or one of ours: 498 no MX, 499 connection, 602 too old, 605-607 suppressed, 680 no TLS. */
  code: number
  enhanced: string | null
  message: string
  description: string
}

export type Outcome =
  | { kind: 'delivered'; code: number; message: string; enhanced: string | null }
  | { kind: 'deferred'; failure: Failure }
  | { kind: 'bounced'; failure: Failure; hard: boolean }
  | { kind: 'suppressed'; failure: Failure }
  | { kind: 'rejected'; reason: string; description: string }

export const CODE_TEST_MODE = 650
export const CODE_TOO_OLD = 602
export const CODE_CONNECTION = 499
export const CODE_NO_MX = 498
export const CODE_NO_TLS = 680

/** Enhanced codes of a mailbox that does not exist or is closed for good (RFC 3463 §3.2, §3.3). */
const DEAD_MAILBOX = new Set(['5.1.1', '5.1.6', '5.1.10', '5.2.1'])

const DEAD_MAILBOX_WORDS =
  /user unknown|unknown user|no such (user|mailbox|recipient)|mailbox (unavailable|not found|does not exist)|does not exist|recipient (unknown|not found)|invalid recipient/i
const GREYLIST_WORDS = /gr[ea]y-?list/i

/** The outcome of a final reply to RCPT TO, DATA or the message itself. */
export function outcomeOfReply(reply: SmtpReply): Outcome {
  const { code, enhanced, text } = reply
  if (code >= 200 && code < 300) return { kind: 'delivered', code, message: text, enhanced }
  const failure = (reason: string): Failure => ({ reason, code, enhanced, message: text, description: '' })
  if (code >= 500) {
    const dead = enhanced ? DEAD_MAILBOX.has(enhanced) : DEAD_MAILBOX_WORDS.test(text)
    return { kind: 'bounced', failure: failure(dead ? 'bounce' : 'generic'), hard: dead }
  }
  return { kind: 'deferred', failure: failure(GREYLIST_WORDS.test(text) ? 'greylisted' : 'generic') }
}

/** No usable answer from any server: try again later. */
export function connectionFailure(message: string): Outcome {
  const failure = { reason: 'generic', code: CODE_CONNECTION, enhanced: null, message, description: '' }
  return { kind: 'deferred', failure }
}
