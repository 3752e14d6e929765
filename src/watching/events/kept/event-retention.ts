/**
 * Retention: events that are too old, or beyond the space that events may take, are deleted, oldest first.
 *
 * Rows are deleted in the order in which they were written, in small batches with a pause after each, so that no writer
 * or reader waits for more than one batch. The newest row always stays: on SQLite the next row's number follows from it,
 * and page tokens hold such numbers. Events that a follower has not processed stay too, however old they are. One
 * process at a time runs this.
 *
 * Where an account or a domain keeps its events for a shorter time, theirs are deleted by the index of their domain.
 *
 * Where events are in partitions by time (partitions.ts), a partition is dropped when all of it is too old. Until then its
 * rows stay, although no list shows them: only what is older by a whole partition is deleted row by row.
 */

import { pause } from '../../../base/flow/pause.ts'
import { DAY_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { inPortions, PORTION, type RowParts } from '../../../platform/store/account-rows.ts'
import {
  EVENT_DAYS_MIN,
  type KeptBounds,
  type KeptDays,
  readKeptDays,
} from '../../../platform/store/kept-days.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { type EventFollower, followedPosition, isProcessed } from '../follower.ts'
import type { CommitPosition } from '../search/page-request.ts'
import type { EventPartitions } from './partitions.ts'

/** About 10 ms of work on either database. */
const BATCH_ROWS = 500
/** Between batches: retention occupies the writer for at most a tenth of the time. */
const PAUSE_MS = 100
const EVERY_MS = 10 * MINUTE_MS
/** Columns, index entries and tags of an event without its JSON; measured 330 to 450 bytes. */
const ROW_OVERHEAD_BYTES = 400
/** Rows from which the average size is estimated. */
const SAMPLE_ROWS = 1000

interface RetentionParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  days: number
  /** What accounts may set; default: `days` and less. */
  bounds?: KeptBounds
  /** Approximate space that events may take; null: no limit. */
  bytesMax: number | null
  /** They must have processed an event before it is deleted; default: none. */
  followers?: readonly EventFollower[]
  /** Default: events are in one table, as on SQLite. */
  partitions?: EventPartitions
}

export function createEventRetention(parts: RetentionParts) {
  const { store, clock, log, followers = [], partitions } = parts
  const bounds = parts.bounds ?? { preset: parts.days, min: EVENT_DAYS_MIN, max: parts.days }
  const processedUpTo = async () => (followers.length > 0 ? followedPosition(store) : null)

  /** Deletes up to `rowsMax` of the oldest rows before `cutoffUs`, in batches. */
  async function deleteBefore(cutoffUs: number, rowsMax: number, signal?: AbortSignal): Promise<number> {
    let deleted = 0
    while (!signal?.aborted && deleted < rowsMax) {
      const size = Math.min(BATCH_ROWS, rowsMax - deleted)
      const batch = await deleteBatch(store, cutoffUs, size, await processedUpTo())
      deleted += batch
      if (batch < size) break
      await pause(clock, PAUSE_MS, signal)
    }
    return deleted
  }

  async function run(signal?: AbortSignal): Promise<number> {
    const before = (days: number) => (clock.now() - days * DAY_MS) * 1000
    await partitions?.drop(before(parts.days), await processedUpTo(), false, signal)
    const agedUs = before(parts.days) - ((await partitions?.keptLongerUs()) ?? 0)
    const aged = await deleteBefore(agedUs, Number.POSITIVE_INFINITY, signal)
    const kept = await readKeptDays(store, 'events', bounds)
    const shortened = await deleteShortened(kept, signal)
    // Those deletions leave gaps.
    const hasGaps = kept.accounts.size > 0
    const excess = parts.bytesMax === null ? 0 : await rowsBeyond(parts, parts.bytesMax, hasGaps, signal)
    const pressed = await deleteBefore(before(EVENT_DAYS_MIN), excess, signal)
    if (pressed < excess && !signal?.aborted) {
      log.warn({ rows: excess - pressed }, 'events take more space than allowed, but are younger than 3 days')
    }
    // The space of what was deleted in them is free only now.
    await partitions?.drop(before(EVENT_DAYS_MIN), await processedUpTo(), true, signal)
    if (aged + shortened + pressed > 0)
      log.info({ aged, shortened, pressed }, 'events beyond retention deleted')
    return aged + shortened + pressed
  }

  /** Deletes what domains and accounts do not want to keep so long. */
  async function deleteShortened(kept: KeptDays, signal?: AbortSignal): Promise<number> {
    let deleted = 0
    for (const accountId of kept.accounts) {
      const ids = await domainIdsOf(store, accountId)
      for (let name = await nextDomain(store, accountId, null); name !== null && !signal?.aborted; ) {
        const days = kept.of(accountId, ids.get(name) ?? null)
        if (days !== undefined && days < parts.days)
          deleted += await deleteOfDomain(accountId, name, (clock.now() - days * DAY_MS) * 1000, signal)
        name = await nextDomain(store, accountId, name)
      }
    }
    return deleted
  }

  async function deleteOfDomain(
    accountId: string,
    name: string,
    cutoffUs: number,
    signal?: AbortSignal,
  ): Promise<number> {
    let deleted = 0
    while (!signal?.aborted) {
      const batch = await deleteDomainBatch(
        store,
        [accountId, name, Math.floor(cutoffUs)],
        await processedUpTo(),
      )
      deleted += batch
      if (batch < BATCH_ROWS) break
      await pause(clock, PAUSE_MS, signal)
    }
    return deleted
  }

  return {
    /** Repairs what a copied database needs; to be called before anybody writes events. */
    adopt: (): Promise<void> => adoptCopiedEvents(store, followers),
    /** One complete run, unless `signal` aborts; resolves the number of events deleted. */
    run,
    job: createJob({
      name: 'event-retention',
      everyMs: EVERY_MS,
      scope: 'database',
      work: async (signal) => void (await run(signal)),
    }),
  }
}

