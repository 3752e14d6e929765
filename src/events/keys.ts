/**
 * The queries behind a page: keys of events out of exactly one index. They read `event_keys` and `event_tag_keys`
 * (migration 0022), which on SQLite are the index, and behind it the few events that are not in it yet. SQLite gives
 * each part in order and merges them, as long as a SELECT has one such view, and orders by what it selects.
 */
import { type ExpressionBuilder, sql } from 'kysely'
import type { EventSegmentRow, Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { recipientHash } from './event.ts'
import { indexedUpTo } from './indexing.ts'
import type { CommitPlace, Gap, PageRequest } from './page-request.ts'
import type { Branch, Plan } from './plan.ts'

export interface KeySearch {
  request: Pick<PageRequest, 'accountId' | 'domainName' | 'ascending' | 'up'>
  plan: Plan
  /** Microseconds, both included. */
  lowUs: number
  highUs: number
  /** Where *since* begins. */
  start: CommitPlace
  /** Where it ends for now. */
  settled: CommitPlace
}

export interface Key {
  seq: number
  tx: number
  timestamp_us: number
}

/** The first `size` keys of the settled area beyond `gap`, in order of time. */
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

/** What one look at an area asks for. */
type Look = KeySearch & { gap: Gap | null; size: number }

/** The first of every branch, merged. Undefined without branches. */
export function settledQuery(store: Store, look: Look) {
  const direction = look.request.up ? 'asc' : 'desc'
  const branches = look.plan.branches.map((branch) => {
    const table = branch.by === 'tag' ? 'event_tags' : 'events'
    return settledPart(source(store, branch), store, look, branch.by)
      .where((of) => ofBranch(of, branch, look.request.domainName))
      .orderBy(`${table}.timestamp_us`, direction)
      .orderBy(`${table}.seq`, direction)
      .limit(look.size)
  })
  if (branches.length <= 1) return branches[0]
  const all = branches
    // A branch needs its own LIMIT, which a compound SELECT allows only inside a subquery. What has two of the tags
    // that are asked for comes from both.
    .map((branch) => store.db.selectFrom(branch.as('branch')).selectAll())
    .reduce((union, branch) => union.union(branch))
  return store.db
    .selectFrom(all.as('branches'))
    .selectAll()
    .orderBy('timestamp_us', direction)
    .orderBy('seq', direction)
    .limit(look.size)
}

/**
 * Conditions that hold beside those of the index are written so that no index fits them (`|| ''`, `+ 0`): with one
 * index per question neither planner can pick a worse one.
 */
function settledPart(from: Source, store: Store, look: Look, by: Branch['by']) {
  const { request, plan, lowUs, highUs, start, gap } = look
  const { domainName, accountId } = request
  const table = by === 'tag' ? 'event_tags' : 'events'
  let keys = from
    .select((of) => [
      of.ref(`${table}.seq`).as('seq'),
      txOf(store).as('tx'),
      of.ref(`${table}.timestamp_us`).as('timestamp_us'),
    ])
    .where(`${table}.timestamp_us`, '>=', lowUs)
    .where(`${table}.timestamp_us`, '<=', highUs)
  if (gap?.in === 'settled') {
    const places = sql`(${sql.ref(`${table}.timestamp_us`)}, ${sql.ref(`${table}.seq`)})`
    const place = sql`(${gap.us}, ${gap.seq})`
    keys = keys.where(request.up ? sql<boolean>`${places} >= ${place}` : sql<boolean>`${places} < ${place}`)
  }
  if (request.ascending) keys = keys.where(below(store, start))
  if (by === 'time') {
    keys = keys.where('events.account_id', '=', accountId).where('events.domain_name', '=', domainName)
  } else {
    keys = keys.where(fitsNoIndex('events.account_id'), '=', accountId)
    if (by === 'recipient' || by === 'message') {
      keys = keys.where(fitsNoIndex('events.domain_name'), '=', domainName)
    }
  }
  if (by === 'message' && plan.recipients) {
    keys = keys.where(sql<number>`events.recipient_hash + 0`, 'in', hashesOf(look))
  }
  if (plan.events && by !== 'event' && by !== 'tag') {
    keys = keys.where(fitsNoIndex('events.event'), 'in', plan.events)
  }
  return keys
}

/** The keys of all events, or the narrow table of tags first: SQLite keeps the order of a cross join. */
function source(store: Store, branch: Branch): Source {
  if (branch.by === 'tag') return tagSource(store)
  // One type for both; a query names `event_tags` only where it is joined.
  return store.db.selectFrom('event_keys as events') as unknown as Source
}

const tagSource = (store: Store) =>
  store.db
    .selectFrom('event_tag_keys as event_tags')
    .crossJoin('events')
    .whereRef('events.seq', '=', 'event_tags.seq')
type Source = ReturnType<typeof tagSource>

/**
 * On SQLite the events of a recipient lie in one stretch per segment (migration 0022). Segments follow each other in
 * time, and overlap a little. They are looked at in that order, more of them at a time while there is not enough.
 */
async function keysBySegment(store: Store, look: Look): Promise<Key[]> {
  // First those that are in no segment yet: what gets into one meanwhile is met twice, not missed.
  const found = new Map<number, Key>()
  const add = (keys: Key[]) => {
    for (const key of keys) found.set(key.seq, key)
  }
  add(await freshQuery(store, look).execute())
  const segments = await segmentsQuery(store, look).execute()
  for (let at = 0, count = 1; at < segments.length; at += count, count *= 4) {
    const some = segments.slice(at, at + count).map(({ segment }) => segment)
    add(await segmentQuery(store, look, some).execute())
    const last = inOrder(found, look).at(look.size - 1)
    const next = segments[at + count]
    if (last && next && isBefore(last, next, look)) break
  }
  return inOrder(found, look).slice(0, look.size)
}

function inOrder(found: Map<number, Key>, { request }: Look): Key[] {
  const sign = request.up ? 1 : -1
  return [...found.values()].sort((a, b) => sign * (a.timestamp_us - b.timestamp_us || a.seq - b.seq))
}

/** Whether the key comes before everything in this segment, and in those behind it. */
const isBefore = (key: Key, segment: EventSegmentRow, { request }: Look) =>
  request.up ? key.timestamp_us < segment.low_us : key.timestamp_us > segment.high_us

/** The segments that may hold something beyond the gap, in the order of the look. */
function segmentsQuery(store: Store, { request, lowUs, highUs, gap }: Look) {
  const from = request.up && gap?.in === 'settled' ? Math.max(lowUs, gap.us) : lowUs
  const to = !request.up && gap?.in === 'settled' ? Math.min(highUs, gap.us) : highUs
  const query = store.db
    .selectFrom('event_segments')
    .selectAll()
    .where('high_us', '>=', from)
    .where('low_us', '<=', to)
  return request.up ? query.orderBy('low_us', 'asc') : query.orderBy('high_us', 'desc')
}

/** The first keys of the plan's recipients among those of these segments. */
export function segmentQuery(store: Store, look: Look, segments: readonly number[]) {
  const rows = store.db.selectFrom('event_index as events').where('events.segment', 'in', segments)
  return recipientQuery(rows as unknown as Source, store, look)
}

/** The same among the events that are in no segment yet. */
function freshQuery(store: Store, look: Look) {
  const rows = store.db.selectFrom('events').where('events.seq', '>', indexedUpTo)
  return recipientQuery(rows as unknown as Source, store, look)
}

function recipientQuery(rows: Source, store: Store, look: Look) {
  const direction = look.request.up ? 'asc' : 'desc'
  return settledPart(rows, store, look, 'recipient')
    .where('events.recipient_hash', 'in', hashesOf(look))
    .orderBy('events.timestamp_us', direction)
    .orderBy('events.seq', direction)
    .limit(look.size)
}

const hashesOf = ({ plan, request }: KeySearch) =>
  (plan.recipients ?? []).map((recipient) => recipientHash(request.domainName, recipient))

function ofBranch(
  of: ExpressionBuilder<Schema, 'events' | 'event_tags'>,
  branch: Branch,
  domainName: string,
) {
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

const fitsNoIndex = (column: string) => sql<string>`${sql.ref(column)} || ''`

/** SQLite commits in the order of `seq`, and `tx` is always 0. */
const txOf = ({ kind }: Store) => (kind === 'sqlite' ? sql.lit<number>(0) : sql.ref<number>('events.tx'))
const placeColumns = ({ kind }: Store) =>
  sql.raw(kind === 'sqlite' ? 'events.seq' : '(events.tx, events.seq)')
const placeValue = ({ kind }: Store, { tx, seq }: CommitPlace) =>
  kind === 'sqlite' ? sql`${seq}` : sql`(${tx}, ${seq})`
const below = (store: Store, place: CommitPlace) =>
  sql<boolean>`${placeColumns(store)} < ${placeValue(store, place)}`
const atOrAbove = (store: Store, place: CommitPlace) =>
  sql<boolean>`${placeColumns(store)} >= ${placeValue(store, place)}`

/** Keys of what became final since, in order of commit. */
export function sinceQuery(store: Store, look: Look) {
  const { request, plan, lowUs, highUs, start, settled, gap, size } = look
  const place = gap?.in === 'since' ? gap : null
  const direction = request.up ? 'asc' : 'desc'
  let keys = store.db
    .selectFrom('event_keys as events')
    .select(['seq', 'tx', 'timestamp_us'])
    .where('domain_name', '=', request.domainName)
    .where(fitsNoIndex('events.account_id'), '=', request.accountId)
    .where(sql<number>`timestamp_us + 0`, '>=', lowUs)
    .where(sql<number>`timestamp_us + 0`, '<=', highUs)
    .where(atOrAbove(store, request.up ? (place ?? start) : start))
    .where(below(store, request.up ? settled : (place ?? settled)))
  if (plan.events) keys = keys.where(fitsNoIndex('events.event'), 'in', plan.events)
  if (store.kind === 'postgres') keys = keys.orderBy('tx', direction)
  return keys.orderBy('seq', direction).limit(size)
}

/** The first `size` keys of what became final since, beyond `gap`, in order of commit. */
export const sinceKeys = (store: Store, search: KeySearch, gap: Gap | null, size: number): Promise<Key[]> =>
  sinceQuery(store, { ...search, gap, size }).execute()
