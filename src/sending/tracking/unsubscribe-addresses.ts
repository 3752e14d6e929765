/** The addresses to unsubscribe by mail, `unsub+<token>@<any host>`, for reception (src/receiving/sessions). */
import type { Logger } from 'pino'
import type { KnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import type { AddressReader } from '../../receiving/sessions/reception.ts'
import { UNSUBSCRIBE_PREFIX, type Unsubscription } from './links/tokens.ts'

interface UnsubscribeAddressParts {
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
