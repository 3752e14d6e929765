/**
 * The mail of a deleted domain: what still waited ends with an event that says why, then messages and their
 * blobs go, a batch at a time. Events stay to the end of their retention.
 */
import { NotYet, type OnDomainDeleted } from '../domains/deletion.ts'
import { type EventMessage, eventStatement, rejectedEvent } from '../events/event.ts'
import { parseMailbox } from '../mime/address.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { DeliveryRow } from '../store/schema.ts'
import { StaleWrite, type Store } from '../store/store.ts'
import type { MessageRecord } from './content.ts'
import { acceptedMessage } from './copy.ts'
import type { RecipientVariables } from './draft.ts'
import type { MessageRecords } from './records.ts'

/** Per transaction: short enough that mail of other domains is not held up. */
const BATCH = 200

export function removeMail(parts: {
  store: Store
  blobs: BlobStore
  records: MessageRecords
  storageUrl: string
  now: () => number
}): OnDomainDeleted {
  const { store, blobs } = parts
  return async (domain) => {
    // No index leads from a domain to its deliveries, which hot inserts would pay for: one pass in order of id.
    for (let last: string | null = ''; last !== null; ) last = await removeDeliveries(domain.id, last)
    const sending = await store.db
      .selectFrom('deliveries')
      .select('id')
      .where('domain_id', '=', domain.id)
      .limit(1)
      .executeTakeFirst()
    if (sending) throw new NotYet(`a delivery of ${domain.name} is under way`)
    for (let last: string | null = ''; last !== null; ) last = await removeMessages(domain.id, last)
  }

  function aboutOf(
    record: MessageRecord,
    row: Pick<DeliveryRow, 'id' | 'recipient_header' | 'variables_json'>,
  ): EventMessage {
    const variables =
      row.variables_json === null ? null : (JSON.parse(row.variables_json) as RecipientVariables)
    return acceptedMessage(record, parts.storageUrl, parseMailbox(row.recipient_header), row, variables)
  }

  /** Removes a batch after the id `last` that nobody has in hand; resolves its last id, null at the end. */
  async function removeDeliveries(domainId: string, last: string): Promise<string | null> {
    const rows = await store.db
      .selectFrom('deliveries')
      .select(['id', 'message_pk', 'state', 'recipient_header', 'variables_json'])
      .where('domain_id', '=', domainId)
      .where('state', '<>', 'sending')
      .where('id', '>', last)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    for (const row of rows) {
      const waits = row.state === 'queued' || row.state === 'scheduled'
      const record = waits ? await parts.records.byId(row.message_pk) : null
      const remove = {
        sql: 'DELETE FROM deliveries WHERE id = ? AND state = ?',
        values: [row.id, row.state],
        expectRows: 1,
      }
      const event = record && rejectedEvent(aboutOf(record, row), 'The domain was deleted', '', parts.now())
      await store.commit(event ? [remove, eventStatement(event)] : [remove]).catch((error: unknown) => {
        throw error instanceof StaleWrite ? new NotYet('a delivery was taken up', { cause: error }) : error
      })
    }
    return rows.length < BATCH ? null : (rows.at(-1)?.id ?? null)
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
    for (const row of rows) {
      for (const blob of JSON.parse(row.blobs_json) as string[]) await blobs.remove(blob)
      await store.db.deleteFrom('messages').where('id', '=', row.id).execute()
    }
    return rows.length < BATCH ? null : (rows.at(-1)?.id ?? null)
  }
}
