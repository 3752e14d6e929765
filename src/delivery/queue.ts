/**
 * The queue: rows are the truth. A claim takes due deliveries under a lease; every later write to a claimed
 * row names the token of its claim (fencing), so a process that lost its lease can change nothing. A lease
 * that runs out returns the row to the queue; it is never deleted.
 */
import { newId } from '../base/ids.ts'
import { type EventRecord, eventStatement } from '../events/event.ts'
import type { DeliveryRow, DeliveryState } from '../store/schema.ts'
import type { SqlValue, Statement, Store } from '../store/store.ts'

/** How long a claim holds without renewal; a lost process's deliveries wait at most this long. */
export const LEASE_MS = 60_000

/** A delivery in this process's hands. */
export type ClaimedDelivery = DeliveryRow & { lease_token: string; lease_until: number }

/** How a claimed delivery ends its attempt. */
export interface Settlement {
  state: Exclude<DeliveryState, 'sending' | 'scheduled'>
  /** Unix milliseconds of the next attempt when the state is `queued`; else the time of the end. */
  dueAt: number
  /** Stable word for "why not sent"; empty when delivered. */
  reason: string
  lastCode: number | null
  lastReply: string | null
}

export interface Queue {
  /** Claims up to `limit` due deliveries, oldest due first. */
  claim(limit: number, now: number): Promise<ClaimedDelivery[]>
  /** Extends the leases of everything this process holds. */
  renew(now: number): Promise<void>
  /** Gives back deliveries whose attempt has not begun. */
  release(ids: readonly string[], now: number): Promise<void>
  /** Returns deliveries whose lease ran out to the queue; resolves how many. */
  reclaim(now: number): Promise<number>
  /** When the next delivery falls due, or null if nothing waits. */
  nextDueAt(): Promise<number | null>
  /**
   * Writes the end of an attempt, its event and whatever else belongs to it in one transaction.
   * @throws StaleWrite when the lease is no longer ours: then nothing was written.
   */
  settle(
    delivery: ClaimedDelivery,
    end: Settlement,
    events: readonly EventRecord[],
    more: readonly Statement[],
    now: number,
  ): Promise<void>
}

const CLAIM = (lock: string) => `UPDATE deliveries
  SET state = 'sending', lease_owner = ?, lease_token = ?, lease_until = ?, updated_at = ?
  WHERE id IN (
    SELECT id FROM deliveries WHERE state IN ('scheduled', 'queued') AND due_at <= ?
    ORDER BY due_at, id LIMIT ? ${lock})
  RETURNING *`

const RENEW = `UPDATE deliveries SET lease_until = ? WHERE lease_owner = ? AND state = 'sending'`

const RETURN = `UPDATE deliveries
  SET state = 'queued', lease_owner = NULL, lease_token = NULL, lease_until = NULL, updated_at = ?`

const SETTLE = `UPDATE deliveries
  SET state = ?, due_at = ?, attempts = attempts + 1, reason = ?, last_code = ?, last_reply = ?,
      lease_owner = NULL, lease_token = NULL, lease_until = NULL, updated_at = ?
  WHERE id = ? AND lease_token = ? AND state = 'sending'`

/** Ids in one statement; both databases take far more values, but a plan per length is kept. */
const RELEASE_MAX = 200

/** `owner` names this process. On SQLite nobody else can hold a lease, so an earlier run's are void at once. */
export function createQueue(store: Store, owner: string): Queue {
  const claimSql = CLAIM(store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : '')
  const one = async (sql: string, values: SqlValue[]) => {
    const [result] = await store.commit([{ sql, values }])
    return result ?? { rows: [], affected: 0 }
  }
  const foreign = store.kind === 'sqlite' ? ' OR lease_owner <> ?' : ''
  return {
    async claim(limit, now) {
      const until = now + LEASE_MS
      const { rows } = await one(claimSql, [
        owner,
        newId(),
        Math.round(until),
        Math.round(now),
        Math.round(now),
        limit,
      ])
      const claimed = rows as unknown as ClaimedDelivery[]
      return claimed.sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1))
    },
    async renew(now) {
      await one(RENEW, [Math.round(now + LEASE_MS), owner])
    },
    async release(ids, now) {
      for (let from = 0; from < ids.length; from += RELEASE_MAX) {
        const some = ids.slice(from, from + RELEASE_MAX)
        const marks = some.map(() => '?').join(', ')
        await one(`${RETURN} WHERE state = 'sending' AND lease_owner = ? AND id IN (${marks})`, [
          Math.round(now),
          owner,
          ...some,
        ])
      }
    },
    async reclaim(now) {
      const values: SqlValue[] = [Math.round(now), Math.round(now)]
      if (foreign) values.push(owner)
      const { affected } = await one(
        `${RETURN} WHERE state = 'sending' AND (lease_until < ?${foreign})`,
        values,
      )
      return affected
    },
    async nextDueAt() {
      const row = await store.db
        .selectFrom('deliveries')
        .select('due_at')
        .where('state', 'in', ['scheduled', 'queued'])
        .orderBy('due_at')
        .limit(1)
        .executeTakeFirst()
      return row?.due_at ?? null
    },
    async settle(delivery, end, events, more, now) {
      const values = [
        end.state,
        Math.round(end.dueAt),
        end.reason,
        end.lastCode,
        end.lastReply,
        Math.round(now),
      ]
      const outcome: Statement = {
        sql: SETTLE,
        values: [...values, delivery.id, delivery.lease_token],
        expectRows: 1,
      }
      await store.commit([outcome, ...events.map(eventStatement), ...more])
    },
  }
}
