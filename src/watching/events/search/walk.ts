/**
 * Reads one page of events.
 *
 * Events are one sequence, low to high, in two areas:
 * - *settled*: events that were final when the first page was requested (`start`), in order of time;
 * - *since*: events that became final afterwards, in commit order. Only ascending lists have it.
 * Neither changes before a position that was already shown, so a client that follows `next` misses nothing and sees
 * nothing twice, whatever timestamps late commits have (docs/decisions: event pages). A page is a range of that sequence.
 *
 * A *gap* is a position between two events. Reading up returns the events above it, reading down those below.
 */
import { sql } from 'kysely'
import type { MaybePromise } from '../../../base/flow/cache.ts'
import { createGate } from '../../../base/flow/gate.ts'
import type { Of } from '../../../base/shape.ts'
import type { EventRow } from '../../../platform/store/schema.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { EVENT } from '../shapes.ts'
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'
import type { Key } from './plan.ts'

export interface KeyPage {
  /** In the order of the walk. */
  keys: Key[]
  /** Up to where the area was read; null: to its end. */
  rest: Gap | null
  /** Entries of the index that were read for them. */
  read: number
}

type WalkRow = Key &
  Pick<EventRow, 'id' | 'account_id' | 'domain_name' | 'event' | 'recipient' | 'payload_json'>

export interface Match {
  key: Key
  id: string
  area: Gap['in']
  row: WalkRow
  payload: Of<typeof EVENT>
}

export interface Walk {
  request: Pick<PageRequest, 'ascending' | 'up' | 'gap' | 'limit'>
  /** Where the area *since* begins, and where it currently ends. */
  start: CommitPosition
  settled: CommitPosition
  /** About `size` keys of an area after `gap`. */
  keys(area: Gap['in'], gap: Gap | null, size: number): Promise<KeyPage>
  /** Returns the rows that belong to the list. */
  select(rows: readonly ReadRow[]): MaybePromise<readonly ReadRow[]>
  /** Called before each read; throws to end the walk. */
  pause(reads: number): Promise<void>
  /** The page ends after about so many entries of the index, and may be short then. Default: no limit. */
  rowsMax?: number
  /** Finds out whether there is a match after the page. */
  looksAhead?: boolean
}

export interface ReadRow {
  row: WalkRow
  payload: Of<typeof EVENT>
}

export interface WalkedPage {
  /** Low to high. */
  found: Match[]
  /** Below and above the page. */
  low: Gap | null
  high: Gap | null
  /** There may be further matches in the direction of the walk. */
  more: boolean
  /** Entries of the index that were read. */
  rows: number
}

/** Most rows per read when a page's first rows did not fill it: a few milliseconds of work. */
const CHUNK_ROWS = 500
/** Fewer are not worth a statement. */
const CHUNK_ROWS_MIN = 50
/** Rows that are read more than the share of matches so far asks for, so that one more read is usually enough. */
const CHUNK_RESERVE = 1.5

interface Progress {
  found: Match[]
  rows: number
  /** Where the walk ended before the end of the list. */
  stopped: Gap | null
}

export async function readPage(store: Store, walk: Walk): Promise<WalkedPage> {
  const { gap, up, ascending, limit } = walk.request
  const wanted = limit + (walk.looksAhead ? 1 : 0)
  const progress: Progress = { found: [], rows: 0, stopped: null }
  const areas = (ascending ? ['settled', 'since'] : ['settled']) as Gap['in'][]
  if (!up) areas.reverse()
  let entered = gap === null
  for (const area of areas) {
    entered ||= area === gap?.in
    if (!entered || progress.found.length >= wanted || progress.stopped) continue
    await collect(store, walk, area, area === gap?.in ? gap : null, wanted, progress)
  }
  return pageOf(walk, progress)
}

function pageOf({ request, settled }: Walk, { found, stopped, rows }: Progress): WalkedPage {
  const { gap, up, ascending, limit } = request
  const isCut = found.length > limit
  if (isCut) found.length = limit
  if (!up) found.reverse()
  let low = found[0] ? gapBelow(found[0]) : gap
  let high = found.length > 0 ? gapAbove(found.at(-1) as Match) : gap
  const isFull = found.length >= limit
  if (stopped && !isCut && up) high = stopped
  if (stopped && !isCut && !up) low = stopped
  // Everything up to the settled position was read: `next` continues there.
  if (up && ascending && !isFull && !stopped) high = { in: 'since', ...settled }
  return { found, low, high, more: isCut || stopped !== null, rows }
}

export const gapBelow = ({ key, area }: Pick<Match, 'key' | 'area'>): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq }

export const gapAbove = ({ key, area }: Pick<Match, 'key' | 'area'>): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq + 1 }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq + 1 }

/** The keys that a query returned for `size`. */
export function keyPage(keys: Key[], area: Gap['in'], up: boolean, size: number): KeyPage {
  const last = keys.at(-1)
  const isEnd = !last || keys.length < size
  const rest = isEnd ? null : (up ? gapAbove : gapBelow)({ key: last, area })
  return { keys, rest, read: keys.length }
}

