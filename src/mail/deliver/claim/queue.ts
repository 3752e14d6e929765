/**
 * The queue is the table of deliveries. A claim takes due rows under a lease; every later write to a claimed row names
 * the token of its claim (fencing), so a process that lost its lease can change nothing. When a lease runs out, the row
 * returns to the queue; it is never deleted.
 *
 * Where rows are not selected by id, the conditions on `state` are literals: the indexes are partial, with waiting rows
 * only, and a database uses such an index only for a condition that it can read when it plans.
 */

import { newId } from '../../../base/ids.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { DeliveryRow, DeliveryState } from '../../../platform/store/schema.ts'
import type { SqlValue, Statement, Store } from '../../../platform/store/store.ts'
import type { EventRecord, EventRecorder } from '../../../watching/events/event.ts'

/** How long a claim holds without renewal; a lost process's deliveries wait at most this long. */
export const LEASE_MS = MINUTE_MS

/** A delivery leased to this process. */
export type ClaimedDelivery = DeliveryRow & { lease_token: string; lease_until: number }

/** The columns of a due delivery that the choice of what to claim needs. */
export type DueDelivery = Pick<DeliveryRow, 'id' | 'account_id' | 'due_at'> & DueGroup

/** Sending domain, destination and source ('' if absent): deliveries that have these in common use one lane. */
export type DueGroup = Pick<DeliveryRow, 'domain_id' | 'recipient_domain'> & {
  source_key?: string | undefined
}

/** How a claimed delivery ends its attempt. */
export interface Settlement {
  state: Exclude<DeliveryState, 'sending' | 'scheduled'>
  /** Unix milliseconds of the next attempt when the state is `queued`; else the time of the end. */
  dueAt: number
  /** Attempts made in all. */
  attempts: number
  /** Stable word for why it was not sent; empty when delivered. */
  reason: string
  lastCode: number | null
  lastReply: string | null
}

/** For statements on rows that wait: see above. */
export const WAITS = `state IN ('scheduled', 'queued')`

const DUE_COLUMNS = 'id, account_id, domain_id, recipient_domain, source_key, due_at'

const DUE = {
  oldest: `SELECT ${DUE_COLUMNS} FROM deliveries WHERE ${WAITS} AND due_at <= ? ORDER BY due_at, id LIMIT ?`,
  newest: `SELECT ${DUE_COLUMNS} FROM deliveries WHERE ${WAITS} AND due_at <= ?
    ORDER BY due_at DESC, id DESC LIMIT ?`,
} as const

/**
 * The first row of the group after (`domain`, `sender`, `source`). Three searches, not one comparison of rows: for that
 * SQLite uses the first column of the index only, and reads the whole of a destination for each of its groups (40 ms instead of
 * 0.2 ms for three groups of 50,000).
 */
const headAfter = (domain: string, sender: string, source: string) => {
  const first = (where: string, order: string) =>
    `(SELECT n.id FROM deliveries n WHERE n.${WAITS} AND ${where} ORDER BY ${order} n.due_at, n.id LIMIT 1)`
  return `COALESCE(
    ${first(`n.recipient_domain = ${domain} AND n.domain_id = ${sender} AND n.source_key > ${source}`, 'n.source_key,')},
    ${first(`n.recipient_domain = ${domain} AND n.domain_id > ${sender}`, 'n.domain_id, n.source_key,')},
    ${first(`n.recipient_domain > ${domain}`, 'n.recipient_domain, n.domain_id, n.source_key,')})`
}

/** A loose index scan: each step searches for the group after the last one. The first row of a group is due longest. */
const DUE_GROUPS = `WITH RECURSIVE heads (id) AS (
    SELECT ${headAfter('?', '?', '?')}
    UNION ALL
    SELECT ${headAfter('c.recipient_domain', 'c.domain_id', 'c.source_key')}
    FROM heads JOIN deliveries c ON c.id = heads.id)
  SELECT d.account_id, d.domain_id, d.recipient_domain, d.source_key FROM heads JOIN deliveries d ON d.id = heads.id
  WHERE d.due_at <= ? LIMIT ?`

