/**
 * Outcomes of attempts, and how DNS answers, replies and failures become outcomes. Pure: the engine turns an outcome
 * into rows and events.
 */
import type { MxResult } from '../../../protocols/dns/mx.ts'
import { CODE } from '../../../protocols/smtp/codes.ts'
import type { SmtpFailure } from '../../../protocols/smtp/failure.ts'
import type { SmtpReply } from '../../../protocols/smtp/reply.ts'

/** Why an attempt failed. */
export interface Failure {
  /** The server's code, or one of ours: 498 no MX, 499 connection, 602 too old, 605-607 suppressed, 608 refused by the content check, 680 no TLS,
   *  690 cannot be prepared. */
  code: number
  enhanced: string | null
  message: string
  description: string
  /** The reply was one to the content, not to an address. Default: false. */
  isOfContent?: boolean
}

export type Outcome =
  | { kind: 'delivered'; code: number; message: string; enhanced: string | null }
  | { kind: 'deferred'; failure: Failure }
  | { kind: 'bounced'; failure: Failure }
  | { kind: 'suppressed' | 'refused'; reason: string; failure: Failure }
  | { kind: 'rejected'; reason: string; description: string }

export const CODE_TEST_MODE = 650
export const CODE_TOO_OLD = 602
export const CODE_CONNECTION = 499
const CODE_NO_MX = 498
export const CODE_NO_TLS = 680
export const CODE_CONTENT_REFUSED = 608
/** The message could not be prepared on this server, so no other was asked. */
export const CODE_UNPREPARED = 690

/** `reason` of a delivery that waits because this machine is short of something. */
export const REASON_LOCAL_FAULT = 'local-fault'

/** `reason` of a delivery that waits for the next day, since its account has used the budget of this one. */
export const REASON_DAILY_BUDGET = 'daily-budget'

/** `reason` of a delivery that waits for the allowance of an address on warm-up. */
export const REASON_WARMUP = 'warm-up'

/** `reason` of a delivery that waits because the provider blocks every address that it may leave from. */
export const REASON_BLOCKED = 'address-blocked'

/** `reason` of a delivery that waits because no relay that it may go to takes mail now, or this one not so large a message. */
export const REASON_RELAY_CLOSED = 'relay-closed'

/** `reason` of a delivery that waits because the proxy of every address that it may leave from has failed. */
export const REASON_PROXY_DOWN = 'proxy-down'

/** `reason` of a delivery that waits because an operator has paused mail to its site; migration 0170 has an index of such. */
export const REASON_PROVIDER_PAUSED = 'provider-paused'

/** `reason` of a delivery that waits for the hours in which it may be sent. */
export const REASON_SEND_WINDOW = 'send-window'

/** `reason` of a delivery that waits until its content is checked. */
export const REASON_CONTENT_CHECK = 'content-check'

/** `reason` of a delivery that waits for a person's decision on its content; migration 0354 has an index of such. */
export const REASON_CONTENT_HELD = 'content-held'

/** `reason` of a delivery that somebody has ended: its window is over. */
export const REASON_EXPIRE_ASKED = 'expire-asked'

/** `reason` of a delivery whose content was refused. */
const REASON_CONTENT_REFUSED = 'content-refused'

/** `reason` of a delivery that waits because its account may not send; migration 0032 has an index of such. */
export const REASON_ACCOUNT_HELD = 'account-held'

/** What a failure means; `reason` is a word of events.md ("reason and codes of failed"). */
export interface Verdict {
  /** The rule that matches the reply. */
  ruleId: string
  reason: string
  /** For `addBounce` of sending/suppressions/automatic.ts. Absent or null: the failure says nothing about the recipient. */
  suppression?: 'hard' | 'soft' | null
  /** The reply says that the server takes no mail from the address that this came from. Absent: no. */
  blocksAddress?: boolean
}

/** Classifies a failure; handed in, because the meaning of replies is not the engine's concern. */
export type Judge = (
  failure: Failure,
  envelope: { recipients: readonly string[]; senders: readonly string[] },
  permanent: boolean,
) => Verdict

/** `reason` of a failure that says the mailbox does not exist or is closed for good. */
export const REASON_DEAD_MAILBOX = 'bounce'

/** The outcome of a final reply to RCPT TO, or (`isOfContent`) to DATA or the message itself. */
export function outcomeOfReply(reply: SmtpReply, isOfContent = false): Outcome {
  const { code, enhanced, text } = reply
  if (code >= 200 && code < 300) return { kind: 'delivered', code, message: text, enhanced }
  const failure: Failure = {
    ...{ code, enhanced, message: text, description: '' },
    ...(isOfContent && { isOfContent }),
  }
  return code >= 500 ? bounced(failure) : deferred(failure)
}

