/**
 * Releases captured mail: hands the bytes as they were captured to the server that the operator names, for recipients that the
 * caller names. One transaction; nothing is retried, queued or recorded as an event.
 *
 * The copy has a return path and a Sid field of its own, before the captured ones. Their token names no delivery, so what comes
 * back about the copy is taken, logged and dropped, and is not held against the recipient of the captured mail.
 */
import { BadRequest, Forbidden } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'
import { returnPathOf } from '../../mail/deliver/attempt/return-path.ts'
import { connectToRelay, linkOf } from '../../mail/deliver/connect/relay.ts'
import type { InboxReleaseConfig } from '../../platform/config/sending.ts'
import { chunkSize, type MimeMessage, messageSize, sliceChunk } from '../../protocols/message/mime-message.ts'
import {
  addressKey,
  bareAddress,
  type Mailbox,
  parseMailbox,
  readOrNull,
} from '../../protocols/mime/address.ts'
import { DELIVERED_HEADER_LIMITS, readHead, splitMessage } from '../../protocols/mime/split.ts'
import type { SmtpConnection, Transaction, TransactionResult } from '../../protocols/smtp/connection.ts'
import { SmtpFailure } from '../../protocols/smtp/failure.ts'
import { replyText } from '../../protocols/smtp/reply.ts'
import type { CapturedMail } from './capture-listener.ts'
import type { RELEASED } from './shapes.ts'

/** Somebody waits for the answer. */
const STEP_MS = 15 * SECOND_MS
const ALL_MS = MINUTE_MS

export interface Released extends Of<typeof RELEASED> {
  /** Why not all recipients got it, in the words of the server; null: they did. */
  failure: string | null
}

interface ReleaseParts {
  clock: Clock
  heloName: string
  /** An authentic token that names no delivery (return-path.ts). */
  newToken(): string
  /** With a final hyphen. */
  headerPrefix: string
}

/**
 * Returns what sends one message to the recipients.
 * @throws BadRequest for an address that is none, Forbidden for one that the operator does not allow
 */
export function createRelease(
  { server, recipients }: InboxReleaseConfig,
  { clock, heloName, newToken, headerPrefix }: ReleaseParts,
) {
  const link = linkOf('of SENDWRIGHT_INBOX_RELEASE', server)
  const allowed = new Set(recipients)

  return async (
    mail: Pick<CapturedMail, 'from' | 'raw'>,
    to: readonly string[],
    callerSignal: AbortSignal,
  ): Promise<Released> => {
    const addresses = allowedAddresses(to, allowed)
    const transaction = await transactionOf(mail, addresses, newToken(), headerPrefix)
    const deadline = AbortSignal.timeout(ALL_MS)
    const signal = AbortSignal.any([callerSignal, deadline])
    let connection: SmtpConnection | null = null
    try {
      connection = await connectToRelay(link, STEP_MS, { heloName, clock, signal })
      return releasedBy(await connection.send(transaction))
    } catch (error) {
      if (error instanceof SmtpFailure) return notReleased(addresses, failureText(error, deadline.aborted))
      throw error
    } finally {
      await connection?.quit()
    }
  }
}

/** Each once. */
function allowedAddresses(to: readonly string[], allowed: ReadonlySet<string>): string[] {
  const mailboxes = new Map(to.map(mailboxOf).map((mailbox) => [addressKey(mailbox), mailbox]))
  for (const [key, mailbox] of mailboxes)
    if (![key, `@${mailbox.domain}`, '*'].some((name) => allowed.has(name)))
      throw new Forbidden(`SENDWRIGHT_INBOX_RELEASE_TO does not contain ${bareAddress(mailbox)}`)
  return [...mailboxes.values()].map(bareAddress)
}

/** What was given is not repeated: the log of a key's calls keeps error texts. */
function mailboxOf(text: string, at: number): Mailbox {
  const mailbox = readOrNull(() => parseMailbox(text))
  if (mailbox === null) throw new BadRequest(`Invalid parameter: to: item ${at + 1} is not an address`)
  return mailbox
}

/** Reads the header alone: the content of large mail stays in its file. */
async function transactionOf(
  { from, raw }: Pick<CapturedMail, 'from' | 'raw'>,
  recipients: readonly string[],
  token: string,
  headerPrefix: string,
): Promise<Transaction> {
  const head = splitMessage(await readHead(raw), DELIVERED_HEADER_LIMITS)
  const message: MimeMessage = {
    // Not signed, and read first: reports may return the header without the return path.
    headers: [`${headerPrefix}Sid: ${token}`, ...head.headers.map((field) => field.raw)],
    body: [sliceChunk(raw, head.bodyOffset, chunkSize(raw))],
  }
  const returnPath = returnPathOf(token, from.slice(from.lastIndexOf('@') + 1))
  const utf8 = [returnPath, ...recipients, ...message.headers].some((text) => !ASCII.test(text))
  return { returnPath, recipients, message, sizeBytes: messageSize(message), utf8 }
}

const ASCII = /^[\0-\x7f]*$/

function releasedBy({ recipients, data }: TransactionResult): Released {
  const results = recipients.map(({ address, reply }) => {
    const last = reply.code < 300 && data !== null ? data : reply
    return { address, accepted: last.code < 300, reply: replyText(last) }
  })
  const taken = results.filter(({ accepted }) => accepted)
  const refused = results.filter(({ accepted }) => !accepted)
  const words = refused.map(({ address, reply }) => `${address}: ${reply}`)
  // Who sends it again must know who has it.
  if (taken.length > 0) words.push(`sent to ${taken.map(({ address }) => address).join(', ')}`)
  return {
    accepted: taken.length,
    recipients: results,
    failure: refused.length === 0 ? null : words.join('; '),
  }
}

const notReleased = (addresses: readonly string[], failure: string): Released => ({
  accepted: 0,
  recipients: addresses.map((address) => ({ address, accepted: false, reply: failure })),
  failure,
})

function failureText({ message, reply, afterFinalDot }: SmtpFailure, isLate: boolean): string {
  const why = reply === null ? message : replyText(reply)
  const text = isLate ? `no end within a minute: ${why}` : why
  return afterFinalDot ? `${text}; the server may have it all the same` : text
}
