/**
 * Pages of events.
 *
 * The events of a domain are read as one sequence, low to high, in two areas:
 * - *settled*: what was final when the first page was asked for (`start`), in order of time;
 * - *since*: what became final afterwards, in order of commit. Only ascending lists have it.
 * Both are fixed behind any point once shown, so whoever follows `next` misses nothing and sees nothing twice,
 * whatever timestamps late commits carry (docs/decisions: event pages). A page is a run of that sequence,
 * sorted by timestamp and id.
 *
 * A *gap* is a place between two events. Going up gives what lies above it, going down what lies below.
 */
import { type ExpressionBuilder, sql } from 'kysely'
import type { EventRow, Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { recipientHash } from './event.ts'
import { type FieldName, type Filter, matches, parseFilter } from './filter.ts'
import { type Branch, type Plan, planOf } from './plan.ts'

/** A place in the order of commits: everything below it is final. */
export interface CommitPlace {
  tx: number
  seq: number
}

export type Gap = { in: 'settled'; us: number; seq: number } | ({ in: 'since' } & CommitPlace)

/** What a page token holds. */
export interface PageRequest {
  accountId: string
  domainName: string
  /** Microseconds, both included; null: open. */
  lowUs: number | null
  highUs: number | null
  ascending: boolean
  limit: number
  filters: [FieldName, string][]
  /** Where to go from; null: the end of the range. */
  gap: Gap | null
  up: boolean
  /** Where *since* begins; null: at what is final now. */
  start: CommitPlace | null
}

export interface Page {
  items: Record<string, unknown>[]
  /** Requests of the four links. */
  links: Record<'first' | 'last' | 'next' | 'previous', PageRequest>
}

export interface EventReader {
  /** @throws the signal's reason when the client has gone */
  page(request: PageRequest, nowMs: number, signal?: AbortSignal): Promise<Page>
  /** Whether the account has any event under this domain name. */
  hasEvents(accountId: string, domainName: string): Promise<boolean>
}

/** Rows of one look when filters are held against events in memory: a few milliseconds of work. */
const CHUNK_ROWS = 500
/** Looks after which a search counts as long. */
const SHORT_SEARCH_CHUNKS = 4
/** Long searches at a time, so that they never take the database from everybody else. */
const LONG_SEARCHES_MAX = 2

type Key = { seq: number; tx: number; timestamp_us: number }
type Row = Key & Pick<EventRow, 'id' | 'event' | 'payload_json'>
interface Found {
  key: Key
  id: string
  area: Gap['in']
  payload: Record<string, unknown>
}

/** One search: the request with what follows from it. */
interface Search {
  request: PageRequest
  filters: Filter[]
  plan: Plan
  lowUs: number
  highUs: number
  start: CommitPlace
  settled: CommitPlace
  pause(chunks: number): Promise<void>
}

/** `retentionMs`: older events are not shown, whether they are deleted yet or not. */
export function createEventReader(store: Store, retentionMs: number): EventReader {
  const gate = createGate(LONG_SEARCHES_MAX)
  return {
    async page(request, nowMs, signal) {
      let release: (() => void) | null = null
      const search: Search = {
        ...compile(request),
        lowUs: Math.max(request.lowUs ?? 0, Math.floor((nowMs - retentionMs) * 1000)),
        highUs: request.highUs ?? Number.MAX_SAFE_INTEGER,
        settled: await settledPlace(store),
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
        .selectFrom('events')
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

/** Lets `max` holders in at a time; the others wait in line. */
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
 * Everything below is final: no event will appear there any more. PostgreSQL: the oldest transaction that is
 * still running. SQLite: behind the last row, since the only writer commits in order.
 */
export async function settledPlace(store: Store): Promise<CommitPlace> {
  if (store.kind === 'postgres') {
    const row = await store.db
      .selectNoFrom(sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`.as('tx'))
      .executeTakeFirstOrThrow()
    return { tx: Number(row.tx), seq: 0 }
  }
  const row = await store.db
    .selectFrom('events')
    .select((of) => of.fn.max('seq').as('seq'))
    .executeTakeFirst()
  return { tx: 0, seq: Number(row?.seq ?? 0) + 1 }
}

async function readPage(store: Store, search: Search): Promise<Page> {
  const { request, start } = search
  const found: Found[] = []
  const { gap, up } = request
  const since = request.ascending
  let end: Gap | null = null
  if (up) {
    if (gap?.in !== 'since') await collect(store, search, 'settled', gap, found)
    if (since && found.length < request.limit) {
      await collect(store, search, 'since', gap?.in === 'since' ? gap : null, found)
      // Nothing more up to what is final now: `next` goes on from there.
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
  const high = end ?? (found.length > 0 ? gapAbove(found.at(-1) as Found) : gap)
  return { items: inOrder(found, request.ascending), links: linksOf(request, start, low, high) }
}

const gapBelow = ({ key, area }: Found): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq }

const gapAbove = ({ key, area }: Found): Gap =>
  area === 'since'
    ? { in: 'since', tx: key.tx, seq: key.seq + 1 }
    : { in: 'settled', us: key.timestamp_us, seq: key.seq + 1 }

function inOrder(found: Found[], ascending: boolean): Record<string, unknown>[] {
  const sign = ascending ? 1 : -1
  const order = (a: Found, b: Found) =>
    sign * (a.key.timestamp_us - b.key.timestamp_us || (a.id < b.id ? -1 : 1))
  return [...found].sort(order).map(({ payload }) => payload)
}

function linksOf(request: PageRequest, start: CommitPlace, low: Gap | null, high: Gap | null): Page['links'] {
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
  found: Found[],
): Promise<void> {
  const { limit, up } = search.request
  if (search.plan.branches.length === 0 || search.lowUs > search.highUs) return
  if (area === 'since' && !isBelow(search.start, search.settled)) return
  let gap = from
  for (let chunks = 0; found.length < limit; chunks++) {
    await search.pause(chunks)
    const size = chunks === 0 ? limit - found.length : CHUNK_ROWS
    const rows = await readRows(store, area === 'since' ? sinceKeys : settledKeys, search, gap, size)
    for (const row of rows) {
      const one: Found = { key: row, id: row.id, area, payload: JSON.parse(row.payload_json) }
      gap = up ? gapAbove(one) : gapBelow(one)
      if (found.length < limit && passes(search.filters, row.event, one.payload)) found.push(one)
    }
    if (rows.length < size) return
  }
}

const isBelow = (a: CommitPlace, b: CommitPlace) => a.tx < b.tx || (a.tx === b.tx && a.seq < b.seq)

type KeyQuery = (store: Store, search: Search, gap: Gap | null, size: number) => Promise<Key[]>

/** The keys first, from an index; then only as many rows as were asked for. */
async function readRows(
  store: Store,
  keysOf: KeyQuery,
  search: Search,
  gap: Gap | null,
  size: number,
): Promise<Row[]> {
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
  // A row that retention deleted in between keeps its place as a row that matches nothing.
  return keys.map((key) => bySeq.get(key.seq) ?? { ...key, id: '', event: '', payload_json: '{}' })
}

/** Keys of the settled area in order of time: the first of every branch, merged. */
async function settledKeys(store: Store, search: Search, gap: Gap | null, size: number): Promise<Key[]> {
  const direction = search.request.up ? 'asc' : 'desc'
  const [first, ...others] = search.plan.branches.map((branch) => {
    const keys = settledBranch(store, search, branch, gap)
      .orderBy(`${branch.by === 'tag' ? 'event_tags' : 'events'}.timestamp_us`, direction)
      .orderBy(`${branch.by === 'tag' ? 'event_tags' : 'events'}.seq`, direction)
      .limit(size)
    // A branch needs its own LIMIT, which a compound SELECT allows only inside a subquery.
    return store.db.selectFrom(keys.as('branch')).selectAll()
  })
  if (!first) return []
  if (others.length === 0) return first.execute()
  const all = others.reduce((union, branch) => union.unionAll(branch), first)
  return store.db
    .selectFrom(all.as('branches'))
    .selectAll()
    .orderBy('timestamp_us', direction)
    .orderBy('seq', direction)
    .limit(size)
    .execute()
}

/**
 * One stretch of an index. Conditions that hold beside it are written so that no index fits them (`|| ''`,
 * `+ 0`): with one index per question neither planner can pick a worse one.
 */
function settledBranch(store: Store, search: Search, branch: Branch, gap: Gap | null) {
  const { request, plan, lowUs, highUs, start } = search
  const { domainName, accountId } = request
  const table = branch.by === 'tag' ? 'event_tags' : 'events'
  let keys = source(store, branch)
    .select((of) => [
      of.ref(`${table}.seq`).as('seq'),
      of.ref('events.tx').as('tx'),
      of.ref(`${table}.timestamp_us`).as('timestamp_us'),
    ])
    .where(`${table}.timestamp_us`, '>=', lowUs)
    .where(`${table}.timestamp_us`, '<=', highUs)
  if (gap?.in === 'settled') {
    const places = sql`(${sql.ref(`${table}.timestamp_us`)}, ${sql.ref(`${table}.seq`)})`
    const place = sql`(${gap.us}, ${gap.seq})`
    keys = keys.where(request.up ? sql<boolean>`${places} >= ${place}` : sql<boolean>`${places} < ${place}`)
  }
  if (request.ascending) keys = keys.where(below(start))
  if (branch.by === 'time') {
    keys = keys.where('events.account_id', '=', accountId).where('events.domain_name', '=', domainName)
  } else {
    keys = keys.where(unindexed('events.account_id'), '=', accountId)
    if (branch.by === 'recipient' || branch.by === 'message') {
      keys = keys.where(unindexed('events.domain_name'), '=', domainName)
    }
  }
  if (branch.by === 'message' && plan.recipients) {
    const hashes = plan.recipients.map((recipient) => recipientHash(domainName, recipient))
    keys = keys.where(sql<number>`events.recipient_hash + 0`, 'in', hashes)
  }
  if (plan.events && branch.by !== 'event' && branch.by !== 'tag') {
    keys = keys.where(unindexed('events.event'), 'in', plan.events)
  }
  return keys.where((of) => indexed(of, branch, domainName))
}

/** The events themselves, or the narrow table of tags first: SQLite keeps the order of a cross join. */
function source(store: Store, branch: Branch): TagSource {
  if (branch.by === 'tag') return tagSource(store)
  // One type for both; a query names `event_tags` only where it is joined.
  return store.db.selectFrom('events') as unknown as TagSource
}

const tagSource = (store: Store) =>
  store.db.selectFrom('event_tags').crossJoin('events').whereRef('events.seq', '=', 'event_tags.seq')
type TagSource = ReturnType<typeof tagSource>

function indexed(of: ExpressionBuilder<Schema, 'events' | 'event_tags'>, branch: Branch, domainName: string) {
  switch (branch.by) {
    case 'message':
      return of('events.message_id', '=', branch.messageId)
    case 'recipient':
      return of('events.recipient_hash', '=', recipientHash(domainName, branch.recipient))
    case 'tag':
      return of.and([
        of('event_tags.domain_name', '=', domainName),
        of('event_tags.tag', '=', branch.tag),
        of('event_tags.event', '=', branch.event),
      ])
    case 'event':
      return of.and([of('events.domain_name', '=', domainName), of('events.event', '=', branch.event)])
    case 'time':
      return of.lit(true)
  }
}

const unindexed = (column: string) => sql<string>`${sql.ref(column)} || ''`
const below = ({ tx, seq }: CommitPlace) => sql<boolean>`(events.tx, events.seq) < (${tx}, ${seq})`
const atOrAbove = ({ tx, seq }: CommitPlace) => sql<boolean>`(events.tx, events.seq) >= (${tx}, ${seq})`

/** Keys of what became final since, in order of commit. */
async function sinceKeys(store: Store, search: Search, gap: Gap | null, size: number): Promise<Key[]> {
  const { request, plan, lowUs, highUs, start, settled } = search
  const place = gap?.in === 'since' ? gap : null
  const direction = request.up ? 'asc' : 'desc'
  let keys = store.db
    .selectFrom('events')
    .select(['seq', 'tx', 'timestamp_us'])
    .where('domain_name', '=', request.domainName)
    .where(unindexed('events.account_id'), '=', request.accountId)
    .where(sql<number>`timestamp_us + 0`, '>=', lowUs)
    .where(sql<number>`timestamp_us + 0`, '<=', highUs)
    .where(atOrAbove(request.up ? (place ?? start) : start))
    .where(below(request.up ? settled : (place ?? settled)))
  if (plan.events) keys = keys.where(unindexed('events.event'), 'in', plan.events)
  return keys.orderBy('tx', direction).orderBy('seq', direction).limit(size).execute()
}

/** The values of an event's fields that filters are held against. */
function valuesOf(name: FieldName, payload: Record<string, unknown>): (string | number)[] {
  const message = inside(payload, 'message')
  const headers = inside(message, 'headers')
  const among = (value: unknown) => listOf(value).filter(isPlain)
  switch (name) {
    case 'from':
    case 'to':
    case 'subject':
    case 'message-id':
      return among(headers[name])
    case 'attachment':
      return listOf(message['attachments']).flatMap((file) => among(inside({ file }, 'file')['filename']))
    case 'size':
      return among(message['size'])
    case 'recipients':
      return among(message['recipients'])
    case 'list':
      return among(inside(payload, 'mailing-list')['address'])
    default:
      return among(payload[name])
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

const isPlain = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number'

function inside(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
}

function passes(filters: readonly Filter[], event: string, payload: Record<string, unknown>): boolean {
  if (event === '') return false
  return filters.every((filter) => matches(filter, valuesOf(filter.name, payload)))
}
