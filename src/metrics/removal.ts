/** Removes expired counters (tags-stats.md section 6), and those of deleted domains and accounts. */
import { DAY_MS } from '../events/event-retention.ts'
import { followedPosition } from '../events/follower.ts'
import { type RowParts, removeIndexedRows } from '../store/account-rows.ts'
import type { Statement, Store } from '../store/store.ts'
import { UNIQUE_FOR_MS } from './unique-visits.ts'

/** Months are kept as long as the domain. */
export const KEPT_MS = { hour: 60 * DAY_MS, day: 366 * DAY_MS } as const

/** A day longer than they are needed: events are not counted in order of time. */
const VISITS_KEPT_MS = UNIQUE_FOR_MS + DAY_MS
const NEXT_EVENT = 'SELECT timestamp_us FROM events'

/** Rows per transaction: the writer is blocked for a few milliseconds. */
const CHUNK = 1_000

const KEY = 'account_id, domain_name, tag, unit, start_at'
const OLD_COUNTERS = `DELETE FROM counters WHERE (${KEY}) IN
  (SELECT ${KEY} FROM counters WHERE unit = ? AND start_at < ? LIMIT ${CHUNK})`
const OLD_VISITS = `DELETE FROM counted_visits WHERE visit IN
  (SELECT visit FROM counted_visits WHERE counted_at < ? LIMIT ${CHUNK})`
const OF_DOMAIN = `DELETE FROM counters WHERE (${KEY}) IN
  (SELECT ${KEY} FROM counters WHERE account_id = ? AND domain_name = ? LIMIT ${CHUNK})`
/** Waits for a counting transaction in progress; later ones find that the domain no longer exists. */
const WAIT_FOR_COUNTING = `UPDATE event_followers SET seq = seq WHERE name = 'counters'`

/** Stops early when `signal` aborts; the next run continues. `now`: Unix milliseconds. */
export async function removeOldCounters(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  for (const [unit, keptMs] of Object.entries(KEPT_MS))
    await inChunks(store, { sql: OLD_COUNTERS, values: [unit, Math.floor(now - keptMs)] }, signal)
  const counted = Math.min(now, await countedUpTo(store))
  await inChunks(store, { sql: OLD_VISITS, values: [Math.floor(counted - VISITS_KEPT_MS)] }, signal)
}

/** The approximate time up to which events are counted, in Unix milliseconds; with a backlog it may be long ago. */
async function countedUpTo(store: Store): Promise<number> {
  const cursor = await followedPosition(store)
  const [next] = await store.read(
    store.kind === 'sqlite'
      ? { sql: `${NEXT_EVENT} WHERE seq > ? ORDER BY seq LIMIT 1`, values: [cursor.seq] }
      : {
          sql: `${NEXT_EVENT} WHERE (tx, seq) > (?, ?) ORDER BY tx, seq LIMIT 1`,
          values: [cursor.tx, cursor.seq],
        },
  )
  return next ? Number(next['timestamp_us']) / 1000 : Number.POSITIVE_INFINITY
}

export async function removeCountersOf(
  store: Store,
  domain: { accountId: string; name: string },
): Promise<void> {
  await store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }])
  await inChunks(store, { sql: OF_DOMAIN, values: [domain.accountId, domain.name] })
}

export async function removeCountersOfAccount(
  parts: RowParts,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  await parts.store.commit([{ sql: WAIT_FOR_COUNTING, values: [] }])
  const key = ['account_id', 'domain_name', 'tag', 'unit', 'start_at'] as const
  await removeIndexedRows(parts, 'counters', key, 'account_id', accountId, signal)
}

async function inChunks(store: Store, remove: Statement, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const [result] = await store.commit([remove])
    if ((result?.affected ?? 0) < CHUNK) return
  }
}
