/**
 * Mail from clients that have not logged in: it is accepted for the service's own addresses, and for the domains of its
 * accounts if their routes want it.
 *
 * 1. RCPT TO: readers of addresses are tried in turn (return paths, unsubscribe addresses, the address of feedback
 *    loops), then the reader of whole mails (routes). An address that none of them knows is refused: mail is not relayed,
 *    and causes no bounce.
 * 2. DATA: the head of a report goes to the reader that knows the address, a whole mail to the reader of mails. The 250
 *    follows once its consequences are on disk.
 *
 * A transaction is either for reports or for the mail of one domain. A recipient of another kind gets a 452, so that the
 * client sends to it in a transaction of its own (RFC 5321 §4.5.3.1.10): each mail has one owner.
 *
 * A return path with a wrong token is refused, not accepted and dropped. This shows a forger that the token is wrong,
 * which 64 bits of MAC allow: a guess costs a command, and clients get few of those. In exchange a forger's mail is never
 * read, and a sender whose server damages addresses gets an error.
 *
 * Nothing here sends mail: a report without meaning is dropped, and one that cannot be stored now gets 451, so that its
 * sender keeps it.
 */

import { networkOf } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import {
  createRateLimiter,
  DEFAULT_LIMITS,
  type LimitSetting,
  type RateLimiter,
} from '../../platform/http/limits/rate-limit.ts'
import { type Chunk, chunkSize, readChunk, sliceChunk } from '../../protocols/message/mime-message.ts'
import type { ReportMail } from '../../protocols/message/report-mail.ts'
import { addressKey, bareAddress, type Mailbox } from '../../protocols/mime/address.ts'
import { STATUS } from '../../protocols/smtp/codes.ts'
import { readReportMail } from './read-report-mail.ts'
import { Refusal } from './replies.ts'
import type { MailTransaction, ReceptionOpening } from './session.ts'

/** One mail as received. */
export interface ReceivedMail {
  /** Envelope sender as given, not to be trusted; '' is `<>`. */
  sender: string
  remoteAddress: string
  /** The name that the client gave. */
  helo: string
  /** As received, cut after `keptBytes` of the address. Gone when `receive` has ended. */
  raw: Chunk
  /** The parsed beginning of the mail, followed by the ones attached to it. Never rejects. */
  mails(): Promise<readonly ReportMail[]>
}

/** An address of the service, and what mail to it does. */
export interface ServiceAddress {
  /** Mails of one subject, e.g. a delivery, are limited together; null: they are not. */
  subject: string | null
  /**
   * Reads large contents: this many bytes of a mail are kept. A transaction has one such address, and a network may send
   * fewer of these mails.
   */
  keptBytes?: number
  /**
   * Resolves when all consequences are committed, or at once if there are none. The same mail may arrive again after a
   * failure, or because its sender got no reply.
   * @throws Refusal, StoreFull, StoreUnavailable; the sender is then asked to try again
   */
  receive(mail: ReceivedMail): Promise<void>
}

/** The address if this reader knows it; domains in lower case. Null: not this reader's. */
export type AddressReader = (mailbox: Mailbox) => Promise<ServiceAddress | null>

/** A recipient of whole mails. */
export interface MailPlace {
  /** Recipients of one transaction have the same owner, e.g. a domain. */
  owner: string
}

/** A whole mail with the recipients that were accepted, all of one owner. */
export interface WholeMail extends ReceptionOpening {
  owner: string
  raw: Chunk
  /** Distinct. */
  recipients: readonly Mailbox[]
}

/** Reads mail for addresses that the service has no use of its own for. */
export interface MailReader {
  /** One transaction of a client. */
  open(opening: ReceptionOpening): OpenMail
}

interface OpenMail {
  /** Domains in lower case. `unwanted`: nobody wants mail there. Null: not a domain of the service. @throws Refusal */
  place(mailbox: Mailbox): Promise<MailPlace | 'unwanted' | null>
  /**
   * Resolves when the mail is stored, and a spooled `raw` kept; or when it is dropped, and `raw` is of no use any more.
   * @throws Refusal, StoreFull, StoreUnavailable; nothing was stored then
   */
  receive(mail: WholeMail): Promise<'stored' | 'dropped'>
}

export interface ReceptionParts {
  readers: readonly AddressReader[]
  mailReader: MailReader | undefined
  /** Whether the domain is the service's own; decides which reply an unknown address gets. */
  isOwnDomain(domain: string): Promise<boolean>
  /** Its mail is to be sent again later: the account of the domain is disabled. In lower case. */
  isSuspended(domain: string): Promise<boolean>
  clock: Clock
  /** True: no limits (`SENDWRIGHT_RATE_LIMIT=off`). */
  unlimited: boolean
}

/**
 * Bytes of a mail that are kept; the rest is read and dropped. A report begins with its facts and ends with the returned
 * message, which may have 25 MB. Refusing it would lose the report, as bounces are not sent twice.
 */
const HEAD_BYTES_MAX = 262_144
/** Mails of one network (IPv4 address, IPv6 /64); a large provider sends about ten thousand reports a day. */
const MAILS: LimitSetting = { count: 600, windowMs: MINUTE_MS }
/**
 * How many of them may go to addresses without a token: anyone can send them, and reading a hostile one blocks the main thread
 * for up to a tenth of a second.
 */