/** SQLite: segments below the oldest remaining event (migration 0022). */
const REMOVE_SEGMENTS: Statement = {
  sql: 'DELETE FROM event_segments WHERE segment < (SELECT min(seq) >> 14 FROM events)',
  values: [],
}

/** Deletes those of the `size` oldest rows that are before `cutoffUs` and up to `processed`; resolves to their number. */
async function deleteBatch(
  store: Store,
  cutoffUs: number,
  size: number,
  processed: CommitPosition | null,
): Promise<number> {
  const rows = await store.db
    .selectFrom('events')
    .select(['tx', 'seq', 'timestamp_us'])
    .orderBy('seq')
    .limit(size + 1)
    .execute()
  // One row more than the batch is read and the last one kept, so the newest row is never deleted.
  const old = rows
    .slice(0, Math.min(size, rows.length - 1))
    .filter((row) => row.timestamp_us < cutoffUs && (processed === null || isProcessed(row, processed)))
  await removeRows(store, old)
  return old.length
}

async function removeRows(
  store: Store,
  rows: readonly { seq: number; timestamp_us: number }[],
): Promise<void> {
  if (rows.length === 0) return
  const remove = store.statement(removal(store, rows))
  await store.commit(store.kind === 'sqlite' ? [remove, REMOVE_SEGMENTS] : [remove])
}

/** SQLite's index of events; what it does not have yet is seconds old. On PostgreSQL the events themselves are indexed. */
const INDEXED = { sqlite: 'event_index', postgres: 'events' } as const
const COMMIT = { sqlite: '0 AS tx', postgres: 'tx' } as const

/** The oldest rows of a domain before a time, up to `processed`, and never the newest of all; resolves to their number. */
async function deleteDomainBatch(
  store: Store,
  values: readonly [accountId: string, name: string, cutoffUs: number],
  processed: CommitPosition | null,
): Promise<number> {
  const newest = store.kind === 'sqlite' ? ` AND seq < ${NEWEST}` : ''
  const sql = `SELECT ${COMMIT[store.kind]}, seq, timestamp_us FROM ${INDEXED[store.kind]}
    WHERE account_id = ? AND domain_name = ? AND timestamp_us < ?${newest} ORDER BY timestamp_us LIMIT ${BATCH_ROWS}`
  const rows = (await store.read({ sql, values })).map((row) => ({
    tx: Number(row['tx']),
    seq: Number(row['seq']),
    timestamp_us: Number(row['timestamp_us']),
  }))
  const old = rows.filter((row) => processed === null || isProcessed(row, processed))
  await removeRows(store, old)
  return old.length
}

