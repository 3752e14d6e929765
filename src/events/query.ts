/**
 * Pages of events.
 *
 * The events of a domain are read as one sequence, low to high, in two areas:
 * - *settled*: events that were final when the first page was requested (`start`), in order of time;
 * - *since*: events that became final afterwards, in commit order. Only ascending lists have it.
 * Neither changes before a position that was already shown, so a client that follows `next` misses nothing and sees
 * nothing twice, whatever timestamps late commits have (docs/decisions: event pages). A page is a range of that sequence,
 * sorted by timestamp and id.
 *
 * A *gap* is a position between two events. Reading up returns the events above it, reading down those below.
 */
import { sql } from 'kysely'
import type { EventRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { type Key, type KeySearch, settledKeys, sinceKeys } from './event-keys.ts'
import { passes } from './fields.ts'
import { type Filter, parseFilter } from './filter.ts'
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'
import { planOf } from './plan.ts'

export interface Page {
  items: Record<string, unknown>[]
  /** Requests of the four links. */
  links: Record<'first' | 'last' | 'next' | 'previous', PageRequest>
}

export interface EventReader {
  /** @throws the signal's reason when the client has disconnected */
  page(request: PageRequest, nowMs: number, signal?: AbortSignal): Promise<Page>
  /** Whether the account has any event under this domain name. */
  hasEvents(accountId: string, domainName: string): Promise<boolean>
}

/** Rows per read when filters are applied in memory: a few milliseconds of work. */
const CHUNK_ROWS = 500
/** Reads after which a search counts as long. */
const SHORT_SEARCH_CHUNKS = 4
/** Concurrent long searches, so that they leave capacity for other queries. */
const LONG_SEARCHES_MAX = 2

type Row = Key & Pick<EventRow, 'id' | 'event' | 'payload_json'>
interface Match {
  key: Key
  id: string
  area: Gap['in']
  payload: Record<string, unknown>
}

/** A request with everything derived from it. */
interface Search extends KeySearch {
  request: PageRequest
  filters: Filter[]
  pause(chunks: number): Promise<void>
}

/** `retentionMs`: older events are not shown, even if they are not deleted yet. */
export function createEventReader(store: Store, retentionMs: number): EventReader {
  const gate = createGate(LONG_SEARCHES_MAX)
  return {
    async page(request, nowMs, signal) {
      let release: (() => void) | null = null
      const search: Search = {
        ...compile(request),
        lowUs: Math.max(request.lowUs ?? 0, Math.floor((nowMs - retentionMs) * 1000)),
        highUs: request.highUs ?? Number.MAX_SAFE_INTEGER,
        settled: await settledPosition(store),
        start: { tx: 0, seq: 0 },
        async pause(chunks) {
          signal?.throwIfAborted()
          if (chunks >= SHORT_SEARCH_CHUNKS) release ??= await gate()
        },
      }
      search.start = request.start ?? search.settled
      try {
        return await readPage(store, search)
      } finally {
        ;(release as (() => void) | null)?.()
      }
    },
    async hasEvents(accountId, domainName) {
      const row = await store.db
        .selectFrom('event_keys')
        .select('seq')
        .where('account_id', '=', accountId)
        .where('domain_name', '=', domainName)
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },
  }
}

function compile(request: PageRequest): Pick<Search, 'request' | 'filters' | 'plan'> {
  const filters = request.filters.map(([name, text]) => {
    const filter = parseFilter(name, text)
    if (!filter) throw new Error(`A page request holds a bad filter: ${name}`)
    return filter
  })
  return { request, filters, plan: planOf(filters) }
}

/** Admits `max` holders at a time; the others queue. */
function createGate(max: number): () => Promise<() => void> {
  const waiting: (() => void)[] = []
  let inside = 0
  const release = () => {
    const next = waiting.shift()
    if (next) next()
    else inside--
  }
  return async () => {
    if (inside < max) inside++
    else await new Promise<void>((resolve) => waiting.push(resolve))
    return release
  }
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

async function readPage(store: Store, search: Search): Promise<Page> {
  const { request, start } = search
  const found: Match[] = []
  const { gap, up } = request
  const since = request.ascending
  let end: Gap | null = null
  if (up) {
    if (gap?.in !== 'since') await collect(store, search, 'settled', gap, found)
    if (since && found.length < request.limit) {
      await collect(store, search, 'since', gap?.in === 'since' ? gap : null, found)
      // Everything up to the settled position was read: `next` continues there.
      if (found.length < request.limit) end = { in: 'since', ...search.settled }
    }
  } else {
    if (since && gap?.in !== 'settled') await collect(store, search, 'since', gap, found)
    if (found.length < request.limit) {
      await collect(store, search, 'settled', gap?.in === 'settled' ? gap : null, found)
    }
    found.reverse()
  }
  const low = found[0] ? gapBelow(found[0]) : gap
  const high = end ?? (found.length > 0 ? gapAbove(found.at(-1) as Match) : gap)
  return { items: inOrder(found, request.ascending), links: linksOf(request, start, low, high) }
}

const gapBelow = ({ key, area }: Match): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq }

const gapAbove = ({ key, area }: Match): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq + 1 }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq + 1 }