const OPEN_MAILS: LimitSetting = { count: 120, windowMs: MINUTE_MS }
/** How many of them may have large contents to unpack: a hostile one takes half a second of the main thread, in slices. */
const LARGE_MAILS: LimitSetting = { count: 30, windowMs: MINUTE_MS }
/** Unknown recipients of one network until it is disconnected: genuine reports have none. */
const UNKNOWN_RECIPIENTS: LimitSetting = { count: 100, windowMs: MINUTE_MS }
/** Recipients of a whole mail; servers must take that many (RFC 5321 §4.5.3.1.8). */
const MAIL_RECIPIENTS_MAX = 100
/** Mails for one delivery: a bounce, a complaint, and a few notices of delays. */
const MAILS_PER_SUBJECT: LimitSetting = { count: 20, windowMs: HOUR_MS }

/** The `reception` of a session. */
export function createReception(
  parts: ReceptionParts,
): (opening: ReceptionOpening) => Promise<MailTransaction> {
  const limits = {
    mails: limiterOf(parts, MAILS),
    open: limiterOf(parts, OPEN_MAILS),
    large: limiterOf(parts, LARGE_MAILS),
    unknown: limiterOf(parts, UNKNOWN_RECIPIENTS),
    subjects: limiterOf(parts, MAILS_PER_SUBJECT),
  }

  async function addressOf(mailbox: Mailbox): Promise<ServiceAddress | null> {
    for (const read of parts.readers) {
      const found = await read(mailbox)
      if (found) return found
    }
    return null
  }

  async function unknownRecipient(domain: string, network: string, isOwn: boolean): Promise<Refusal> {
    if (!limits.unknown(network))
      return new Refusal(`${STATUS.enough} Too many unknown recipients`, { closes: true })
    const own = isOwn || (await parts.isOwnDomain(domain))
    return new Refusal(
      own ? `${STATUS.unknownMailbox} Recipient not found` : `${STATUS.forbidden} Relaying denied`,
    )
  }

  return async (opening) => {
    const { sender, remoteAddress, helo } = opening
    const network = networkOf(remoteAddress)
    // Bounded by the number of commands that the session accepts from a client without login.
    const taken = new Map<string, ServiceAddress>()
    const mailboxes = new Map<string, Mailbox>()
    const mail = parts.mailReader?.open(opening)
    let owner: string | null = null
    let dropped = false
    const hasLarge = () => [...taken.values()].some(({ keptBytes }) => keptBytes !== undefined)

    async function takePlace(mailbox: Mailbox): Promise<void> {
      const place = (await mail?.place(mailbox)) ?? null
      if (place === null || place === 'unwanted')
        throw await unknownRecipient(mailbox.domain, network, place === 'unwanted')
      if (taken.size > 0 || (owner !== null && owner !== place.owner)) throw anotherTransaction()
      if (mailboxes.size >= MAIL_RECIPIENTS_MAX)
        throw new Refusal(`${STATUS.tooManyRecipients} Too many recipients`)
      owner = place.owner
      mailboxes.set(addressKey(mailbox), mailbox)
    }

    async function receiveReports(raw: Chunk): Promise<void> {
      const isOpen = [...taken.values()].every(({ subject }) => subject === null)
      if (!limits.mails(network) || (isOpen && !limits.open(network))) throw tooMany()
      if (hasLarge() && !limits.large(network)) throw tooMany()
      let read: Promise<readonly ReportMail[]> | null = null
      const mails = () => {
        read ??= readHead(raw).then(readReportMail)
        return read
      }
      for (const address of taken.values()) await address.receive({ sender, remoteAddress, helo, raw, mails })
    }

    return {
      get keepBytesMax() {
        if (owner !== null) return undefined
        return Math.max(HEAD_BYTES_MAX, ...[...taken.values()].map(({ keptBytes = 0 }) => keptBytes))
      },
      get dropped() {
        return dropped
      },
      async recipient(mailbox) {
        const folded = { ...mailbox, domain: mailbox.domain.toLowerCase() }
        if (await parts.isSuspended(folded.domain))
          throw new Refusal(`${STATUS.suspended} The account of this domain is disabled, try again later`)
        const address = await addressOf(folded)
        if (!address) return takePlace(folded)
        if (owner !== null) throw anotherTransaction()
        if (address.keptBytes !== undefined && hasLarge()) throw anotherTransaction()
        if (address.subject !== null && !limits.subjects(address.subject)) throw tooMany()
        taken.set(address.subject ?? bareAddress(mailbox).toLowerCase(), address)
      },
      async finish(raw) {
        if (owner === null) await receiveReports(raw)
        else {
          if (!limits.mails(network)) throw tooMany()
          const whole = { ...opening, owner, raw, recipients: [...mailboxes.values()] }
          dropped = (await mail?.receive(whole)) === 'dropped'
        }
        return `${STATUS.ok} Received`
      },
    }
  }
}

const anotherTransaction = () =>
  new Refusal(`${STATUS.tooManyRecipients} Send to this recipient in another transaction`)
const tooMany = () => new Refusal(`${STATUS.tooMuch} Too many messages, try again later`)

/** Takes one; false: none is left. */
function limiterOf(
  { clock, unlimited }: ReceptionParts,
  setting: LimitSetting,
): (subject: string) => boolean {
  const limiter: RateLimiter = createRateLimiter({
    clock,
    off: unlimited,
    limits: { ...DEFAULT_LIMITS, default: setting },
  })
  return (subject) => limiter.take('default', subject)?.allowed ?? true
}

const readHead = (raw: Chunk): Promise<Buffer> =>
  readChunk(sliceChunk(raw, 0, Math.min(chunkSize(raw), HEAD_BYTES_MAX)))
