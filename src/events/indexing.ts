/**
 * SQLite's index of events, written in bulk a moment behind them (decision 45, migration 0022).
 *
 * Events up to the place that is kept are found by `event_index`, `event_segments` and `event_tags`, those
 * behind it by looking through their rows. A step moves the place in the transaction that writes what it moves over,
 * so every statement sees each event in exactly one of the two.
 */
import { sql } from 'kysely'
import type { Statement, Store } from '../store/store.ts'

/** About 5 ms of SQLite's only writer. */
const EVENTS_PER_STEP = 512

/** The last event that is indexed. */
export const indexedUpTo = sql<number>`(SELECT seq FROM event_index_place)`

const PLACES = 'SELECT seq AS indexed, (SELECT max(seq) FROM events) AS newest FROM event_index_place'

/**
 * Indexes what there is to index; on PostgreSQL nothing. Ends early when `signal` aborts; the next run goes on.
 */
export async function indexEvents(store: Store, signal?: AbortSignal): Promise<void> {
  while (store.kind === 'sqlite' && !signal?.aborted) {
    const [places] = await store.read({ sql: PLACES, values: [] })
    const indexed = Number(places?.['indexed'])
    const newest = Number(places?.['newest'] ?? 0)
    if (newest <= indexed) return
    await store.commit(stepStatements(indexed, Math.min(newest, indexed + EVENTS_PER_STEP)))
  }
}

const COLUMNS = 'seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash'
const SPAN = 'seq > ? AND seq <= ?'

/** Indexes the events behind `from`, `to` included. */
function stepStatements(from: number, to: number): Statement[] {
  const span = [from, to]
  return [
    { sql: 'UPDATE event_index_place SET seq = ? WHERE seq = ?', values: [to, from], expectRows: 1 },
    { sql: `INSERT INTO event_index (${COLUMNS}) SELECT ${COLUMNS} FROM events WHERE ${SPAN}`, values: span },
    {
      sql: `INSERT INTO event_segments
        SELECT segment, min(timestamp_us), max(timestamp_us) FROM event_index WHERE ${SPAN} GROUP BY segment
        ON CONFLICT DO UPDATE SET low_us = min(low_us, excluded.low_us), high_us = max(high_us, excluded.high_us)`,
      values: span,
    },
    {
      sql: `INSERT OR IGNORE INTO event_tags
        SELECT domain_name, value, event, timestamp_us, seq FROM events CROSS JOIN json_each(tags_json)
        WHERE ${SPAN}`,
      values: span,
    },
  ]
}

/** For a query of `events`: those with one of these hashes, within the time in Unix microseconds, both ends included. */
export function toRecipients(store: Store, hashes: readonly number[], fromUs: number, toUs: number) {
  const matches = sql`recipient_hash IN (${sql.join(hashes)}) AND timestamp_us BETWEEN ${fromUs} AND ${toUs}`
  if (store.kind === 'postgres') return sql<boolean>`${matches}`
  const segments = sql`SELECT segment FROM event_segments WHERE high_us >= ${fromUs} AND low_us <= ${toUs}`
  return sql<boolean>`seq IN (
    SELECT seq FROM event_index WHERE segment IN (${segments}) AND ${matches}
    UNION ALL SELECT seq FROM events WHERE seq > ${indexedUpTo} AND ${matches})`
}