/** Adds the next matches of one area to `found`, up to `wanted`. */
async function collect(
  store: Store,
  walk: Walk,
  area: Gap['in'],
  from: Gap | null,
  wanted: number,
  progress: Progress,
): Promise<void> {
  if (area === 'since' && !isBelow(walk.start, walk.settled)) return
  const { found } = progress
  const foundBefore = found.length
  let keysRead = 0
  let gap = from
  for (let reads = 0; found.length < wanted; reads++) {
    await walk.pause(reads)
    const missing = wanted - found.length
    const size = reads === 0 ? missing : chunkSize(missing, found.length - foundBefore, keysRead)
    const { keys, rest, read } = await walk.keys(area, gap, size)
    keysRead += keys.length
    for (const { row, payload } of await walk.select(await readRows(store, keys))) {
      if (found.length < wanted) found.push({ key: row, id: row.id, area, row, payload })
    }
    progress.rows += read
    if (rest === null) return
    gap = rest
    if (progress.rows >= (walk.rowsMax ?? Number.POSITIVE_INFINITY) && found.length < wanted) {
      progress.stopped = gap
      return
    }
  }
}

/** Keys to read for the missing matches, when `keysRead` keys had so many matches. */
function chunkSize(missing: number, matches: number, keysRead: number): number {
  if (matches === 0) return CHUNK_ROWS
  const expected = Math.ceil(((missing * keysRead) / matches) * CHUNK_RESERVE)
  return Math.min(CHUNK_ROWS, Math.max(CHUNK_ROWS_MIN, expected))
}

const isBelow = (a: CommitPosition, b: CommitPosition) => a.tx < b.tx || (a.tx === b.tx && a.seq < b.seq)

/** The rows of keys that an index returned. One that retention deleted in between is left out. */
async function readRows(store: Store, keys: readonly Key[]): Promise<ReadRow[]> {
  if (keys.length === 0) return []
  const rows = await rowsQuery(store, await groupsOf(store, keys)).execute()
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  return keys.flatMap(({ seq }) => {
    const row = bySeq.get(seq)
    return row ? [{ row, payload: JSON.parse(row.payload_json) as Of<typeof EVENT> }] : []
  })
}

/** By the partitions that they are in; on SQLite all are one group. */
async function groupsOf(store: Store, keys: readonly Key[]): Promise<(readonly Key[])[]> {
  const bounds = (await store.eventBounds?.begun()) ?? []
  if (bounds.length === 0) return [keys]
  const indexOf = ({ timestamp_us }: Key) => bounds.findLastIndex((bound) => bound <= timestamp_us)
  return [...Map.groupBy(keys, indexOf).values()]
}

/** `groups`: at least one, of at least one key each. */
function rowsQuery(store: Store, groups: readonly (readonly Key[])[]) {
  const selects = groups.map((keys) => {
    const rows = store.db
      .selectFrom('events')
      .select([
        'seq',
        'tx',
        'timestamp_us',
        'id',
        'account_id',
        'domain_name',
        'event',
        'recipient',
        'payload_json',
      ])
      .where(
        'seq',
        'in',
        keys.map(({ seq }) => seq),
      )
    if (store.kind === 'sqlite') return rows
    // Constants, so that only the partition with these is planned.
    const times = keys.map(({ timestamp_us }) => timestamp_us)
    return rows
      .where('timestamp_us', '>=', Math.min(...times))
      .where('timestamp_us', '<=', Math.max(...times))
  })
  return selects.reduce((union, select) => union.unionAll(select))
}

/** Matches in the order of a list: by time, equal times by id. */
export function inOrder(found: readonly Match[], ascending: boolean): Match[] {
  const sign = ascending ? 1 : -1
  const order = (a: Match, b: Match) =>
    sign * (a.key.timestamp_us - b.key.timestamp_us || (a.id < b.id ? -1 : 1))
  return [...found].sort(order)
}

/**
 * The position below which everything is final: no event will appear there any more. PostgreSQL: the oldest transaction
 * in progress. SQLite: after the last row, since the only writer commits in order.
 */
export async function settledPosition(store: Store): Promise<CommitPosition> {
  if (store.kind === 'postgres') {
    const row = await store.db
      .selectNoFrom(sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`.as('tx'))
      .executeTakeFirstOrThrow()
    return { tx: Number(row.tx), seq: 0 }
  }
  const row = await store.db
    .selectFrom('events')
    .select((eb) => eb.fn.max('seq').as('seq'))
    .executeTakeFirst()
  return { tx: 0, seq: Number(row?.seq ?? 0) + 1 }
}

/** Concurrent long searches, so that they leave capacity for other queries. */
const LONG_SEARCHES_MAX = 2

/** Runs searches with a `pause` that waits for its turn once a search has made `shortReads` reads. It throws when `signal` aborts. */
export function createSearches(shortReads: number) {
  const gate = createGate(LONG_SEARCHES_MAX, Number.POSITIVE_INFINITY)
  return async <T>(
    signal: AbortSignal | undefined,
    run: (pause: Walk['pause']) => Promise<T>,
  ): Promise<T> => {
    let isLong = false
    try {
      return await run(async (reads) => {
        signal?.throwIfAborted()
        if (reads >= shortReads && !isLong) isLong = await gate.enter()
      })
    } finally {
      if (isLong) gate.leave()
    }
  }
}
