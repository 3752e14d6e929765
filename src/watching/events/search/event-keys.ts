/**
 * The queries that find the keys of a page's events, each in exactly one index. They read the views `event_keys` and
 * `event_tag_keys` (migration 0022); on SQLite these combine the index with the few events that are not indexed yet.
 * SQLite reads both parts in order and merges them, if a SELECT has only one such view and orders by selected columns.
 */
import { type ExpressionBuilder, sql } from 'kysely'
import type { EventSegmentRow, Schema } from '../../../platform/store/schema.ts'
import type { Store } from '../../../platform/store/store.ts'
import { type TimeRange, timeParts } from '../kept/time-parts.ts'
import { branchHeads, isOwned, lateralKeys } from './branch-heads.ts'
import { indexedUpTo } from './indexing.ts'
import type { CommitPosition, Gap } from './page-request.ts'
import { type Branch, type Key, type KeySearch, keyOfRow, type Scan } from './plan.ts'

/** More SELECTs in one statement cost more to prepare than a second statement. */
const BRANCHES_PER_QUERY = 60
/** A page needs few of the branches, if they are read in the order of their first events. */
const BRANCHES_MERGED = 24

/** The first `size` keys of the settled area after `gap`, in order of time. */
export async function settledKeys(
  store: Store,
  search: KeySearch,
  gap: Gap | null,
  size: number,
): Promise<Key[]> {
  const scan = { ...search, gap, size }
  if (store.kind === 'sqlite') return keysWithin(store, scan)
  const keys: Key[] = []
  for (const part of await partsOf(store, scan)) {
    keys.push(...(await keysWithin(store, { ...scan, ...part, size: size - keys.length })))
    if (keys.length >= size) break
  }
  return keys
}

/** What the scan may still find, in parts in its order. */
export function partsOf(store: Store, scan: Scan): Promise<TimeRange[]> {
  const [lowUs, highUs] = rangeOf(scan)
  return timeParts(store, { lowUs, highUs }, scan.request.up)
}

async function keysWithin(store: Store, scan: Scan): Promise<Key[]> {
  const { branches } = scan.plan
  if (store.kind === 'sqlite' && branches[0]?.by === 'recipient') {
    return (await keysBySegment(store, scan, Number.POSITIVE_INFINITY)).keys
  }
  // The planner reads all of these ranges at once; a recipient has few events.
  if (branches[0]?.by === 'recipient' && branches.length > BRANCHES_PER_QUERY) {
    const rows = store.db.selectFrom('events') as unknown as Source
    return recipientQuery(rows, store, scan).execute()
  }
  const most = isOwned(branches[0]) ? BRANCHES_MERGED : BRANCHES_PER_QUERY
  if (branches.length > most) return keysOfMany(store, scan)
  return (await settledQuery(store, scan)?.execute()) ?? []
}

/** Some branches at a time, in the order of their first events where these are known, until there are enough keys. */
async function keysOfMany(store: Store, scan: Scan): Promise<Key[]> {
  const found = new Map<number, Key>()
  const heads = isOwned(scan.plan.branches[0]) ? await branchHeads(store, scan) : null
  const branches = heads ?? scan.plan.branches
  const count = heads ? BRANCHES_MERGED : BRANCHES_PER_QUERY
  for (let at = 0; at < branches.length; at += count) {
    const plan = { ...scan.plan, branches: branches.slice(at, at + count) }
    const part = { ...scan, plan }
    const keys =
      store.kind === 'postgres' && heads
        ? await lateralKeys(store, part)
        : ((await settledQuery(store, part)?.execute()) ?? [])
    for (const key of keys) found.set(key.seq, key)
    const last = inOrder(found, scan).at(scan.size - 1)
    const next = heads?.[at + count]
    if (last && next && isBefore(last, next.headUs, scan)) break
  }
  return inOrder(found, scan).slice(0, scan.size)
}