const DUE_OF = `SELECT ${DUE_COLUMNS} FROM deliveries
  WHERE ${WAITS} AND recipient_domain = ? AND domain_id = ? AND source_key = ? AND due_at <= ?
  ORDER BY due_at, id LIMIT ?`

/**
 * For rows that are to be found by id only: an expression fits no index. PostgreSQL's statistics may be from a time when
 * hardly anything waited or was being sent; with a condition on `state` it would then read all rows that do (decision 41).
 */
export const STATE_OF_ID = `state || ''`

/** A condition on a row of `deliveries`: its sender has set its window, and nothing arrives after it (messages.md rule 42). */
export const WINDOW_IS_SENDERS = `EXISTS (SELECT 1 FROM messages WHERE messages.id = deliveries.message_pk
  AND options_json LIKE '%"deliverWithinMs":%' AND options_json NOT LIKE '%"deliverWithinMs":null%')`

const claimStatement = (marks: string, lock: string, leaseEnd: string) => `UPDATE deliveries
  SET state = 'sending', lease_owner = ?, lease_token = ?, lease_until = ${leaseEnd}, updated_at = ?
  WHERE id IN (SELECT id FROM deliveries
    WHERE id IN (${marks}) AND ${STATE_OF_ID} IN ('scheduled', 'queued') AND due_at + 0 <= ? ${lock})
  RETURNING *`

const renewStatement = (leaseEnd: string) =>
  `UPDATE deliveries SET lease_until = ${leaseEnd} WHERE lease_owner = ? AND state = 'sending'`

const RETURN = `UPDATE deliveries
  SET state = 'queued', lease_owner = NULL, lease_token = NULL, lease_until = NULL, updated_at = ?`

const SETTLE = `UPDATE deliveries
  SET state = ?, due_at = ?, attempts = ?, reason = ?, last_code = ?, last_reply = ?,
      lease_owner = NULL, lease_token = NULL, lease_until = NULL, updated_at = ?
  WHERE id = ? AND lease_token = ? AND ${STATE_OF_ID} = 'sending'`

/** Ids in one statement. Their number is rounded up to one of these, so that few statements are prepared. */
const ID_COUNTS = [1, 8, 64, 512] as const
export const CLAIM_MAX = 512

export type Queue = ReturnType<typeof createQueue>

