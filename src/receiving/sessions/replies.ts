/** Maps errors to SMTP replies; the only table that does (smtp-submission.md section 3). */
import {
  BadRequest,
  Forbidden,
  InsufficientStorage,
  NotFound,
  PayloadTooLarge,
  QuotaExceeded,
  ServiceError,
  TooManyRequests,
} from '../../base/process/errors.ts'
import { StoreFull } from '../../platform/store/store.ts'

/** A reply that refuses. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** Code, enhanced code and text. */
  readonly reply: string
  /** The connection ends with it. */
  readonly closes: boolean

  constructor(reply: string, { closes = false }: { closes?: boolean } = {}) {
    super(reply)
    this.reply = reply
    this.closes = closes
  }
}

type ErrorType = abstract new (...args: never[]) => ServiceError

const CODE_OF: ReadonlyArray<readonly [ErrorType, string]> = [
  [BadRequest, '554 5.6.0'],
  [Forbidden, '550 5.7.1'],
  [NotFound, '550 5.7.1'],
  [QuotaExceeded, '550 5.7.1'],
  [PayloadTooLarge, '552 5.3.4'],
  [TooManyRequests, '451 4.7.1'],
  [InsufficientStorage, '452 4.3.1'],
]

/** A reply is one line of at most 512 bytes with its CRLF, in ASCII (RFC 5321 §4.5.3.1.5). */
const REPLY_MAX = 510

/** Code and text as one line, whatever the text holds. */
export function replyLine(code: string, text: string): string {
  return `${code} ${text.replace(/[^\x20-\x7e]+/gu, (found) => (/^\s+$/.test(found) ? ' ' : '?'))}`.slice(
    0,
    REPLY_MAX,
  )
}

export interface ErrorReply {
  reply: string
  closes: boolean
  /** True: not caused by the client; log it with its cause. */
  ourFault: boolean
}

export function replyTo(error: unknown): ErrorReply {
  if (error instanceof Refusal) return { reply: error.reply, closes: error.closes, ourFault: false }
  if (error instanceof StoreFull) return refused('452 4.3.1 Insufficient Storage', true)
  const code = error instanceof ServiceError && CODE_OF.find(([type]) => error instanceof type)?.[1]
  if (!code) return refused('451 4.3.0 Try again later', true)
  return refused(replyLine(code, (error as ServiceError).message), error instanceof InsufficientStorage)
}

const refused = (reply: string, ourFault: boolean): ErrorReply => ({ reply, closes: false, ourFault })
