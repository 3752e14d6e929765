/**
 * What is known of a delivery when an open, a complaint or a late bounce arrives for it: its rows while they exist, then
 * what `past-deliveries.ts` kept of them. This is the file to begin with in this folder: what is kept after acceptance,
 * for callers (scheduled.ts), for retries (in-progress.ts) and for later events.
 */

import { ID_PATTERN } from '../../base/ids.ts'
import type { DeliveryRow, DeliveryState } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import type { EventMessage, MessageSummary } from '../../watching/events/event.ts'
import { knownMessage, messageIdsOf } from '../record/event-message.ts'
import type { RecipientVariables } from '../record/options.ts'
import type { ListCopy } from '../record/record.ts'
import { type DeliveredFacts, deliveredFacts, factsOfPast } from './delivered-facts.ts'

export interface KnownDelivery {
  deliveryId: string
  accountId: string
  /** The domain whose settings and suppressions apply: for copies of a list the list's own. */
  domainId: string
  domainName: string
  recipient: string
  recipientDomain: string
  /** As the events of this copy name it. */
  about: EventMessage
  state: DeliveryState
  /** Including the one that delivered. */
  attempts: number
  /** Unix milliseconds; null: not delivered. */
  deliveredAt: number | null
  /** Display name; `Other` when unknown. */
  recipientProvider: string
  sendingIp: string | null
  /** Name of the key that signed; null: not signed, or the stored message was removed since. */
  primaryDkim: string | null
  /** Id of the mailing list that the copy went through. */
  listSid: string | null
}

export type KnownDeliveries = ReturnType<typeof createKnownDeliveries>

export interface KnownDeliveriesParts {
  store: Store
  domains: Pick<DomainDirectory, 'byId'>
  storageUrl: string
}

export function createKnownDeliveries(parts: KnownDeliveriesParts) {
  const { store, domains, storageUrl } = parts

  async function known(row: FoundRow, facts: DeliveredFacts | null): Promise<KnownDelivery> {
    const list = row.list_json === null ? null : (JSON.parse(row.list_json) as ListCopy)
    const domain = await domains.byId(row.domain_id)
    return {
      deliveryId: row.id,
      accountId: row.account_id,
      domainId: row.domain_id,
      domainName: domain?.name ?? row.domain_name,
      recipient: row.recipient,
      recipientDomain: row.recipient_domain,
      about: aboutOf(row, list, facts, storageUrl),
      state: row.state,
      attempts: row.attempts,
      deliveredAt: facts?.deliveredAt ?? (row.state === 'delivered' ? row.updated_at : null),
      recipientProvider: facts?.provider ?? 'Other',
      sendingIp: facts?.sendingIp ?? null,
      primaryDkim: facts?.primaryDkim ?? null,
      listSid: list?.sid ?? null,
    }
  }

  async function live(deliveryId: string): Promise<KnownDelivery | null> {
    const row = await store.db
      .selectFrom('deliveries')
      .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
      .select(DELIVERY_COLUMNS.map((name) => `deliveries.${name}` as const))
      .select('deliveries.updated_at')
      .select(['messages.domain_name', 'messages.message_id', 'messages.summary_json'])
      .select('messages.created_at as message_created_at')
      .where('deliveries.id', '=', deliveryId)
      .executeTakeFirst()
    if (!row) return null
    const message = {
      messageIds: messageIdsOf(row.message_id, JSON.parse(row.summary_json) as MessageSummary, [row]),
      domainName: row.domain_name,
      createdAt: row.message_created_at,
    }
    const facts = await deliveredFacts(store, message, [row])
    return known(row, facts.get(row.id) ?? null)
  }

  /** Looked up after the live rows, which move here in one transaction: a delivery is always in one of the two. */
  async function past(deliveryId: string): Promise<KnownDelivery | null> {
    const row = await store.db
      .selectFrom('past_deliveries')
      .innerJoin('past_messages', 'past_messages.id', 'past_deliveries.message_pk')
      .select(DELIVERY_COLUMNS.map((name) => `past_deliveries.${name}` as const))
      .select(['past_deliveries.provider', 'past_deliveries.sending_ip', 'past_deliveries.delivered_at'])
      .select(['past_deliveries.headers_json', 'past_deliveries.removed_at as updated_at'])
      .select(['past_messages.domain_name', 'past_messages.message_id', 'past_messages.summary_json'])
      .where('past_deliveries.id', '=', deliveryId)
      .executeTakeFirst()
    return row ? known(row, factsOfPast(row)) : null
  }

  return {
    async find(deliveryId: string): Promise<KnownDelivery | null> {
      if (!ID_PATTERN.test(deliveryId)) return null
      return (await live(deliveryId)) ?? (await past(deliveryId))
    },
  }
}

/** The columns that both tables have. */
export const DELIVERY_COLUMNS = [
  'id',
  'account_id',
  'domain_id',
  'message_pk',
  'recipient',
  'recipient_domain',
  'recipient_header',
  'variables_json',
  'list_json',
  'state',
  'attempts',
] as const

type FoundRow = Pick<DeliveryRow, (typeof DELIVERY_COLUMNS)[number] | 'updated_at'> & {
  domain_name: string
  message_id: string
  summary_json: string
}

function aboutOf(row: FoundRow, list: ListCopy | null, facts: DeliveredFacts | null, storageUrl: string) {
  const message = {
    id: row.message_pk,
    accountId: row.account_id,
    domainName: row.domain_name,
    messageId: row.message_id,
    summary: JSON.parse(row.summary_json) as MessageSummary,
    // Only the content knows whether a list's copy is of a batch, and only its storage key depends on that.
    content: { batch: row.variables_json !== null && list === null },
  }
  const variables =
    row.variables_json === null ? null : (JSON.parse(row.variables_json) as RecipientVariables)
  const about = knownMessage(message, storageUrl, parseMailbox(row.recipient_header), row, variables, list)
  // A template may have given header fields of its own, which only the delivered event knows.
  return facts?.headers ? { ...about, summary: { ...about.summary, ...facts.headers } } : about
}