/** `owner` names this process. On SQLite no other can hold a lease, so leases of an earlier run are void at once. */
export function createQueue(store: Store, owner: string, recorder: EventRecorder) {
  const lock = store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const one = async (sql: string, values: SqlValue[]) => {
    const [result] = await store.commit([{ sql, values }])
    return result ?? { rows: [], affected: 0 }
  }
  const read = async <Row>(sql: string, values: SqlValue[]) =>
    (await store.read({ sql, values })) as unknown as Row[]
  const foreign = store.kind === 'sqlite' ? ' OR lease_owner <> ?' : ''
  const times = store.leaseTimes
  return {
    /** Up to `limit` due deliveries, the longest due first or last. `now`, here and below, in Unix milliseconds. */
    due: (limit: number, now: number, order: 'oldest' | 'newest') =>
      read<DueDelivery>(DUE[order], [Math.round(now), limit]),
    /**
     * Groups that have something due, after `after` in the order of destination, sending domain and source (null: from
     * the first); costs one index search per group that waits, however many rows it has.
     */
    dueGroups(limit: number, now: number, after: DueGroup | null) {
      const [domain, sender, source] = after ? keyOf(after) : FIRST
      const start = [domain, sender, source, domain, sender, domain]
      return read<DueGroup & Pick<DueDelivery, 'account_id'>>(DUE_GROUPS, [...start, Math.round(now), limit])
    },
    /** Up to `limit` due deliveries of a group, the longest due first. */
    dueOf: (group: DueGroup, limit: number, now: number) =>
      read<DueDelivery>(DUE_OF, [...keyOf(group), Math.round(now), limit]),
    /** Claims those of the ids that are still waiting, at most CLAIM_MAX of them; oldest due first. */
    async claim(ids: readonly string[], now: number): Promise<ClaimedDelivery[]> {
      if (ids.length === 0) return []
      const { marks, values } = padded(ids.slice(0, CLAIM_MAX))
      const at = Math.round(now)
      const { rows } = await one(claimStatement(marks, lock, times.sql), [
        ...[owner, newId(), times.value(now, LEASE_MS), at],
        ...values,
        at,
      ])
      const claimed = rows as unknown as ClaimedDelivery[]
      return claimed.sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1))
    },
    /** The lease of a row that is inserted as `sending`; `lease_until` is a value of the store's `leaseTimes`. */
    lease: (now: number) => ({
      lease_owner: owner,
      lease_token: newId(),
      lease_until: times.value(now, LEASE_MS),
    }),
    /** Extends the leases of everything this process holds. */
    async renew(now: number): Promise<void> {
      await one(renewStatement(times.sql), [times.value(now, LEASE_MS), owner])
    },
    /** Gives back deliveries whose attempt has not begun. */
    async release(ids: readonly string[], now: number): Promise<void> {
      for (let from = 0; from < ids.length; from += CLAIM_MAX) {
        const { marks, values } = padded(ids.slice(from, from + CLAIM_MAX))
        const sql = `${RETURN} WHERE state = 'sending' AND lease_owner = ? AND id IN (${marks})`
        await one(sql, [Math.round(now), owner, ...values])
      }
    },
    /** Returns deliveries whose lease ran out to the queue; resolves how many. */
    async reclaim(now: number): Promise<number> {
      const values: SqlValue[] = [Math.round(now), times.value(now, 0)]
      if (foreign) values.push(owner)
      const sql = `${RETURN} WHERE state = 'sending' AND (lease_until < ${times.sql}${foreign})`
      return (await one(sql, values)).affected
    },
    /** Ids that were claimed here over a lease ago and have not been settled. */
    async longHeld(now: number): Promise<string[]> {
      const sql = `SELECT id FROM deliveries WHERE state = 'sending' AND lease_owner = ? AND updated_at < ?`
      const rows = await read<{ id: string }>(sql, [owner, Math.round(now - LEASE_MS)])
      return rows.map(({ id }) => id)
    },
    /** When the next delivery falls due, or fell due, after `after`; null if none does. */
    async nextDueAt(after: number): Promise<number | null> {
      const sql = `SELECT due_at FROM deliveries WHERE ${WAITS} AND due_at > ? ORDER BY due_at, id LIMIT 1`
      const [row] = await read<{ due_at: number }>(sql, [Math.round(after)])
      return row?.due_at ?? null
    },
    /**
     * Writes the end of an attempt, its event and whatever else belongs to it in one transaction.
     * @throws StaleWrite when the lease is no longer ours: then nothing was written.
     */
    async settle(
      { id, lease_token }: ClaimedDelivery,
      { state, dueAt, attempts, reason, lastCode, lastReply }: Settlement,
      events: readonly EventRecord[],
      more: readonly Statement[],
      now: number,
    ): Promise<void> {
      const end = [state, Math.round(dueAt), attempts, reason, lastCode, lastReply, Math.round(now)]
      const outcome: Statement = { sql: SETTLE, values: [...end, id, lease_token], expectRows: 1 }
      // First: until it is on disk, a crash would send the message a second time.
      await store.commit([outcome, ...recorder.statements(events), ...more], 'first')
    },
  }
}

/** The sort key of a group; no destination is empty, so FIRST is before all. */
const keyOf = ({ recipient_domain, domain_id, source_key = '' }: DueGroup) =>
  [recipient_domain, domain_id, source_key] as const
const FIRST = ['', '', ''] as const

/** The ids as values of a list of fixed length, padded with the last one. */
function padded(ids: readonly string[]): { marks: string; values: string[] } {
  const count = ID_COUNTS.find((size) => size >= ids.length) ?? CLAIM_MAX
  const last = ids.at(-1) as string
  const values = Array.from({ length: count }, (_, index) => ids[index] ?? last)
  return { marks: marksOf(count), values }
}

const MARKS = new Map<number, string>(
  ID_COUNTS.map((count) => [count, Array.from({ length: count }, () => '?').join(', ')]),
)
const marksOf = (count: number) => MARKS.get(count) as string
