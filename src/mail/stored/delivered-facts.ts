/** Facts that only the delivered event of a copy has: time, sending address, provider, headers, key. */

import { sql } from 'kysely'
import type { DeliveryRow, PastDeliveryRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { recipientHash } from '../../watching/events/event.ts'
import { toRecipients } from '../../watching/events/search/indexing.ts'
import type { ListCopy } from '../record/record.ts'

export interface DeliveredFacts {
  /** Unix milliseconds. */
  deliveredAt: number | null
  provider: string | null
  sendingIp: string | null
  primaryDkim: string | null
  headers: ShownHeaders | null
}

/** Texts of the header fields of this copy. */
export interface ShownHeaders {
  from: string
  to: string
  subject: string
}

interface DeliveredPayload {
  storage?: { key?: unknown }
  message?: { headers?: Partial<Record<keyof ShownHeaders, unknown>> }
  envelope?: { 'sending-ip'?: unknown }
  'recipient-provider'?: unknown
  'primary-dkim'?: unknown
  'mailing-list'?: { sid?: unknown }
}

/** A delivered event is written with the last change of its delivery: usually within milliseconds of each other. */
const BEFORE_CHANGE_MS = 10_000
const AFTER_CHANGE_MS = 1_000
/** Searched next: the clock may have been set meanwhile. */
const CLOCK_SET_MS = 3_600_000

type FactsOf = Pick<DeliveryRow, 'id' | 'message_pk' | 'recipient' | 'list_json' | 'state' | 'updated_at'>

interface FactsMessage {
  /** Message-Ids of all copies: one, unless each has its own (`messageIdsOf`, event-message.ts). */
  messageIds: readonly string[]
  domainName: string
  createdAt: number
}

/**
 * Facts by delivery id, of deliveries of one message; those without a delivered event are left out. Found by
 * recipient, not by message id: a list's post has too many events to read once per chunk. The id is compared in the
 * database as well: an address that gets mail all day has more events than fit into memory.
 */
export async function deliveredFacts(
  store: Store,
  message: FactsMessage,
  deliveries: readonly FactsOf[],
): Promise<Map<string, DeliveredFacts>> {
  const delivered = deliveries.filter(({ state }) => state === 'delivered')
  const changes = delivered.map(({ updated_at }) => updated_at)
  const near = { from: Math.min(...changes) - BEFORE_CHANGE_MS, to: Math.max(...changes) + AFTER_CHANGE_MS }
  const facts = await factsWithin(store, message, delivered, near)
  const others = deliveries.filter(({ id }) => !facts.has(id))
  const last = Math.max(...others.map(({ updated_at }) => updated_at))
  const any = { from: message.createdAt, to: last + CLOCK_SET_MS }
  for (const [id, fact] of await factsWithin(store, message, others, any)) facts.set(id, fact)
  return facts
}

/** From events of this time, both ends included, in Unix milliseconds. */
async function factsWithin(
  store: Store,
  message: FactsMessage,
  deliveries: readonly FactsOf[],
  time: { from: number; to: number },
): Promise<Map<string, DeliveredFacts>> {
  if (deliveries.length === 0) return new Map()
  const hashes = deliveries.map(({ recipient }) => recipientHash(message.domainName, recipient))
  const rows = await store.db
    .selectFrom('events')
    .select(['recipient', 'timestamp_us', 'payload_json'])
    .where(toRecipients(store, [...new Set(hashes)], time.from * 1000, time.to * 1000))
    .where('event', '=', 'delivered')
    // As an expression, so that no database uses the index on message ids.
    .where(sql<string>`message_id || ''`, 'in', message.messageIds)
    .execute()
  const byRecipient = Map.groupBy(rows, ({ recipient }) => recipient)
  const facts = new Map<string, DeliveredFacts>()
  for (const delivery of deliveries) {
    for (const row of byRecipient.get(delivery.recipient.toLowerCase()) ?? []) {
      const payload = JSON.parse(row.payload_json) as DeliveredPayload
      if (isOf(payload, delivery)) facts.set(delivery.id, factsOf(payload, row.timestamp_us))
    }
  }
  return facts
}

/** A sender may give several messages one Message-Id, and one message may reach an address through a list too. */
function isOf(payload: DeliveredPayload, delivery: Pick<DeliveryRow, 'id' | 'message_pk' | 'list_json'>) {
  const key = payload.storage?.key
  const sid = delivery.list_json === null ? undefined : (JSON.parse(delivery.list_json) as ListCopy).sid
  return (key === delivery.id || key === delivery.message_pk) && payload['mailing-list']?.sid === sid
}

function factsOf(payload: DeliveredPayload, timestampUs: number): DeliveredFacts {
  const { from, to, subject } = payload.message?.headers ?? {}
  const provider = payload['recipient-provider']
  const sendingIp = payload.envelope?.['sending-ip']
  const primaryDkim = payload['primary-dkim']
  return {
    deliveredAt: timestampUs / 1000,
    provider: provider === undefined ? null : String(provider),
    sendingIp: sendingIp === undefined ? null : String(sendingIp),
    primaryDkim: primaryDkim === undefined ? null : String(primaryDkim),
    headers: { from: String(from ?? ''), to: String(to ?? ''), subject: String(subject ?? '') },
  }
}

export function factsOfPast(
  row: Pick<PastDeliveryRow, 'provider' | 'sending_ip' | 'delivered_at' | 'headers_json'>,
): DeliveredFacts {
  return {
    deliveredAt: row.delivered_at,
    provider: row.provider,
    sendingIp: row.sending_ip,
    // Not worth a column: no event requires it.
    primaryDkim: null,
    headers: row.headers_json === null ? null : (JSON.parse(row.headers_json) as ShownHeaders),
  }
}