function inOrder(found: Match[], ascending: boolean): Record<string, unknown>[] {
  const sign = ascending ? 1 : -1
  const order = (a: Match, b: Match) =>
    sign * (a.key.timestamp_us - b.key.timestamp_us || (a.id < b.id ? -1 : 1))
  return [...found].sort(order).map(({ payload }) => payload)
}

function linksOf(
  request: PageRequest,
  start: CommitPosition,
  low: Gap | null,
  high: Gap | null,
): Page['links'] {
  const { ascending } = request
  const above: PageRequest = { ...request, gap: high, up: true, start: ascending ? start : null }
  const below: PageRequest = { ...request, gap: low, up: false, start: ascending ? start : null }
  const ends = { ...request, gap: null, start: null }
  return {
    first: { ...ends, up: ascending },
    last: { ...ends, up: !ascending },
    next: ascending ? above : below,
    previous: ascending ? below : above,
  }
}

/** Adds the next matches of one area to `found`, up to the limit. */
async function collect(
  store: Store,
  search: Search,
  area: Gap['in'],
  from: Gap | null,
  found: Match[],
): Promise<void> {
  const { limit, up } = search.request
  if (search.plan.branches.length === 0 || search.lowUs > search.highUs) return
  if (area === 'since' && !isBelow(search.start, search.settled)) return
  let gap = from
  for (let chunks = 0; found.length < limit; chunks++) {
    await search.pause(chunks)
    const size = chunks === 0 ? limit - found.length : CHUNK_ROWS
    const rows = await readRows(store, area, search, gap, size)
    for (const row of rows) {
      const match: Match = { key: row, id: row.id, area, payload: JSON.parse(row.payload_json) }
      gap = up ? gapAbove(match) : gapBelow(match)
      if (found.length < limit && passes(search.filters, row.event, match.payload)) found.push(match)
    }
    if (rows.length < size) return
  }
}

const isBelow = (a: CommitPosition, b: CommitPosition) => a.tx < b.tx || (a.tx === b.tx && a.seq < b.seq)

/** Reads the keys from an index first, then only the rows of these keys. */
async function readRows(
  store: Store,
  area: Gap['in'],
  search: Search,
  gap: Gap | null,
  size: number,
): Promise<Row[]> {
  const keysOf = area === 'since' ? sinceKeys : settledKeys
  const keys = await keysOf(store, search, gap, size)
  if (keys.length === 0) return []
  const rows = await store.db
    .selectFrom('events')
    .select(['seq', 'tx', 'timestamp_us', 'id', 'event', 'payload_json'])
    .where(
      'seq',
      'in',
      keys.map(({ seq }) => seq),
    )
    .execute()
  const bySeq = new Map(rows.map((row) => [row.seq, row]))
  // A row that retention deleted in between keeps its position, as a row that matches nothing.
  return keys.map((key) => bySeq.get(key.seq) ?? { ...key, id: '', event: '', payload_json: '{}' })
}
