/**
 * SQLite's index of events, written in bulk shortly after the events (decision 45, migration 0022).
 *
 * Events up to the stored position are found through `event_index`, `event_segments` and `event_tags`; later ones by
 * scanning their rows. A step indexes events and moves the position in one transaction, so every statement sees each
 * event in exactly one of the two.
 */
import { sql } from 'kysely'
import type { Statement, Store } from '../../../platform/store/store.ts'

/** Occupies SQLite's only writer for about 5 ms. */
const EVENTS_PER_STEP = 512

/** The last indexed event's `seq`. */
export const indexedUpTo = sql<number>`(SELECT seq FROM event_index_place)`

const PROGRESS = 'SELECT seq AS indexed, (SELECT max(seq) FROM events) AS newest FROM event_index_place'

/** Indexes all new events; does nothing on PostgreSQL. Stops early when `signal` aborts; the next run continues. */
export async function indexEvents(
  store: Pick<Store, 'kind' | 'read' | 'commit'>,
  signal?: AbortSignal,
): Promise<void> {
  while (store.kind === 'sqlite' && !signal?.aborted) {
    const [progress] = await store.read({ sql: PROGRESS, values: [] })
    const indexed = Number(progress?.['indexed'])
    const newest = Number(progress?.['newest'] ?? 0)
    if (newest <= indexed) return
    await store.commit(stepStatements(indexed, Math.min(newest, indexed + EVENTS_PER_STEP)))
  }
}

const COLUMNS = 'seq, account_id, domain_name, event, timestamp_us, message_id, recipient_hash'
const SPAN = 'seq > ? AND seq <= ?'

/** Indexes the events after `from`, up to and including `to`. */
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

/** A condition for queries of `events`: one of these hashes, between two times in Unix microseconds, both inclusive. */
export function toRecipients(store: Store, hashes: readonly number[], fromUs: number, toUs: number) {
  const matches = sql`recipient_hash IN (${sql.join(hashes)}) AND timestamp_us BETWEEN ${fromUs} AND ${toUs}`
  if (store.kind === 'postgres') return sql<boolean>`${matches}`
  const segments = sql`SELECT segment FROM event_segments WHERE high_us >= ${fromUs} AND low_us <= ${toUs}`
  return sql<boolean>`seq IN (
    SELECT seq FROM event_index WHERE segment IN (${segments}) AND ${matches}
    UNION ALL SELECT seq FROM events WHERE seq > ${indexedUpTo} AND ${matches})`
}
