/**
 * Whether a failure is the relay's, not the message's: it cannot be reached, refuses the login, or takes no more for now. Its
 * mail goes to another relay then, and enough of them close it for a time. Pure.
 */
import { CODE } from '../../../protocols/smtp/codes.ts'
import type { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import type { Outcome } from '../attempt/outcome.ts'

export interface RelayFault {
  /** One is enough to close it; else several in a row. */
  isSure: boolean
  /** False: it may have the message, so that no other relay must get it. */
  mayMove: boolean
}

const SURE: RelayFault = { isSure: true, mayMove: true }
const UNSURE: RelayFault = { isSure: false, mayMove: true }
const MAY_HAVE_IT: RelayFault = { isSure: false, mayMove: false }

/** Faults of this machine, or of the message. */
const NOT_ITS = new Set<SmtpFailure['reason']>(['local', 'message', 'address', 'too-large', 'aborted'])
const STATED = new Set<SmtpFailure['reason']>(['refused', 'certificate', 'unsupported', 'tls', 'login'])

/** Null: the failure says nothing about the relay. */
export function relayFaultOf({ stage, reason, reply, afterFinalDot }: SmtpFailure): RelayFault | null {
  if (NOT_ITS.has(reason)) return null
  if (afterFinalDot) return MAY_HAVE_IT
  switch (stage) {
    case 'tls':
    case 'starttls':
    case 'auth':
      return STATED.has(reason) ? SURE : UNSURE
    case 'connect':
    case 'greeting':
    case 'ehlo':
      return reason === 'refused' && reply !== null && reply.code >= 500 ? SURE : UNSURE
    default:
      if (reason === 'unsupported') return null
      return reply === null ? UNSURE : relayFaultOfReply(reply.code, reply.text)
  }
}

/** Characters of a reply that are read. */
const READ_MAX = 1_024
/** Begins what a reply repeats of a message: an address, or a text in quotes. */
const REPEATED = /[<"@]|^'/
/** Host names and codes. */
const NAME = /[.-]\w/
/**
 * What relays say when they take no more of an account: SES "Daily message quota exceeded" and "Maximum sending rate exceeded",
 * Microsoft 365 "reached your daily limit for message recipients" (5.1.90) and "Submission quota exceeded", Gmail "Daily user
 * sending limit exceeded" (5.4.5), SendGrid "Maximum credits exceeded". A full mailbox of a recipient says none of this.
 */
const QUOTA = [
  /\b(?:daily|hourly|monthly|sending|submission)\b[^.;]{0,60}?\b(?:quota|limits?|rate)\b[^.;]{0,40}?\b(?:exceeded|reached)\b/i,
  /\b(?:exceeded|reached)\b[^.;]{0,60}?\b(?:daily|hourly|monthly|sending)\b[^.;]{0,30}?\b(?:quota|limits?|rate)\b/i,
  /\bmaximum credits exceeded\b/i,
]
const QUOTA_STATUS = /^5\.(?:1\.90|7\.708)$/
/** About one message, its sender, or one recipient's mailbox. */
const NOT_OURS = /\b(?:size|large|mailbox|receiv(?:e[ds]?|ing)|storage|disk|identit(?:y|ies)|verified)\b/i
/** No login, or none any more (RFC 4954 §6). */
const WANTS_LOGIN = new Set([454, 530, 535])

/** A reply to a message. Null: it is about the message. */
export function relayFaultOfReply(code: number, text: string): RelayFault | null {
  if (code < 400) return null
  if (WANTS_LOGIN.has(code) || isQuota(text.slice(0, READ_MAX))) return SURE
  return code === CODE.leaving ? UNSURE : null
}

/** By the reply's own words: the addresses that it repeats are chosen by those who send, and one message closes the relay for all. */
function isQuota(text: string): boolean {
  const words = text.split(/\s+/)
  if (QUOTA_STATUS.test(words[0] ?? '')) return true
  const end = words.findIndex((word) => REPEATED.test(word))
  const own = words
    .slice(0, end === -1 ? words.length : end)
    .filter((word) => !NAME.test(word))
    .join(' ')
  return QUOTA.some((pattern) => pattern.test(own)) && !NOT_OURS.test(own)
}

/** The outcome of a message whose failure is the relay's: the message may be taken later, or elsewhere. */
export const withoutBlame = (outcome: Outcome): Outcome =>
  outcome.kind === 'bounced' ? { kind: 'deferred', failure: outcome.failure } : outcome
