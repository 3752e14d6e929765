/**
 * Mail from clients that have not logged in: reception for the service's own addresses and for nothing else.
 *
 * 1. RCPT TO: each reader of addresses is asked in turn (return paths, unsubscribe addresses, the address of feedback
 *    loops; later routes and lists). An address that none knows is refused: there is no relaying, and no bounce can
 *    come of it.
 * 2. DATA: the head of the content goes to whoever took the address. The 250 comes when what follows from it is on disk.
 *
 * A return path with a wrong token is refused rather than taken and dropped. That tells a forger that it is wrong,
 * which 64 bits of MAC allow: a guess costs a command, and clients get few of those. In exchange nothing of a
 * forger's mail is ever read, and a sender whose server damages addresses learns of it.
 *
 * Nothing here writes mail: a report that means nothing is dropped, and what cannot be stored now is answered with 451,
 * so that its sender keeps it.
 */

import type { Clock } from '../base/clock.ts'
import type { Chunk } from '../base/mime-message.ts'
import { readChunks } from '../base/mime-message.ts'
import type { ReportMail } from '../base/report-mail.ts'
import { networkOf } from '../http/failed-attempts.ts'
import { createRateLimiter, DEFAULT_LIMITS, type LimitSetting, type RateLimiter } from '../http/rate-limit.ts'
import { bareAddress, type Mailbox } from '../mime/address.ts'
import { Refusal } from './replies.ts'
import { readReportMail } from './report-mail.ts'
import type { MailTransaction, ReceptionOpening } from './session.ts'

/** One mail as it came. */
export interface ReceivedMail {
  /** Envelope sender as given, not to be trusted; '' is `<>`. */
  sender: string
  remoteAddress: string
  /** The mail taken apart, and behind it the ones attached to it. Never rejects. */
  mails(): Promise<readonly ReportMail[]>
}

/** An address of ours, and what mail to it does. */
export interface ServiceAddress {
  /** Whose mails are counted together, e.g. one delivery's; null: they are not. */
  subject: string | null
  /**
   * Resolves when all that follows is committed; mail that means nothing resolves too. The same mail may come again
   * after a failure, or because its sender saw no answer.
   * @throws Refusal, StoreFull, StoreUnavailable; then the sender is told to try again
   */
  receive(mail: ReceivedMail): Promise<void>
}

/** The address if this reader knows it; domains in lower case. Null: not this reader's. */
export type AddressReader = (mailbox: Mailbox) => Promise<ServiceAddress | null>

export interface ReceptionParts {
  readers: readonly AddressReader[]
  /** A domain that mail may be for at all: the reply to an unknown address says so or speaks of relaying. */
  isOwnDomain(domain: string): Promise<boolean>
  clock: Clock
  /** True: no limits (`SENDWRIGHT_RATE_LIMIT=off`). */
  unlimited: boolean
}

/**
 * Bytes of a mail that are read; the rest is taken and dropped. Reports begin with what they have to say and end with
 * the returned message, which may have 25 MB. To refuse that would lose the report, as nobody sends a bounce twice.
 */
const HEAD_BYTES_MAX = 262_144
/** Mails of one network (IPv4 address, IPv6 /64); a large provider reports some ten thousand a day. */
const MAILS: LimitSetting = { count: 600, windowMs: 60_000 }
/**
 * Of those, mails to addresses without a token: anybody may send them, and reading a hostile one takes up to a tenth of
 * a second of the thread that serves everybody.
 */
const OPEN_MAILS: LimitSetting = { count: 120, windowMs: 60_000 }
/** Recipients that one network may get wrong before it is sent away: nobody's reports go to unknown addresses. */
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
    // Bounded by the commands that the session lets a client without login say.
    const taken = new Map<string, ServiceAddress>()
    return {
      keepBytesMax: HEAD_BYTES_MAX,
      async recipient(mailbox) {
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
        return 'Received'
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
