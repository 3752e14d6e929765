/**
 * What one attempt came to, and how a server's reply becomes that. Pure: the engine turns an outcome into
 * rows and events.
 */
import type { SmtpReply } from '../smtp/reply.ts'

/** Why an attempt failed. */
export interface Failure {
  /** The server's code, or one of ours: 498 no MX, 499 connection, 602 too old, 605-607 suppressed, 680 no TLS,
   *  690 cannot be prepared. */
  code: number
  enhanced: string | null
  message: string
  description: string
}

export type Outcome =
  | { kind: 'delivered'; code: number; message: string; enhanced: string | null }
  | { kind: 'deferred'; failure: Failure }
  | { kind: 'bounced'; failure: Failure }
  | { kind: 'suppressed'; reason: string; failure: Failure }
  | { kind: 'rejected'; reason: string; description: string }

export const CODE_TEST_MODE = 650
export const CODE_TOO_OLD = 602
export const CODE_CONNECTION = 499
export const CODE_NO_MX = 498
export const CODE_NO_TLS = 680
/** The message could not be made ready on this server, so that nobody was asked. */
export const CODE_UNPREPARED = 690

/** `reason` of a delivery that waits since this machine is short of something. */
export const REASON_LOCAL_FAULT = 'local-fault'

/** What a failure means; `reason` is a word of events.md ("reason and codes of failed"). */
export interface Verdict {
  /** Of the rule that knows the reply. */
  ruleId: string
  reason: string
}

/** Judges a failure; handed in, since the engine has no business with what replies mean. */
export type Judge = (failure: Failure, envelope: readonly string[], permanent: boolean) => Verdict

/** `reason` of a failure that says the mailbox does not exist or is closed for good. */
export const REASON_DEAD_MAILBOX = 'bounce'

/** The outcome of a final reply to RCPT TO, DATA or the message itself. */
export function outcomeOfReply(reply: SmtpReply): Outcome {
  const { code, enhanced, text } = reply
  if (code >= 200 && code < 300) return { kind: 'delivered', code, message: text, enhanced }
  const failure: Failure = { code, enhanced, message: text, description: '' }
  return code >= 500 ? { kind: 'bounced', failure } : { kind: 'deferred', failure }
}

export const CONTENT_MISSING = 'message content is missing on this server'

/** The message cannot be read, signed or composed here; whatever is wrong may be put right while it waits. */
export function unprepared(message: string): Outcome {
  return { kind: 'deferred', failure: { code: CODE_UNPREPARED, enhanced: null, message, description: '' } }
}

/** No usable answer from any server: try again later. */
export function connectionFailure(message: string): Outcome {
  const failure = { code: CODE_CONNECTION, enhanced: null, message, description: '' }
  return { kind: 'deferred', failure }
}
