/**
 * Deliveries of removed messages: a few facts of each are kept, because opens, complaints and late bounces arrive days
 * later. They are written in the transaction that removes the delivery, a chunk at a time.
 */

import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { DeliveryRow, MessageRow, PastDeliveryRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import { messageIdsOf } from '../record/event-message.ts'
import { deliveredFacts, type ShownHeaders } from './delivered-facts.ts'
import { DELIVERY_COLUMNS } from './known-deliveries.ts'

/** Rows of one transaction: about 10 ms of work on either database. */
const CHUNK = 500
/** Late complaints and bounces arrive within weeks; events of a delivery are kept as long as it is known. */
export const KEEP_DAYS_MIN = 60

export type RemovedSummary = ShownHeaders & Pick<MessageSummary, 'messageIdTemplate' | 'sharedVariables'>

export type RemovedMessage = Pick<MessageRow, 'id' | 'domain_name' | 'message_id' | 'created_at'> & {
  summary: RemovedSummary
}

export type PastDeliveries = ReturnType<typeof createPastDeliveries>

/** `keepDays`: how long events are kept. */
export function createPastDeliveries(parts: { store: Store; clock: Clock; keepDays: number }) {
  const { store, clock } = parts
  const keepMs = Math.max(parts.keepDays, KEEP_DAYS_MIN) * DAY_MS

  return {
    /** Removes all deliveries of a message and keeps their facts. `message` itself is still there afterwards. */
    async moveAll(message: RemovedMessage): Promise<void> {
      for (;;) {
        const rows = await store.db
          .selectFrom('deliveries')
          .select([...DELIVERY_COLUMNS, 'updated_at'])
          .where('message_pk', '=', message.id)
          .orderBy('id')
          .limit(CHUNK)
          .execute()
        if (rows.length === 0) return
        await store.commit(await moveStatements(store, message, rows, Math.floor(clock.now())))
        if (rows.length < CHUNK) return
      }
    },
    /** Removes expired facts. */
    async sweep(): Promise<void> {
      const before = Math.floor(clock.now() - keepMs)
      for (const table of ['past_deliveries', 'past_messages'] as const) {
        for (;;) {
          const [result] = await store.commit([
            {
              sql: `DELETE FROM ${table} WHERE id IN
                (SELECT id FROM ${table} WHERE removed_at < ? ORDER BY removed_at, id LIMIT ${CHUNK})`,
              values: [before],
            },
          ])
          if ((result?.affected ?? 0) < CHUNK) break
        }
      }
    },
    /** Removes the facts of a deleted domain. */
    async removeDomain(domainId: string): Promise<void> {
      // The tables have no index by domain: one pass over each in order of id.
      for (const table of ['past_deliveries', 'past_messages'] as const) {
        for (let last = ''; ; ) {
          const rows = await store.db
            .selectFrom(table)
            .select('id')
            .where('domain_id', '=', domainId)
            .where('id', '>', last)
            .orderBy('id')
            .limit(CHUNK)
            .execute()
          const ids = rows.map(({ id }) => id)
          if (ids.length > 0) await store.db.deleteFrom(table).where('id', 'in', ids).execute()
          if (ids.length < CHUNK) break
          last = ids.at(-1) ?? last
        }
      }
    },
  }
}

type MovedRow = Pick<DeliveryRow, (typeof DELIVERY_COLUMNS)[number] | 'updated_at'>

async function moveStatements(store: Store, message: RemovedMessage, rows: readonly MovedRow[], now: number) {
  // Nothing can come back for a delivery that no server has seen.
  const sent = rows.filter(({ state, attempts }) => state === 'delivered' || attempts > 0)
  const named = {
    messageIds: messageIdsOf(message.message_id, message.summary, sent),
    domainName: message.domain_name,
    createdAt: message.created_at,
  }
  const facts = await deliveredFacts(store, named, sent)
  const past = sent.map(({ updated_at, ...row }): PastDeliveryRow => {
    const known = facts.get(row.id)
    return {
      ...row,
      provider: known?.provider ?? null,
      sending_ip: known?.sendingIp ?? null,
      delivered_at: row.state === 'delivered' ? Math.floor(known?.deliveredAt ?? updated_at) : null,
      headers_json:
        known?.headers && differs(known.headers, message.summary) ? JSON.stringify(known.headers) : null,
      removed_at: now,
    }
  })
  const ids = rows.map(({ id }) => id)
  return [
    ...(past.length > 0 ? [keepMessage(message.id, now)] : []),
    ...insertMany('past_deliveries', past),
    {
      sql: `DELETE FROM deliveries WHERE id IN (${ids.map(() => '?').join(', ')})`,
      values: ids,
      expectRows: ids.length,
    },
  ]
}

const differs = (headers: ShownHeaders, summary: ShownHeaders) =>
  headers.from !== summary.from || headers.to !== summary.to || headers.subject !== summary.subject

/** Once per message; every chunk extends its retention. */
function keepMessage(id: string, now: number): Statement {
  return {
    sql: `INSERT INTO past_messages (id, account_id, domain_id, domain_name, message_id, summary_json, removed_at)
      SELECT id, account_id, domain_id, domain_name, message_id, summary_json, CAST(? AS BIGINT)
      FROM messages WHERE id = ?
      ON CONFLICT (id) DO UPDATE SET removed_at = excluded.removed_at`,
    values: [now, id],
  }
}
