/**
 * Mail of clients that have logged in: whether they may send now, within which limits, and the reply
 * (smtp-submission.md section 2). Acceptance itself belongs to `messages` and is passed in.
 */

import { SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { limitExceeded, takeMessage } from '../../platform/http/limits/rate-limit.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { chunkSize } from '../../protocols/message/mime-message.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { holdTooLong } from '../../protocols/smtp/server-dialogue.ts'
import { Refusal, replyLine } from './replies.ts'
import type { MailOpening, MailTransaction, SmtpLogin } from './session.ts'

/** One message of one login, as received. */
export interface SubmittedMail extends Omit<MailOpening, 'isFirst'> {
  /** The content byte for byte, without the doubled dots. */
  raw: Chunk
  /** RCPT TO in order, duplicates included. */
  recipients: readonly Mailbox[]
}

export interface SubmissionParts extends Pick<Core, 'clock' | 'limiter'> {
  /** Whether the session's credential is still the same, and may be used from the address. */
  stillValid(login: SmtpLogin, remoteAddress: string): Promise<boolean>
  /** The login's domain, and how far ahead its mail may be scheduled. @throws ServiceError when it cannot send now */
  sendingDomain(login: SmtpLogin): Promise<{ name: string; scheduleMaxMs: number }>
  /**
   * Stores and queues the message durably; resolves with its Message-Id in angle brackets. A spooled `raw` has then been
   * kept or removed.
   * @throws ServiceError, StoreFull, StoreUnavailable; nothing was stored then
   */
  submit(mail: SubmittedMail): Promise<{ messageId: string }>
}

/** The `submission` of a session. */
export function createSubmission(parts: SubmissionParts): (opening: MailOpening) => Promise<MailTransaction> {
  const { limiter, clock } = parts

  return async ({ login, remoteAddress, envelopeSender, parameters }) => {
    if (!(await parts.stillValid(login, remoteAddress))) {
      throw new Refusal(`${STATUS.enough} The credential has changed`, { closes: true })
    }
    const { name: domain, scheduleMaxMs } = await parts.sendingDomain(login)
    if ((parameters.holdUntil ?? 0) > clock.now() + scheduleMaxMs)
      throw new Refusal(holdTooLong(Math.floor(scheduleMaxMs / SECOND_MS)))
    const grant = await limiter.take('sending', login.accountId)
    if (grant?.allowed === false) throw limitExceeded('sending', grant.retrySeconds, domain)
    return {
      async finish(raw, recipients) {
        const message = { recipients: recipients.length, bytes: chunkSize(raw) }
        await takeMessage(limiter, { accountId: login.accountId, name: domain }, message)
        const { messageId } = await parts.submit({
          ...{ raw, recipients, login, remoteAddress, envelopeSender, parameters },
        })
        return replyLine(`${STATUS.ok} Queued`, messageId)
      },
    }
  }
}