/** The next name of the account's events in alphabetical order: of deleted domains too. Null: there is none. */
async function nextDomain(store: Store, accountId: string, after: string | null): Promise<string | null> {
  const sql = `SELECT domain_name FROM ${INDEXED[store.kind]} WHERE account_id = ?${after === null ? '' : ' AND domain_name > ?'}
    ORDER BY domain_name LIMIT 1`
  const [row] = await store.read({ sql, values: after === null ? [accountId] : [accountId, after] })
  return (row?.['domain_name'] ?? null) as string | null
}

async function domainIdsOf(store: Store, accountId: string): Promise<Map<string, string>> {
  const rows = await store.db
    .selectFrom('domains')
    .select(['id', 'name'])
    .where('account_id', '=', accountId)
    .execute()
  return new Map(rows.map(({ id, name }) => [name, id]))
}

function removal(store: Store, rows: readonly { seq: number; timestamp_us: number }[]) {
  const seqs = rows.map(({ seq }) => seq)
  const query = store.db.deleteFrom('events').where('seq', 'in', seqs)
  if (store.kind === 'sqlite') return query
  // Only the partitions of that time are planned.
  const times = rows.map((row) => row.timestamp_us)
  return query.where('timestamp_us', '>=', Math.min(...times)).where('timestamp_us', '<=', Math.max(...times))
}

/**
 * How many of the oldest rows exceed the allowed space, estimated from the size of the newest ones. `hasGaps`: where their
 * numbers say that it is exceeded, the rows are counted, since these say too much.
 */
async function rowsBeyond(
  parts: Pick<RetentionParts, 'store' | 'clock'>,
  bytesMax: number,
  hasGaps: boolean,
  signal?: AbortSignal,
): Promise<number> {
  const { store } = parts
  const ends = await store.db
    .selectFrom('events')
    .select((eb) => [eb.fn.min('seq').as('low'), eb.fn.max('seq').as('high')])
    .executeTakeFirst()
  if (!ends || ends.high === null || ends.low === null) return 0
  const sample = await store.db
    .selectFrom('events')
    .select('payload_json')
    .orderBy('seq', 'desc')
    .limit(SAMPLE_ROWS)
    .execute()
  const bytes = sample.reduce((sum, row) => sum + Buffer.byteLength(row.payload_json), 0)
  const perRow = bytes / Math.max(1, sample.length) + ROW_OVERHEAD_BYTES
  const [low, high] = [Number(ends.low), Number(ends.high)]
  const allowed = Math.floor(bytesMax / perRow)
  const numbers = high - low + 1
  const count = hasGaps && numbers > allowed ? await countRows(parts, low, high, signal) : numbers
  return Math.max(0, count - allowed)
}

/** Numbers whose rows are counted at once: some 10 ms on either database. */
const COUNTED_AT_ONCE = 200_000

/** The rows from `low` to `high`, in steps; fewer if `signal` aborts. */
async function countRows(
  { store, clock }: Pick<RetentionParts, 'store' | 'clock'>,
  low: number,
  high: number,
  signal?: AbortSignal,
): Promise<number> {
  const sql = `SELECT count(*) AS count FROM ${INDEXED[store.kind]} WHERE seq >= ? AND seq < ?`
  let count = 0
  for (let from = low; from <= high && !signal?.aborted; from += COUNTED_AT_ONCE) {
    if (from > low) await pause(clock, PAUSE_MS, signal)
    const [row] = await store.read({ sql, values: [from, from + COUNTED_AT_ONCE] })
    count += Number(row?.['count'])
  }
  return count
}

/** Rows per statement of the repair. */
const ADOPT_ROWS = 10_000

/**
 * A transaction number that no row read before can have. Asked for by itself: a statement about a distributed table runs
 * on another machine, which has numbers of its own.
 */
async function nextTx({ read }: Store): Promise<number> {
  const [row] = await read({
    sql: `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS tx`,
    values: [],
  })
  return Number(row?.['tx'])
}

