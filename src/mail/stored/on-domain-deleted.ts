/**
 * The mail of a deleted domain: waiting deliveries end with an event that names the reason, then messages and their blobs
 * are removed, a batch at a time. Events stay until their retention ends.
 */

import type { Clock } from '../../base/time/clock.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { DeliveryRow, MessageRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Store } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import { NotYet, type OnDomainDeleted } from '../../sending/domains/deletion.ts'
import { endExpansionsOf } from '../../sending/lists/expansion-job.ts'
import { type EventMessage, type EventRecorder, rejectedEvent } from '../../watching/events/event.ts'
import { STATE_OF_ID } from '../deliver/claim/queue.ts'
import { knownMessage } from '../record/event-message.ts'
import type { RecipientVariables } from '../record/options.ts'
import type { ListCopy, MessageRecord, MessageRecords } from '../record/record.ts'

/** Per transaction: short enough not to delay mail of other domains. */
const BATCH = 200
/** Units of other domains' mail find a place between these. */
const AT_ONCE = 20
const COLUMNS = ['id', 'message_pk', 'state', 'recipient_header', 'variables_json', 'list_json'] as const
type RemovedRow = Pick<MessageRow, 'id' | 'blobs_json'>
type WaitingRow = Pick<DeliveryRow, (typeof COLUMNS)[number]>

export function removeMail(parts: {
  store: Store
  blobs: BlobStore
  records: MessageRecords
  storageUrl: string
  recorder: EventRecorder
  clock: Clock
}): OnDomainDeleted {
  const { store, blobs } = parts
  return async (domain) => {
    // Deliveries have no index by domain, which every insert would pay for: one pass in order of id.
    for (let last: string | null = ''; last !== null; ) last = await removeDeliveries(domain.id, last)
    const sending = await store.db
      .selectFrom('deliveries')
      .select('id')
      .where('domain_id', '=', domain.id)
      .limit(1)
      .executeTakeFirst()
    if (sending) throw new NotYet(`a delivery of ${domain.name} is in progress`)
    for (let last: string | null = ''; last !== null; ) last = await removeMessages(domain.id, last)
  }

  function aboutOf(record: MessageRecord, row: WaitingRow): EventMessage {
    const recipient = parseMailbox(row.recipient_header)
    const variables =
      row.variables_json === null ? null : (JSON.parse(row.variables_json) as RecipientVariables)
    const list = row.list_json === null ? null : (JSON.parse(row.list_json) as ListCopy)
    return knownMessage(record, parts.storageUrl, recipient, row, variables, list)
  }

  /** Removes a batch of unclaimed ones after the id `last`; resolves with its last id, null at the end. */
  async function removeDeliveries(domainId: string, last: string): Promise<string | null> {
    const rows = await store.db
      .selectFrom('deliveries')
      .select(COLUMNS)
      .where('domain_id', '=', domainId)
      .where('state', '<>', 'sending')
      .where('id', '>', last)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    await endDeliveries(rows)
    return rows.length < BATCH ? null : (rows.at(-1)?.id ?? null)
  }

  /** Copies through a list of another domain, which need the message that is about to be removed. */
  async function removeCopiesOf(messagePk: string): Promise<void> {
    await store.commit(endExpansionsOf(messagePk))
    for (;;) {
      const rows = await store.db
        .selectFrom('deliveries')
        .select(COLUMNS)
        .where('message_pk', '=', messagePk)
        .orderBy('id')
        .limit(BATCH)
        .execute()
      if (rows.some(({ state }) => state === 'sending'))
        throw new NotYet(`a copy of message ${messagePk} is in progress`)
      await endDeliveries(rows)
      if (rows.length < BATCH) return
    }
  }

  async function endDelivery(row: WaitingRow): Promise<void> {
    const waits = row.state === 'queued' || row.state === 'scheduled'
    const record = waits ? await parts.records.byId(row.message_pk) : null
    const remove = {
      sql: `DELETE FROM deliveries WHERE id = ? AND ${STATE_OF_ID} = ?`,
      values: [row.id, row.state],
      expectRows: 1,
    }
    const event =
      record && rejectedEvent(aboutOf(record, row), 'The domain was deleted', '', parts.clock.now())
    await store
      .commit(event ? [remove, ...parts.recorder.statements([event])] : [remove])
      .catch((error: unknown) => {
        throw error instanceof StaleWrite ? new NotYet('a delivery was claimed', { cause: error }) : error
      })
  }

  /** Some at a time, which share a sync: one after the other, 100,000 took five times as long. */
  async function endDeliveries(rows: readonly WaitingRow[]): Promise<void> {
    for (let at = 0; at < rows.length; at += AT_ONCE)
      await settled(rows.slice(at, at + AT_ONCE).map(endDelivery))
  }

  async function removeMessage({ id, blobs_json: blobNames }: RemovedRow): Promise<void> {
    await removeCopiesOf(id)
    // Rows first: a blob without a row wastes space, a row without its blob is a broken message.
    await store.commit([
      { sql: 'DELETE FROM list_expansions WHERE message_pk = ?', values: [id] },
      { sql: 'DELETE FROM messages WHERE id = ?', values: [id] },
    ])
    for (const blob of JSON.parse(blobNames) as string[]) await blobs.remove(blob)
  }

  async function removeMessages(domainId: string, last: string): Promise<string | null> {
    const rows = await store.db
      .selectFrom('messages')
      .select(['id', 'blobs_json'])
      .where('domain_id', '=', domainId)
      .where('id', '>', last)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (let at = 0; at < rows.length; at += AT_ONCE)
      await settled(rows.slice(at, at + AT_ONCE).map(removeMessage))
    return rows.length < BATCH ? null : (rows.at(-1)?.id ?? null)
  }
}

/** Waits for all of them. @throws the first failure */
async function settled(running: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(running)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
