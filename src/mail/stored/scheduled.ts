/** Mail that is not due yet: listing, moving, cancelling (own-operations.md section 2), and dropping a domain's queue (M7). */

import { sql } from 'kysely'
import { Conflict, NotFound } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { cancelExpansions, endExpansionsOf } from '../../sending/lists/expansion-job.ts'
import { type MessageSummary, rejectedEvent } from '../../watching/events/event.ts'
import type { Delivery } from '../deliver/contract.ts'
import { eventMessage } from '../record/event-message.ts'
import type { MessageOptions } from '../record/options.ts'
import type { MessageRecords } from '../record/record.ts'
import type { AttemptsInProgress } from './in-progress.ts'
import type { QueueLimits } from './queue-limits.ts'
import type { ScheduledItem } from './shapes.ts'

export interface ScheduledParts extends Pick<Core, 'store' | 'clock' | 'recorder'> {
  records: MessageRecords
  storageUrl: string
  queueLimits: QueueLimits
  inProgress: AttemptsInProgress
  /** Name under which this process holds leases. */
  leaseOwner: string
  engine: Pick<Delivery, 'wake'>
}

export interface ScheduledFilter {
  domain?: string | undefined
  recipient?: string | undefined
  tag?: string | undefined
  /** Unix milliseconds. */
  before?: number | undefined
  after?: number | undefined
}

// As a literal: SQLite uses a partial index only for values that are known when it plans.
const SCHEDULED = sql<boolean>`deliveries.state = 'scheduled'`

/** Rows read for one page when tags, which are in JSON, are compared. */
const SCANNED_MAX = 5_000

/** By first due time, then message; `from` is the position after which the page begins. */
export async function listScheduled(
  { store }: Pick<ScheduledParts, 'store'>,
  accountId: string,
  filter: ScheduledFilter,
  from: { dueAt: number; id: string } | null,
  limit: number,
): Promise<{ items: ScheduledItem[]; last: { dueAt: number; id: string } | null }> {
  let query = store.db
    .selectFrom('deliveries')
    .innerJoin('messages', 'messages.id', 'deliveries.message_pk')
    .where('deliveries.account_id', '=', accountId)
    .where(SCHEDULED)
    .groupBy([
      'messages.id',
      'messages.message_id',
      'messages.domain_name',
      'messages.summary_json',
      'messages.created_at',
    ])
    .select((eb) => [
      'messages.id',
      'messages.message_id',
      'messages.domain_name',
      'messages.summary_json',
      'messages.created_at',
      eb.fn.min<number>('deliveries.due_at').as('due_at'),
      eb.fn.countAll<number>().as('copies'),
    ])
  if (filter.domain) query = query.where('messages.domain_name', '=', filter.domain.toLowerCase())
  if (filter.recipient) query = query.where('deliveries.recipient', '=', filter.recipient)
  if (filter.before !== undefined) query = query.where('deliveries.due_at', '<', filter.before)
  if (filter.after !== undefined) query = query.where('deliveries.due_at', '>', filter.after)
  if (from) {
    const first = sql<number>`min(deliveries.due_at)`
    query = query.having((eb) =>
      eb.or([
        eb(first, '>', from.dueAt),
        eb.and([eb(first, '=', from.dueAt), eb('messages.id', '>', from.id)]),
      ]),
    )
  }
  const rows = await query
    .orderBy('due_at')
    .orderBy('messages.id')
    .limit(filter.tag ? SCANNED_MAX : limit)
    .execute()
  const items: ScheduledItem[] = []
  let last: { dueAt: number; id: string } | null = null
  for (const row of rows) {
    if (items.length === limit) break
    last = { dueAt: Number(row.due_at), id: row.id }
    const summary = JSON.parse(row.summary_json) as MessageSummary
    if (filter.tag && !summary.tags.some((tag) => tag.toLowerCase() === filter.tag?.toLowerCase())) continue
    items.push({
      message_id: row.message_id,
      storage_key: row.id,
      domain: row.domain_name,
      deliverytime: formatRfc3339(new Date(Number(row.due_at))),
      accepted_at: formatRfc3339(new Date(row.created_at)),
      from: summary.from,
      to: summary.to,
      subject: summary.subject,
      tags: summary.tags,
      recipients: Number(row.copies),
    })
  }
  return { items, last }
}

const NOT_FOUND = 'Scheduled message not found'

/** The row ids of the messages with this Message-Id that still have something scheduled. @throws NotFound */
async function scheduledIds({ store, clock }: ScheduledParts, accountId: string, messageId: string) {
  const ofAccount = store.db
    .selectFrom('messages')
    .select(['messages.id', 'messages.options_json'])
    .where('messages.message_id', '=', messageId.replace(/^<|>$/g, ''))
    .where('messages.account_id', '=', accountId)
  // A post to a list has no copies at first. Queried first: if its copies are made meanwhile, the other query sees them.
  const posts = await ofAccount
    .innerJoin('list_expansions', 'list_expansions.message_pk', 'messages.id')
    .where('list_expansions.state', '=', 'running')
    .execute()
  const rows = await ofAccount
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('deliveries')
          .select('deliveries.id')
          .whereRef('deliveries.message_pk', '=', 'messages.id')
          .where(SCHEDULED),
      ),
    )
    .execute()
  const later = posts.filter(({ options_json: json }) => {
    const { deliveryTime } = JSON.parse(json) as MessageOptions
    return (deliveryTime ?? 0) > clock.now()
  })
  const ids = new Set([...rows, ...later].map(({ id }) => id))
  if (ids.size === 0) throw new NotFound(NOT_FOUND)
  return [...ids]
}

