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
import { STATUS } from '../../protocols/smtp/codes.ts'

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

type ErrorType = abstract new (...args: never) => ServiceError

const CODE_OF: ReadonlyArray<readonly [ErrorType, string]> = [
  [BadRequest, STATUS.badContent],
  [Forbidden, STATUS.forbidden],
  [NotFound, STATUS.forbidden],
  [QuotaExceeded, STATUS.forbidden],
  [PayloadTooLarge, STATUS.tooLarge],
  [TooManyRequests, STATUS.tooMuch],
  [InsufficientStorage, STATUS.storageFull],
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

/** `ourFault`: not caused by the client; to be logged with its cause. */
export function replyTo(error: unknown) {
  if (error instanceof Refusal) return { reply: error.reply, closes: error.closes, ourFault: false }
  if (error instanceof StoreFull) return refused(`${STATUS.storageFull} Insufficient Storage`, true)
  const code = error instanceof ServiceError && CODE_OF.find(([type]) => error instanceof type)?.[1]
  if (!code) return refused(`${STATUS.tryLater} Try again later`, true)
  return refused(replyLine(code, (error as ServiceError).message), error instanceof InsufficientStorage)
}

const refused = (reply: string, ourFault: boolean) => ({ reply, closes: false, ourFault })
