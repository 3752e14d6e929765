/**
 * Mail from clients that have not logged in: it is accepted for the service's own addresses and nothing else.
 *
 * 1. RCPT TO: readers of addresses are tried in turn (return paths, unsubscribe addresses, the address of feedback
 *    loops; later routes and lists). An address that none of them knows is refused: mail is not relayed, and causes no
 *    bounce.
 * 2. DATA: the head of the content goes to the reader that knows the address. The 250 follows once its consequences are
 *    on disk.
 *
 * A return path with a wrong token is refused, not accepted and dropped. This shows a forger that the token is wrong,
 * which 64 bits of MAC allow: a guess costs a command, and clients get few of those. In exchange a forger's mail is never
 * read, and a sender whose server damages addresses gets an error.
 *
 * Nothing here sends mail: a report without meaning is dropped, and one that cannot be stored now gets 451, so that its
 * sender keeps it.
 */
import { networkOf } from '../base/client-networks.ts'
import type { Clock } from '../base/clock.ts'
import type { Chunk } from '../base/mime-message.ts'
import { readChunks } from '../base/mime-message.ts'
import type { ReportMail } from '../base/report-mail.ts'
import { createRateLimiter, DEFAULT_LIMITS, type LimitSetting, type RateLimiter } from '../http/rate-limit.ts'
import { bareAddress, type Mailbox } from '../mime/address.ts'
import { readReportMail } from './read-report-mail.ts'
import { Refusal } from './replies.ts'
import type { MailTransaction, ReceptionOpening } from './session.ts'

/** One mail as received. */
export interface ReceivedMail {
  /** Envelope sender as given, not to be trusted; '' is `<>`. */
  sender: string
  remoteAddress: string
  /** The parsed mail, followed by the ones attached to it. Never rejects. */
  mails(): Promise<readonly ReportMail[]>
}

/** An address of the service, and what mail to it does. */
export interface ServiceAddress {
  /** Mails of one subject, e.g. a delivery, are limited together; null: they are not. */
  subject: string | null
  /**
   * Resolves when all consequences are committed, or at once if there are none. The same mail may arrive again after a
   * failure, or because its sender got no reply.
   * @throws Refusal, StoreFull, StoreUnavailable; the sender is then asked to try again
   */
  receive(mail: ReceivedMail): Promise<void>
}

/** The address if this reader knows it; domains in lower case. Null: not this reader's. */
export type AddressReader = (mailbox: Mailbox) => Promise<ServiceAddress | null>

export interface ReceptionParts {
  readers: readonly AddressReader[]
  /** Whether the domain is the service's own; decides which reply an unknown address gets. */
  isOwnDomain(domain: string): Promise<boolean>
  /** Its mail is to be sent again later: the account of the domain is disabled. In lower case. Default: none is. */
  isSuspended?(domain: string): Promise<boolean>
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
const MAILS: LimitSetting = { count: 600, windowMs: 60_000 }
/**
 * Of those, mails to addresses without a token: anyone can send them, and reading a hostile one blocks the main thread
 * for up to a tenth of a second.
 */
const OPEN_MAILS: LimitSetting = { count: 120, windowMs: 60_000 }
/** Unknown recipients of one network until it is disconnected: genuine reports have none. */
const UNKNOWN_RECIPIENTS: LimitSetting = { count: 100, windowMs: 60_000 }
/** Mails for one delivery: a bounce, a complaint, and a few notices of delays. */
const MAILS_PER_SUBJECT: LimitSetting = { count: 20, windowMs: 3_600_000 }

/** The `reception` of a session. */
export function createReception(
  parts: ReceptionParts,
): (opening: ReceptionOpening) => Promise<MailTransaction> {
  const limits = {
    mails: limiterOf(parts, MAILS),
    open: limiterOf(parts, OPEN_MAILS),
    unknown: limiterOf(parts, UNKNOWN_RECIPIENTS),
    subjects: limiterOf(parts, MAILS_PER_SUBJECT),
  }

  async function addressOf(mailbox: Mailbox): Promise<ServiceAddress | null> {
    const folded = { ...mailbox, domain: mailbox.domain.toLowerCase() }
    for (const read of parts.readers) {
      const found = await read(folded)
      if (found) return found
    }
    return null
  }

  async function unknownRecipient(domain: string, network: string): Promise<Refusal> {
    if (!limits.unknown(network))
      return new Refusal('421 4.7.0 Too many unknown recipients', { closes: true })
    const own = await parts.isOwnDomain(domain.toLowerCase())
    return new Refusal(own ? '550 5.1.1 Recipient not found' : '550 5.7.1 Relaying denied')
  }

  return async ({ sender, remoteAddress }) => {
    const network = networkOf(remoteAddress)
    // Bounded by the number of commands that the session accepts from a client without login.
    const taken = new Map<string, ServiceAddress>()
    return {
      keepBytesMax: HEAD_BYTES_MAX,
      async recipient(mailbox) {
        if (await parts.isSuspended?.(mailbox.domain.toLowerCase()))
          throw new Refusal('450 4.7.1 The account of this domain is disabled, try again later')
        const address = await addressOf(mailbox)
        if (!address) throw await unknownRecipient(mailbox.domain, network)
        if (address.subject !== null && !limits.subjects(address.subject)) throw tooMany()
        taken.set(address.subject ?? bareAddress(mailbox).toLowerCase(), address)
      },
      async finish(raw) {
        const isOpen = [...taken.values()].every(({ subject }) => subject === null)
        if (!limits.mails(network) || (isOpen && !limits.open(network))) throw tooMany()
        const head = await readAll(raw)
        let mails: Promise<readonly ReportMail[]> | null = null
        const read = () => {
          mails ??= readReportMail(head)
          return mails
        }
        for (const address of taken.values()) await address.receive({ sender, remoteAddress, mails: read })
        return '250 2.0.0 Received'
      },
    }
  }
}

const tooMany = () => new Refusal('451 4.7.1 Too many messages, try again later')

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

async function readAll(raw: Chunk): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of readChunks([raw])) pieces.push(piece)
  return Buffer.concat(pieces)
}