/**
 * Moves every copy to `time`; a past time means at once.
 * @throws NotFound, Conflict when something of the message was handed over already, or while copies for the
 *   members of a list are still being made: they would have the old time
 */
export async function moveScheduled(
  parts: ScheduledParts,
  accountId: string,
  messageId: string,
  time: number,
): Promise<void> {
  const { store, clock } = parts
  const ids = await scheduledIds(parts, accountId, messageId)
  const now = Math.floor(clock.now())
  const due = Math.max(Math.floor(time), now)
  await store.transaction(async (tx) => {
    let copies = tx.selectFrom('deliveries').select(['id', 'state']).where('message_pk', 'in', ids)
    // On SQLite the transaction is the only writer; on PostgreSQL the lock keeps copies from being claimed meanwhile.
    if (store.kind === 'postgres') copies = copies.forUpdate()
    const begun = (await copies.execute()).some(({ state }) => state !== 'scheduled')
    let expanding = tx
      .selectFrom('list_expansions')
      .select('id')
      .where('message_pk', 'in', ids)
      .where('state', '=', 'running')
    if (store.kind === 'postgres') expanding = expanding.forUpdate()
    if ((await expanding.execute()).length > 0)
      throw new Conflict('Cannot move the message: copies for a mailing list are still being made')
    if (begun) throw new Conflict('Cannot move the message: part of it was handed over already')
    await tx
      .updateTable('deliveries')
      .set((eb) => ({
        expires_at: eb('expires_at', '+', eb(eb.val(due), '-', eb.ref('due_at'))),
        due_at: due,
        updated_at: now,
        ...(due <= now && { state: 'queued' as const, reason: 'new' }),
      }))
      .where('message_pk', 'in', ids)
      .execute()
  })
  parts.engine.wake()
}

/** Cancels what is still scheduled of the message, with one `rejected` event. @throws NotFound */
export async function cancelScheduled(parts: ScheduledParts, accountId: string, messageId: string) {
  const now = Math.floor(parts.clock.now())
  const ids = await scheduledIds(parts, accountId, messageId)
  for (const id of ids) {
    const record = await parts.records.byId(id)
    if (!record) continue
    const about = eventMessage(record, parts.storageUrl, record.id, record.summary)
    await parts.store.commit([
      ...endExpansionsOf(id),
      {
        sql: `UPDATE deliveries SET state = 'cancelled', reason = 'cancelled', due_at = ?, updated_at = ?
          WHERE message_pk = ? AND state = 'scheduled'`,
        values: [now, now, id],
      },
      ...parts.recorder.statements([rejectedEvent(about, 'cancelled', '', parts.clock.now())]),
    ])
  }
}

/** Ids in one statement. */
const IDS_MAX = 500
const DROPPED = 'queue-dropped'
const SET_DROPPED = `UPDATE deliveries SET state = 'cancelled', reason = 'queue-dropped', due_at = ?, updated_at = ?,
    lease_owner = NULL, lease_token = NULL, lease_until = NULL`

/**
 * Drops what the domain has in both queues and has not been handed over, without events (M7), in all processes. Attempts
 * in progress continue.
 */
export async function dropQueue(parts: ScheduledParts, domain: Domain): Promise<void> {
  const { store, clock } = parts
  const now = Math.floor(clock.now())
  const held = await dropHeld(parts, domain.id, now)
  await store.commit([
    ...cancelExpansions(domain.id),
    {
      sql: `${SET_DROPPED} WHERE domain_id = ? AND state IN ('scheduled', 'queued')`,
      values: [now, now, domain.id],
    },
    ...held,
  ])
  await store.changes.announce(DROPPED, JSON.stringify({ domainId: domain.id, upTo: now }))
  await parts.queueLimits.emptied(domain.id)
}

/** Has this process drop what it holds when another one drops a domain's queue. */
export function followDroppedQueues(parts: ScheduledParts): void {
  parts.store.changes.follow(DROPPED, async (text) => {
    if (text === null) return
    const { domainId, upTo } = JSON.parse(text) as { domainId: string; upTo: number }
    const statements = await dropHeld(parts, domainId, upTo)
    if (statements.length > 0) await parts.store.commit(statements)
  })
}

/** No attempt begins any more for what the domain queued up to `now`; the statements end what this process holds of it. */
async function dropHeld(parts: ScheduledParts, domainId: string, now: number): Promise<Statement[]> {
  const inProgress = parts.inProgress.cancel(domainId, now)
  const claimed = await parts.store.db
    .selectFrom('deliveries')
    .select('id')
    .where('domain_id', '=', domainId)
    .where('created_at', '<=', now)
    .where(sql<boolean>`state = 'sending'`)
    .where('lease_owner', '=', parts.leaseOwner)
    .execute()
  const attempted = new Set(inProgress)
  const waiting = claimed.map(({ id }) => id).filter((id) => !attempted.has(id))
  const statements: Statement[] = []
  for (let at = 0; at < waiting.length; at += IDS_MAX) {
    const some = waiting.slice(at, at + IDS_MAX)
    const marks = some.map(() => '?').join(', ')
    statements.push({
      sql: `${SET_DROPPED} WHERE state = 'sending' AND id IN (${marks})`,
      values: [now, now, ...some],
    })
  }
  return statements
}
