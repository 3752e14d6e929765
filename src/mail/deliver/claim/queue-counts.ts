/** How many deliveries are not done, of all processes. */

import { remember } from '../../../base/flow/cache.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Store } from '../../../platform/store/store.ts'

type WaitingState = 'scheduled' | 'queued' | 'sending'
export type QueueCounts = Readonly<Record<WaitingState, number>>

/**
 * Counts for one account, or with null for all. One pass over a partial index: 100,000 take 20 ms. The states are literals, so that
 * the index is used.
 */
export async function countQueue(store: Store, accountId: string | null = null): Promise<QueueCounts> {
  const own = accountId === null ? '' : 'AND domain_id IN (SELECT id FROM domains WHERE account_id = ?)'
  const [row] = await store.read({
    sql: `SELECT sum(CASE WHEN state = 'scheduled' THEN 1 ELSE 0 END) AS scheduled,
        sum(CASE WHEN state = 'queued' THEN 1 ELSE 0 END) AS queued, count(*) AS waiting
      FROM deliveries WHERE state IN ('scheduled', 'queued', 'sending') ${own}`,
    values: accountId === null ? [] : [accountId],
  })
  const [scheduled, queued, waiting] = ['scheduled', 'queued', 'waiting'].map((name) =>
    Number(row?.[name] ?? 0),
  ) as [number, number, number]
  return { scheduled, queued, sending: waiting - scheduled - queued }
}

/** A count is kept for this many times as long as it took: a long queue costs a twentieth of one processor at most. */
const KEPT_TIMES = 20
/** Accounts whose last count is remembered. */
const ACCOUNTS_MAX = 1_000

interface Reading {
  until: number
  counts: Promise<QueueCounts>
}

/** Counts for callers that ask again and again: calls share a count, and an empty queue is counted nearly each time. */
export function createQueueCounts(
  store: Store,
  clock: Clock,
): (accountId: string | null) => Promise<QueueCounts> {
  const readings = new Map<string | null, Reading>()
  return (accountId) => {
    const begun = clock.monotonic()
    const last = readings.get(accountId)
    if (last !== undefined && begun < last.until) return last.counts
    const reading = { until: Number.POSITIVE_INFINITY, counts: countQueue(store, accountId) }
    remember(readings, ACCOUNTS_MAX, accountId, reading)
    reading.counts.then(
      () => {
        const now = clock.monotonic()
        reading.until = now + (now - begun) * KEPT_TIMES
      },
      () => {
        reading.until = 0
      },
    )
    return reading.counts
  }
}