/** A server has judged the message, whatever it said. */
export function isAnswered(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'delivered':
      return outcome.code !== CODE_TEST_MODE
    case 'deferred':
    case 'bounced':
      return ![CODE_CONNECTION, CODE_NO_MX, CODE_NO_TLS, CODE_UNPREPARED].includes(outcome.failure.code)
    case 'suppressed':
    case 'refused':
    case 'rejected':
      return false
  }
}

const failureOf = (code: number, message: string, description = ''): Failure => ({
  ...{ code, enhanced: null, message, description },
})
const deferred = (failure: Failure): Outcome => ({ kind: 'deferred', failure })
const bounced = (failure: Failure): Outcome => ({ kind: 'bounced', failure })

/** No address that the message may leave from can be used (ips-pools.md section 1 rule 5). */
export const noSendingIp = () => deferred(failureOf(CODE.leaving, 'No sending IP available'))

export const CONTENT_MISSING = 'message content is missing on this server'

/** The message cannot be read, signed or composed here; that may be repaired while it waits. */
export const unprepared = (message: string) => deferred(failureOf(CODE_UNPREPARED, message))

/** The content check refuses the message (content-check.md). It says nothing about the recipient. */
export const contentRefused = (why: string): Outcome => ({
  kind: 'refused',
  reason: REASON_CONTENT_REFUSED,
  failure: {
    ...failureOf(CODE_CONTENT_REFUSED, 'Refused by the content check', why),
    // RFC 3463 §3.8: a security or policy status.
    enhanced: '5.7.1',
    isOfContent: true,
  },
})

/** No usable answer from any server: try again later. */
export const connectionFailure = (message: string) => deferred(failureOf(CODE_CONNECTION, message))

/** No connection with TLS could be made, or none under the receiver's policy. */
export const noTls = (message: string) =>
  deferred(failureOf(CODE_NO_TLS, message, 'TLS is required and was not to be had'))

/** RFC 3463 §3.4: the message is larger than every relay takes that it may go to. */
export const tooLargeForRelays = () =>
  bounced({
    ...failureOf(CODE.failed, 'the message is too large for the relays that it may go to'),
    enhanced: '5.3.4',
  })

/** No server of the destination gives the protection that the message demands (RFC 8689 §4.2.1). Final. */
export const noProtection = (enhanced: '5.7.10' | '5.7.30', message: string) =>
  bounced({ ...failureOf(CODE_NO_TLS, message, 'REQUIRETLS is demanded and was not to be had'), enhanced })

/** RFC 3463 §3.7: conversion required but not supported. */
export const notConvertible = () =>
  bounced({
    ...failureOf(
      CODE.failed,
      'the server takes no 8-bit mail, and the signature in this message forbids converting it',
    ),
    enhanced: '5.6.3',
  })

/**
 * A failure of the dialogue: a refusal is the server's decision, everything else may pass. A reply that nothing called for
 * decides nothing, not even a positive one.
 */
export function outcomeOfFailure(failure: SmtpFailure): Outcome {
  if (failure.reply && failure.reason === 'refused') {
    // Refused before any recipient was named: about us, not about the recipient, and tried again.
    const early = ['greeting', 'ehlo', 'auth', 'starttls', 'rset'].includes(failure.stage)
    const outcome = outcomeOfReply(failure.reply)
    return early && outcome.kind === 'bounced' ? deferred(outcome.failure) : outcome
  }
  // The content could not be read to its end: a file is missing, or shorter than it was.
  if (failure.stage === 'body' && failure.reason === 'message') return unprepared(CONTENT_MISSING)
  // An address that is not ASCII fails for good if the peer cannot take it (messages.md rule 16).
  const isMissingUtf8 = failure.stage === 'mail' && failure.reason === 'unsupported'
  const isPermanent = ['address', 'too-large', 'message'].includes(failure.reason) || isMissingUtf8
  return isPermanent ? bounced(failureOf(CODE.failed, failure.message)) : connectionFailure(failure.message)
}

/** events.md: 498 `No MX`, temporary for what may change, permanent at once for NXDOMAIN, null MX and denied hosts. */
export function outcomeOfMx(found: Exclude<MxResult, { kind: 'hosts' }>, domain: string): Outcome {
  const noMx = (description: string) => failureOf(CODE_NO_MX, `No MX for ${domain}`, description)
  switch (found.kind) {
    case 'null-mx':
      return bounced(noMx('the domain says that it takes no mail (null MX)'))
    case 'no-domain':
      return bounced(noMx('the domain does not exist'))
    case 'no-mail-host':
      return deferred(noMx('the domain has neither MX nor address records'))
    case 'forbidden':
      return deferred(noMx('its mail hosts have only private addresses, which are not allowed'))
    case 'denied':
      return bounced({
        ...failureOf(CODE_NO_MX, `Mail to the mail hosts of ${domain} is not allowed here`, found.reason),
        enhanced: '5.7.1',
      })
    case 'temporary':
      return deferred(noMx(found.reason))
  }
}
