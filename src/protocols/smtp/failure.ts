import { replyText, type SmtpReply } from './reply.ts'

/** The step of the dialogue that failed. `body`: while content was sent; `dot`: waiting for the answer to it. */
export type SmtpStage =
  | 'connect'
  | 'tls'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'auth'
  | 'rset'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'body'
  | 'dot'
  | 'quit'

export type SmtpFailureReason =
  /** The server refused, in answer or (only before the final dot) unsolicited; `reply` has its words. */
  | 'refused'
  /** No connection: refused, unreachable, no such host. */
  | 'unreachable'
  /** No connection, by a fault of this machine: no open file left, no such source address. */
  | 'local'
  /** The connection was closed, or broke. */
  | 'closed'
  | 'timeout'
  /** What was received is not SMTP, or was unsolicited. */
  | 'protocol'
  /** The TLS handshake failed. */
  | 'tls'
  /** TLS works, but the certificate did not verify. */
  | 'certificate'
  /** The server lacks what is needed: STARTTLS, AUTH, SMTPUTF8. */
  | 'unsupported'
  /** There is no password or token to log in with, or it cannot be sent. */
  | 'login'
  /** The message is over the size that the server announced (RFC 1870 §6.1); nothing was sent. */
  | 'too-large'
  /** An address or name that cannot be put on a command line; nothing was sent. */
  | 'address'
  /** Our own message cannot be sent: malformed header, or a chunk that could not be read. */
  | 'message'
  /** The caller's signal. */
  | 'aborted'

/**
 * The only error that the client rejects with for faults of the network or the message. The error of a `beforeFinalDot`
 * hook passes through as it is.
 */
export class SmtpFailure extends Error {
  override name = 'SmtpFailure'
  readonly stage: SmtpStage
  readonly reason: SmtpFailureReason
  readonly reply: SmtpReply | null
  /** The final dot may have reached the server, but no answer arrived: it may have accepted the message or not. */
  readonly afterFinalDot: boolean

  readonly #fault: Fault

  constructor(stage: SmtpStage, fault: Fault, afterFinalDot = false) {
    super(`SMTP ${stage}: ${fault.message}`, fault.cause === undefined ? {} : { cause: fault.cause })
    this.#fault = fault
    this.stage = stage
    this.reason = fault.reason
    this.reply = fault.reply ?? null
    this.afterFinalDot = afterFinalDot
  }

  /** The same, known to have happened after the final dot was written. */
  withFateUnknown(): SmtpFailure {
    return new SmtpFailure(this.stage, this.#fault, true)
  }
}

/** A failure whose stage is not known yet. */
export interface Fault {
  reason: SmtpFailureReason
  message: string
  reply?: SmtpReply
  cause?: unknown
}

export function refusedBy(reply: SmtpReply): Fault {
  return { reason: 'refused', message: replyText(reply), reply }
}