/** The first keys of every branch, merged. Undefined without branches. */
export function settledQuery(store: Store, scan: Scan) {
  const direction = scan.request.up ? 'asc' : 'desc'
  const branches = scan.plan.branches.map((branch) => {
    const table = branch.by === 'tag' ? 'event_tags' : 'events'
    return settledPart(source(store, branch), store, scan, branch.by)
      .where((eb) => inBranch(eb, branch))
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
  const { scope, request, plan, lowUs, highUs, start, gap } = scan
  const table = by === 'tag' ? 'event_tags' : 'events'
  let keys = from
    .select((eb) => [
      eb.ref(`${table}.seq`).as('seq'),
      txOf(store).as('tx'),
      eb.ref(`${table}.timestamp_us`).as('timestamp_us'),
    ])
    .where(`${table}.timestamp_us`, '>=', lowUs)
    .where(`${table}.timestamp_us`, '<=', highUs)
  if (by === 'tag' && store.kind === 'postgres') {
    // Only the partitions of this time are planned.
    keys = keys.where('events.timestamp_us', '>=', lowUs).where('events.timestamp_us', '<=', highUs)
  }
  if (gap?.in === 'settled') {
    const position = sql`(${sql.ref(`${table}.timestamp_us`)}, ${sql.ref(`${table}.seq`)})`
    const bound = sql`(${gap.us}, ${gap.seq})`
    keys = keys.where(
      request.up ? sql<boolean>`${position} >= ${bound}` : sql<boolean>`${position} < ${bound}`,
    )
  }
  if (request.ascending) keys = keys.where(below(store, start))
  const isInBranch = IN_BRANCH[by]
  if (!isInBranch.account) keys = keys.where(unindexed('events.account_id'), 'in', scope.accountIds)
  if (!isInBranch.domain && scope.domainNames) {
    keys = keys.where(unindexed('events.domain_name'), 'in', scope.domainNames)
  }
  if (by === 'message' && plan.hashes) {
    keys = keys.where(sql<number>`events.recipient_hash + 0`, 'in', plan.hashes)
  }
  if (plan.events && !isInBranch.event) {
    keys = keys.where(unindexed('events.event'), 'in', plan.events)
  }
  return keys
}

/** What the condition of a branch already contains. */
const IN_BRANCH: Readonly<Record<Branch['by'], { account?: true; domain?: true; event?: true }>> = {
  id: {},
  message: {},
  recipient: {},
  tag: { domain: true, event: true },
  event: { domain: true, event: true },
  account: { account: true, event: true },
  time: { account: true, domain: true },
}

/** The view of all keys; for a tag the narrow table of tags first: SQLite keeps the order of a cross join. */
function source(store: Store, branch: Branch): Source {
  if (branch.by === 'tag') return tagSource(store)
  if (branch.by === 'id') return store.db.selectFrom('events') as unknown as Source
  // One type for both; a query uses `event_tags` only if it is joined.
  return store.db.selectFrom('event_keys as events') as unknown as Source
}

const tagSource = (store: Store) => {
  const joined = store.db
    .selectFrom('event_tag_keys as event_tags')
    .crossJoin('events')
    .whereRef('events.seq', '=', 'event_tags.seq')
  // The event is in the partition of its time.
  return store.kind === 'sqlite'
    ? joined
    : joined.whereRef('events.timestamp_us', '=', 'event_tags.timestamp_us')
}
type Source = ReturnType<typeof tagSource>

/** What a search for recipients costs: a segment costs as much as so many hashes that are looked up in it. */
const SEGMENT_COST = 80
/** About 30 ms: 51 segments, 800,000 events, for a recipient under 900 domains; 617 segments under one domain. */
const SEARCH_COST_MAX = 50_000

/**
 * Like `settledKeys` for recipients on SQLite, but in a bounded part of the time: it may end with fewer than `size` keys
 * although more follow. `restUs`: the first time, in the order of the scan, that was not searched; null: there is none.
 */
export function recipientKeys(
  store: Store,
  search: KeySearch,
  gap: Gap | null,
  size: number,
  costMax = SEARCH_COST_MAX,
): Promise<{ keys: Key[]; restUs: number | null }> {
  const hashes = search.plan.hashes?.length ?? 0
  const segmentsMax = Math.max(1, Math.floor(costMax / (SEGMENT_COST + hashes)))
  return keysBySegment(store, { ...search, gap, size }, segmentsMax)
}

/**
 * On SQLite the events of a recipient are one index range per segment (migration 0022). Segments follow each other in
 * time and overlap slightly. They are searched in that order, in growing batches until there are enough keys or
 * `segmentsMax` segments were searched. Those that contain the first time of the scan do not count: so a scan that
 * continues where this one ended gets on.
 */
async function keysBySegment(
  store: Store,
  scan: Scan,
  segmentsMax: number,
): Promise<{ keys: Key[]; restUs: number | null }> {
  // Unindexed events first: one that is indexed meanwhile is found twice instead of missed.
  const found = new Map<number, Key>()
  const add = (keys: Key[]) => {
    for (const key of keys) found.set(key.seq, key)
  }
  add(await unindexedQuery(store, scan).execute())
  const segments = await segmentsQuery(store, scan).execute()
  const [fromUs, toUs] = rangeOf(scan)
  const isAtStart = (segment: EventSegmentRow) =>
    scan.request.up ? segment.low_us <= fromUs : segment.high_us >= toUs - 1
  const end = segments.filter(isAtStart).length + segmentsMax
  let searched = 0
  for (let count = 1; searched < Math.min(segments.length, end); count *= 4) {
    const batch = segments.slice(searched, Math.min(searched + count, end)).map(({ segment }) => segment)
    add(await segmentQuery(store, scan, batch).execute())
    searched += batch.length
    const last = inOrder(found, scan).at(scan.size - 1)
    const next = segments[searched]
    if (last && next && isBefore(last, firstOf(next, scan), scan)) break
  }
  const keys = inOrder(found, scan)
  const next = segments[searched]
  if (!next) return { keys: keys.slice(0, scan.size), restUs: null }
  // Later segments may have keys from here on.
  const restUs = firstOf(next, scan)
  return { keys: keys.filter((key) => isBefore(key, restUs, scan)).slice(0, scan.size), restUs }
}

function inOrder(found: Map<number, Key>, { request }: Scan): Key[] {
  const sign = request.up ? 1 : -1
  return [...found.values()].sort((a, b) => sign * (a.timestamp_us - b.timestamp_us || a.seq - b.seq))
}

/** Whether the scan finds the key before everything of this time. */
const isBefore = (key: Key, us: number, { request }: Scan) =>
  request.up ? key.timestamp_us < us : key.timestamp_us > us

/** The first time in this segment and the following ones. */
const firstOf = (segment: EventSegmentRow, { request }: Scan) =>
  request.up ? segment.low_us : segment.high_us

/** The times that the scan may still find, in microseconds, both inclusive. */
function rangeOf({ request, lowUs, highUs, gap }: Scan): [fromUs: number, toUs: number] {
  const from = request.up && gap?.in === 'settled' ? Math.max(lowUs, gap.us) : lowUs
  const to = !request.up && gap?.in === 'settled' ? Math.min(highUs, gap.us) : highUs
  return [from, to]
}

/** The segments that may have keys after the gap, in the order of the scan. */
function segmentsQuery(store: Store, scan: Scan) {
  const { request } = scan
  const [from, to] = rangeOf(scan)
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
    .where('events.recipient_hash', 'in', scan.plan.hashes ?? [])
    .orderBy('events.timestamp_us', direction)
    .orderBy('events.seq', direction)
    .limit(scan.size)
}

function inBranch(eb: ExpressionBuilder<Schema, 'events' | 'event_tags'>, branch: Branch) {
  switch (branch.by) {
    case 'id':
      return eb('events.id', '=', branch.id)
    case 'message':
      return eb('events.message_id', '=', branch.messageId)
    case 'recipient':
      return eb('events.recipient_hash', '=', branch.hash)
    case 'tag':
      return eb.and([
        eb('event_tags.domain_name', '=', branch.domainName),
        eb('event_tags.tag', '=', branch.tag),
        eb('event_tags.event', '=', branch.event),
      ])
    case 'event':
      return eb.and([eb('events.domain_name', '=', branch.domainName), eb('events.event', '=', branch.event)])
    case 'account':
      return eb.and([eb('events.account_id', '=', branch.accountId), eb('events.event', '=', branch.event)])
    case 'time':
      return eb.and([
        eb('events.account_id', '=', branch.accountId),
        eb('events.domain_name', '=', branch.domainName),
      ])
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

/** A search in a domain's events that became final since `start`, up to `settled`. */
type SinceScan = Scan & { domainName: string; settled: CommitPosition }

/** Keys in commit order. */
export async function sinceKeys(store: Store, scan: SinceScan): Promise<Key[]> {
  if (store.kind === 'sqlite') return sinceQuery(store, scan).execute()
  const { scope, request, plan, lowUs, highUs, start, settled, gap, size } = scan
  const position = gap?.in === 'since' ? gap : null
  const from = request.up ? (position ?? start) : start
  const to = request.up ? settled : (position ?? settled)
  const list = 'ARRAY(SELECT json_array_elements_text(?::json))'
  const rows = await store.read({
    sql: `SELECT seq, tx, timestamp_us FROM events_since(?, ${list}, ${plan.events ? list : 'NULL'}, ?, ?, ?, ?, ?, ?, ?, ?)`,
    values: [
      scan.domainName,
      JSON.stringify(scope.accountIds),
      ...(plan.events ? [JSON.stringify(plan.events)] : []),
      ...[lowUs, highUs, from.tx, from.seq, to.tx, to.seq],
      ...[request.up ? 1 : 0, size],
    ],
  })
  return rows.map(keyOfRow)
}

/** The same on SQLite. */
export function sinceQuery(store: Store, scan: SinceScan) {
  const { scope, request, plan, lowUs, highUs, start, settled, gap, size } = scan
  const position = gap?.in === 'since' ? gap : null
  const direction = request.up ? 'asc' : 'desc'
  let keys = store.db
    .selectFrom('event_keys as events')
    .select(['seq', 'tx', 'timestamp_us'])
    .where('domain_name', '=', scan.domainName)
    .where(unindexed('events.account_id'), 'in', scope.accountIds)
    .where(sql<number>`timestamp_us + 0`, '>=', lowUs)
    .where(sql<number>`timestamp_us + 0`, '<=', highUs)
    .where(atOrAbove(store, request.up ? (position ?? start) : start))
    .where(below(store, request.up ? settled : (position ?? settled)))
  if (plan.events) keys = keys.where(unindexed('events.event'), 'in', plan.events)
  if (store.kind === 'postgres') keys = keys.orderBy('tx', direction)
  return keys.orderBy('seq', direction).limit(size)
}