/** Numbers of up to `size` events whose transaction is of the future; others may write meanwhile. */
async function foreignEvents(store: Store, size: number): Promise<number[]> {
  const sql = `SELECT seq, tx FROM events WHERE tx >= ? ORDER BY tx DESC LIMIT ${size}`
  const rows = await store.read({ sql, values: [await nextTx(store)] })
  if (rows.length === 0) return []
  const next = await nextTx(store)
  return rows.filter(({ tx }) => Number(tx) >= next).map(({ seq }) => Number(seq))
}

/**
 * A PostgreSQL dump restored on another server has transaction numbers that mean nothing there: numbers of the future
 * would keep events out of ascending lists until the server's counter reaches them. Such rows are made settled.
 *
 * That loses their order, so followers process all of them first. Then followers' positions that are of the future too are
 * moved after all existing events. A process may die in between, and several may do this concurrently: none writes
 * events before its own run is done.
 */
export async function adoptCopiedEvents(
  store: Store,
  followers: readonly EventFollower[] = [],
): Promise<void> {
  if (store.kind !== 'postgres') return
  if ((await foreignEvents(store, 1)).length > 0) {
    for (const follower of followers) await follower.stepToEnd()
    const sql = 'UPDATE events SET tx = 0 WHERE seq = ANY (?::bigint[])'
    for (;;) {
      const seqs = await foreignEvents(store, ADOPT_ROWS)
      if (seqs.length === 0) break
      await store.commit([{ sql, values: [`{${seqs.join()}}`] }])
    }
  }
  const rows = await store.read({ sql: 'SELECT name, tx FROM event_followers', values: [] })
  const next = await nextTx(store)
  const moves = rows
    .filter(({ tx }) => Number(tx) >= next)
    .map(({ name, tx }) => ({
      sql: 'UPDATE event_followers SET tx = ?, seq = 0 WHERE name = ? AND tx = ?',
      values: [next, String(name), Number(tx)],
    }))
  if (moves.length > 0) await store.commit(moves)
}

const NEWEST = '(SELECT max(seq) FROM events)'
/** On PostgreSQL with the time, which names the partition. */
const KEY = { sqlite: 'seq', postgres: 'seq, timestamp_us' } as const

/**
 * Removes the events of a closed account, whether followers have read them or not.
 *
 * On SQLite the newest row's number decides the next one, and cursors hold such numbers, so that row is emptied instead:
 * retention deletes it when there are newer ones.
 */
export async function removeEventsOf(parts: RowParts, accountId: string, signal: AbortSignal): Promise<void> {
  const { store } = parts
  const kept = store.kind === 'sqlite' ? ` AND seq < ${NEWEST}` : ''
  const key = KEY[store.kind]
  const ofAccount = `SELECT ${key} FROM event_keys WHERE account_id = ?${kept} LIMIT ${PORTION}`
  const sql = `DELETE FROM events WHERE (${key}) IN (${ofAccount})`
  await inPortions(parts, sql, [accountId], signal)
  await emptyNewest(store, accountId)
}

const IS_NEWEST = `seq = ${NEWEST} AND account_id = ?`
const TAG_KEY = 'domain_name, tag, event, timestamp_us, seq'

async function emptyNewest(store: Store, accountId: string): Promise<void> {
  if (store.kind !== 'sqlite') return
  const statements = [
    `DELETE FROM event_tags WHERE (${TAG_KEY}) IN (
      SELECT domain_name, value, event, timestamp_us, seq FROM events CROSS JOIN json_each(tags_json)
      WHERE ${IS_NEWEST})`,
    `UPDATE event_index SET account_id = '', domain_name = '', event = 'removed', message_id = NULL,
      recipient_hash = NULL WHERE ${IS_NEWEST}`,
    `UPDATE events SET id = 'removed-' || seq, account_id = '', domain_name = '', event = 'removed', recipient = NULL,
      message_id = NULL, payload_json = '{}', tags_json = NULL, recipient_hash = NULL WHERE ${IS_NEWEST}`,
  ].map((sql): Statement => ({ sql, values: [accountId] }))
  await store.commit(statements)
}
