/**
 * The addresses that mail comes back to, for reception (src/inbound):
 *
 *     bounce+<token>@<any host>   the return path of one delivery
 *     fbl@<host of ours>          where feedback loops send complaints
 *     unsub+<token>@<any host>    unsubscribing by mail
 *
 * An authentic token is enough whatever the host: the return-path host of a domain may have changed since the mail
 * was sent.
 */
import type { Logger } from 'pino'
import { deliveryOfReturnPath, type ReturnPathMac } from '../delivery/return-path.ts'
import type { AddressReader, ReceivedMail } from '../inbound/reception.ts'
import { Refusal } from '../inbound/replies.ts'
import type { KnownDeliveries } from '../messages/known-deliveries.ts'
import type { Unsubscription } from '../tracking/tokens.ts'
import { UNSUBSCRIBE_PREFIX } from '../tracking/tokens.ts'
import type { Reports } from './reports.ts'

/** Local part of the address to give to feedback loops. Not abuse@: that one people read. */
export const FEEDBACK_LOCAL = 'fbl'

export interface ReportAddressParts {
  reports: Reports
  mac: ReturnPathMac
  /** Whether mail for this host, in lower case, is the service's own. */
  isOwnHost(host: string): Promise<boolean>
  log: Logger
}

/** Return paths, and the address of feedback loops. */
export function reportAddresses({ reports, mac, isOwnHost, log }: ReportAddressParts): AddressReader {
  const receive = (deliveryId: string | null) => async (mail: ReceivedMail) => {
    const verdict = await reports.take(await mail.mails(), deliveryId)
    log.info({ deliveryId, verdict, remoteAddress: mail.remoteAddress }, 'mail came back')
    if (verdict === 'too-early') throw new Refusal('451 4.4.5 Try again later')
  }
  return async ({ local, domain }) => {
    const deliveryId = deliveryOfReturnPath(`${local}@${domain}`, mac)
    if (deliveryId !== null) return { subject: `return path ${deliveryId}`, receive: receive(deliveryId) }
    const feedback = local.toLowerCase() === FEEDBACK_LOCAL && (await isOwnHost(domain))
    return feedback ? { subject: null, receive: receive(null) } : null
  }
}

export interface UnsubscribeAddressParts {
  /** What an authentic token names. */
  readToken(token: string): Pick<Unsubscription, 'deliveryId' | 'scope'> | null
  deliveries: KnownDeliveries
  /** Resolves whether this changed anything. */
  unsubscribe(from: Unsubscription): Promise<boolean>
  log: Logger
}

/** Addresses of `%unsubscribe_email%` (tracking.md rule 19). Any mail to one unsubscribes: its content is not read. */
export function unsubscribeAddresses(parts: UnsubscribeAddressParts): AddressReader {
  return async ({ local }) => {
    if (!local.toLowerCase().startsWith(UNSUBSCRIBE_PREFIX)) return null
    const named = parts.readToken(local.slice(UNSUBSCRIBE_PREFIX.length).toLowerCase())
    if (!named) return null
    return {
      subject: `unsubscribe ${named.deliveryId}`,
      async receive({ remoteAddress }) {
        const delivery = await parts.deliveries.find(named.deliveryId)
        const changed = delivery !== null && (await parts.unsubscribe(unsubscription(named, delivery)))
        parts.log.info({ ...named, changed, known: delivery !== null, remoteAddress }, 'unsubscribed by mail')
      },
    }
  }
}

type Found = NonNullable<Awaited<ReturnType<KnownDeliveries['find']>>>

const unsubscription = (
  { scope }: Pick<Unsubscription, 'scope'>,
  { accountId, domainId, recipient, about, listSid, deliveryId }: Found,
): Unsubscription => ({
  scope,
  accountId,
  domainId,
  recipient,
  tags: about.summary.tags,
  listSid,
  deliveryId,
})
