/**
 * The queries that find the keys of a page's events, each in exactly one index. They read the views `event_keys` and
 * `event_tag_keys` (migration 0022); on SQLite these combine the index with the few events that are not indexed yet.
 * SQLite reads both parts in order and merges them, if a SELECT has only one such view and orders by selected columns.
 */
import { type ExpressionBuilder, sql } from 'kysely'
import type { EventSegmentRow, Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { recipientHash } from './event.ts'
import { indexedUpTo } from './indexing.ts'
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'
import type { Branch, Plan } from './plan.ts'

export interface KeySearch {
  request: Pick<PageRequest, 'accountId' | 'domainName' | 'ascending' | 'up'>
  plan: Plan
  /** Microseconds, both inclusive. */
  lowUs: number
  highUs: number
  /** Where the area *since* begins. */
  start: CommitPosition
  /** Where it currently ends. */
  settled: CommitPosition
}

export interface Key {
  seq: number
  tx: number
  timestamp_us: number
}

/** The first `size` keys of the settled area after `gap`, in order of time. */
export async function settledKeys(
  store: Store,
  search: KeySearch,
  gap: Gap | null,
  size: number,
): Promise<Key[]> {
  const { branches } = search.plan
  if (store.kind === 'sqlite' && branches[0]?.by === 'recipient') {
    return keysBySegment(store, { ...search, gap, size })
  }
  return (await settledQuery(store, { ...search, gap, size })?.execute()) ?? []
}

/** One read of an area. */
type Scan = KeySearch & { gap: Gap | null; size: number }

/** The first keys of every branch, merged. Undefined without branches. */
export function settledQuery(store: Store, scan: Scan) {
  const direction = scan.request.up ? 'asc' : 'desc'
  const branches = scan.plan.branches.map((branch) => {
    const table = branch.by === 'tag' ? 'event_tags' : 'events'
    return settledPart(source(store, branch), store, scan, branch.by)
      .where((eb) => inBranch(eb, branch, scan.request.domainName))
      .orderBy(`${table}.timestamp_us`, direction)
      .orderBy(`${table}.seq`, direction)
      .limit(scan.size)
  })
  if (branches.length <= 1) return branches[0]
  const all = branches
    // A branch needs its own LIMIT, which a compound SELECT allows only inside a subquery. UNION removes duplicates: an
    // event with two of the requested tags is in two branches.
    .map((branch) => store.db.selectFrom(branch.as('branch')).selectAll())
    .reduce((union, branch) => union.union(branch))
  return store.db
    .selectFrom(all.as('branches'))
    .selectAll()
    .orderBy('timestamp_us', direction)
    .orderBy('seq', direction)
    .limit(scan.size)
}

/**
 * Conditions besides those of the branch are written so that no index matches them (`|| ''`, `+ 0`): with a single usable
 * index per query neither planner can choose a worse one.
 */
function settledPart(from: Source, store: Store, scan: Scan, by: Branch['by']) {
  const { request, plan, lowUs, highUs, start, gap } = scan
  const { domainName, accountId } = request
  const table = by === 'tag' ? 'event_tags' : 'events'
  let keys = from
    .select((eb) => [
      eb.ref(`${table}.seq`).as('seq'),
      txOf(store).as('tx'),
      eb.ref(`${table}.timestamp_us`).as('timestamp_us'),
    ])
    .where(`${table}.timestamp_us`, '>=', lowUs)
    .where(`${table}.timestamp_us`, '<=', highUs)
  if (gap?.in === 'settled') {
    const position = sql`(${sql.ref(`${table}.timestamp_us`)}, ${sql.ref(`${table}.seq`)})`
    const bound = sql`(${gap.us}, ${gap.seq})`
    keys = keys.where(
      request.up ? sql<boolean>`${position} >= ${bound}` : sql<boolean>`${position} < ${bound}`,
    )
  }
  if (request.ascending) keys = keys.where(below(store, start))
  if (by === 'time') {
    keys = keys.where('events.account_id', '=', accountId).where('events.domain_name', '=', domainName)
  } else {
    keys = keys.where(unindexed('events.account_id'), '=', accountId)
    if (by === 'recipient' || by === 'message') {
      keys = keys.where(unindexed('events.domain_name'), '=', domainName)
    }
  }
  if (by === 'message' && plan.recipients) {
    keys = keys.where(sql<number>`events.recipient_hash + 0`, 'in', hashesOf(scan))
  }
  if (plan.events && by !== 'event' && by !== 'tag') {
    keys = keys.where(unindexed('events.event'), 'in', plan.events)
  }
  return keys
}

/** The view of all keys; for a tag the narrow table of tags first: SQLite keeps the order of a cross join. */
function source(store: Store, branch: Branch): Source {
  if (branch.by === 'tag') return tagSource(store)
  // One type for both; a query uses `event_tags` only if it is joined.
  return store.db.selectFrom('event_keys as events') as unknown as Source
}

const tagSource = (store: Store) =>
  store.db
    .selectFrom('event_tag_keys as event_tags')
    .crossJoin('events')
    .whereRef('events.seq', '=', 'event_tags.seq')
type Source = ReturnType<typeof tagSource>

/**
 * On SQLite the events of a recipient are one index range per segment (migration 0022). Segments follow each other in
 * time and overlap slightly. They are searched in that order, in growing batches until there are enough keys.
 */
async function keysBySegment(store: Store, scan: Scan): Promise<Key[]> {
  // Unindexed events first: one that is indexed meanwhile is found twice instead of missed.
  const found = new Map<number, Key>()
  const add = (keys: Key[]) => {
    for (const key of keys) found.set(key.seq, key)
  }
  add(await unindexedQuery(store, scan).execute())
  const segments = await segmentsQuery(store, scan).execute()
  for (let at = 0, count = 1; at < segments.length; at += count, count *= 4) {
    const batch = segments.slice(at, at + count).map(({ segment }) => segment)
    add(await segmentQuery(store, scan, batch).execute())
    const last = inOrder(found, scan).at(scan.size - 1)
    const next = segments[at + count]
    if (last && next && isBefore(last, next, scan)) break
  }
  return inOrder(found, scan).slice(0, scan.size)
}

function inOrder(found: Map<number, Key>, { request }: Scan): Key[] {
  const sign = request.up ? 1 : -1
  return [...found.values()].sort((a, b) => sign * (a.timestamp_us - b.timestamp_us || a.seq - b.seq))
}

/** Whether the key precedes everything in this segment and the following ones. */
const isBefore = (key: Key, segment: EventSegmentRow, { request }: Scan) =>
  request.up ? key.timestamp_us < segment.low_us : key.timestamp_us > segment.high_us

/** The segments that may have keys after the gap, in the order of the scan. */
function segmentsQuery(store: Store, { request, lowUs, highUs, gap }: Scan) {
  const from = request.up && gap?.in === 'settled' ? Math.max(lowUs, gap.us) : lowUs
  const to = !request.up && gap?.in === 'settled' ? Math.min(highUs, gap.us) : highUs
  const query = store.db
    .selectFrom('event_segments')
    .selectAll()
    .where('high_us', '>=', from)
    .where('low_us', '<=', to)
  return request.up ? query.orderBy('low_us', 'asc') : query.orderBy('high_us', 'desc')
}

/** The first keys of the plan's recipients in these segments. */
export function segmentQuery(store: Store, scan: Scan, segments: readonly number[]) {
  const rows = store.db.selectFrom('event_index as events').where('events.segment', 'in', segments)
  return recipientQuery(rows as unknown as Source, store, scan)
}

/** The same among the events that are not indexed yet. */
function unindexedQuery(store: Store, scan: Scan) {
  const rows = store.db.selectFrom('events').where('events.seq', '>', indexedUpTo)
  return recipientQuery(rows as unknown as Source, store, scan)
}

function recipientQuery(rows: Source, store: Store, scan: Scan) {
  const direction = scan.request.up ? 'asc' : 'desc'
  return settledPart(rows, store, scan, 'recipient')
    .where('events.recipient_hash', 'in', hashesOf(scan))
    .orderBy('events.timestamp_us', direction)
    .orderBy('events.seq', direction)
    .limit(scan.size)
}

const hashesOf = ({ plan, request }: KeySearch) =>
  (plan.recipients ?? []).map((recipient) => recipientHash(request.domainName, recipient))

function inBranch(
  eb: ExpressionBuilder<Schema, 'events' | 'event_tags'>,
  branch: Branch,
  domainName: string,
) {
  switch (branch.by) {
    case 'message':
      return eb('events.message_id', '=', branch.messageId)
    case 'recipient':
      return eb('events.recipient_hash', '=', recipientHash(domainName, branch.recipient))
    case 'tag':
      return eb.and([
        eb('event_tags.domain_name', '=', domainName),
        eb('event_tags.tag', '=', branch.tag),
        eb('event_tags.event', '=', branch.event),
      ])
    case 'event':
      return eb.and([eb('events.domain_name', '=', domainName), eb('events.event', '=', branch.event)])
    case 'time':
      return eb.lit(true)
  }
}

/** The column in a form that no index matches. */
const unindexed = (column: string) => sql<string>`${sql.ref(column)} || ''`

/** SQLite commits in the order of `seq`, and `tx` is always 0. */
const txOf = ({ kind }: Store) => (kind === 'sqlite' ? sql.lit<number>(0) : sql.ref<number>('events.tx'))
const positionColumns = ({ kind }: Store) =>
  sql.raw(kind === 'sqlite' ? 'events.seq' : '(events.tx, events.seq)')
const positionValue = ({ kind }: Store, { tx, seq }: CommitPosition) =>
  kind === 'sqlite' ? sql`${seq}` : sql`(${tx}, ${seq})`
const below = (store: Store, position: CommitPosition) =>
  sql<boolean>`${positionColumns(store)} < ${positionValue(store, position)}`
const atOrAbove = (store: Store, position: CommitPosition) =>
  sql<boolean>`${positionColumns(store)} >= ${positionValue(store, position)}`

/** Keys of events that became final since `start`, in commit order. */
export function sinceQuery(store: Store, scan: Scan) {
  const { request, plan, lowUs, highUs, start, settled, gap, size } = scan
  const position = gap?.in === 'since' ? gap : null
  const direction = request.up ? 'asc' : 'desc'
  let keys = store.db
    .selectFrom('event_keys as events')
    .select(['seq', 'tx', 'timestamp_us'])
    .where('domain_name', '=', request.domainName)
    .where(unindexed('events.account_id'), '=', request.accountId)
    .where(sql<number>`timestamp_us + 0`, '>=', lowUs)
    .where(sql<number>`timestamp_us + 0`, '<=', highUs)
    .where(atOrAbove(store, request.up ? (position ?? start) : start))
    .where(below(store, request.up ? settled : (position ?? settled)))
  if (plan.events) keys = keys.where(unindexed('events.event'), 'in', plan.events)
  if (store.kind === 'postgres') keys = keys.orderBy('tx', direction)
  return keys.orderBy('seq', direction).limit(size)
}

/** The first `size` keys of `sinceQuery` after `gap`. */
export const sinceKeys = (store: Store, search: KeySearch, gap: Gap | null, size: number): Promise<Key[]> =>
  sinceQuery(store, { ...search, gap, size }).execute()
