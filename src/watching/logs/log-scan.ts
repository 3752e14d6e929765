/**
 * Finds events by their text, for filters that no index serves. A read looks at a bounded part of the list:
 *
 * 1. where the next `SCANNED` events of all branches end, from the index alone;
 * 2. those among them that the database finds the texts in.
 *
 * Both merge the branches in order of time, as far as they are needed.
 */

import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import type { TimeRange } from '../events/kept/time-parts.ts'
import { branchHeads } from '../events/search/branch-heads.ts'
import { partsOf } from '../events/search/event-keys.ts'
import type { CommitPosition, Gap } from '../events/search/page-request.ts'
import { type Branch, type Key, keyOfRow, type Scan } from '../events/search/plan.ts'
import { gapAbove, gapBelow, type KeyPage } from '../events/search/walk.ts'
import type { TextCondition } from './log-filter.ts'

/** Events that a read looks at. */
const SCANNED = { first: 1_000, next: 2_000 }
/** Events of a domain among many lie on a page of the file each; those of an account share pages. */
const DOMAIN_COST = 2
/** Events that a read returns: each is parsed. */
const FOUND_MAX = 100
/** What a found event costs, in looked-at events. */
export const FOUND_COST = 8
/** A statement merges so many branches; further ones begin later. */
const BRANCHES_MAX = 24

type TextScan = Scan & { texts: readonly TextCondition[] }
type ScannedBranch = Extract<Branch, { by: 'account' | 'event' }>

export const canScan = (branches: readonly Branch[]): boolean =>
  branches.every(({ by }) => by === 'account' || by === 'event')

interface Arm {
  sql: string
  values: SqlValue[]
}

export async function scannedKeys(store: Store, scan: TextScan, isFirst: boolean): Promise<KeyPage> {
  if (store.kind === 'sqlite') return scannedWithin(store, scan, isFirst)
  const parts = await partsOf(store, scan)
  const last = parts.pop()
  for (const part of parts) {
    const page = await scannedWithin(store, { ...scan, ...part }, isFirst)
    if (page.rest !== null) return page
    // All of the part was looked at, which is less than a read's share.
    const read = page.keys.length * FOUND_COST
    if (page.keys.length > 0) return { keys: page.keys, rest: restAfter(part, scan.request.up), read }
  }
  return scannedWithin(store, { ...scan, ...last }, isFirst)
}

const restAfter = (part: TimeRange, up: boolean): Gap => ({
  in: 'settled',
  us: up ? part.highUs + 1 : part.lowUs,
  seq: 0,
})

async function scannedWithin(store: Store, scan: TextScan, isFirst: boolean): Promise<KeyPage> {
  const { up } = scan.request
  const near = await nearBranches(store, scan)
  if (near === null) return { keys: [], rest: null, read: 0 }
  const { branches, limitUs } = near
  const cost = branches[0]?.by === 'event' ? DOMAIN_COST : 1
  const count = (isFirst ? SCANNED.first : SCANNED.next) / cost
  const inRange =
    limitUs === null ? scan : { ...scan, ...(up ? { highUs: limitUs - 1 } : { lowUs: limitUs + 1 }) }
  const atLimit: Gap | null =
    limitUs === null ? null : { in: 'settled', us: up ? limitUs : limitUs + 1, seq: 0 }
  const [last] = await keysOf(store, inRange, branches, [], count, 1)
  const end = last ? (up ? gapAbove : gapBelow)({ key: last, area: 'settled' }) : atLimit
  const upTo = last
    ? { ...inRange, ...(up ? { highUs: last.timestamp_us } : { lowUs: last.timestamp_us }) }
    : inRange
  const found = await keysOf(store, upTo, branches, scan.texts, 0, FOUND_MAX)
  const keys = last ? found.filter((key) => !isAfter(key, last, up)) : found
  const newest = keys.at(-1)
  const isFull = found.length === FOUND_MAX && newest !== undefined
  const rest = isFull ? (up ? gapAbove : gapBelow)({ key: newest, area: 'settled' }) : end
  return { keys, rest, read: count * cost + keys.length * FOUND_COST }
}

const isAfter = (key: Key, last: Key, up: boolean) => {
  const order = key.timestamp_us - last.timestamp_us || key.seq - last.seq
  return up ? order > 0 : order < 0
}

/** The branches that begin first, and where further ones begin; null: none has an event. */
async function nearBranches(
  store: Store,
  scan: Scan,
): Promise<{ branches: readonly ScannedBranch[]; limitUs: number | null } | null> {
  const branches = scan.plan.branches as readonly ScannedBranch[]
  if (branches.length <= BRANCHES_MAX) return { branches, limitUs: null }
  const heads = await branchHeads(store, scan)
  if (heads.length === 0) return null
  const limitUs = heads[BRANCHES_MAX]?.headUs ?? null
  const near = heads.slice(0, BRANCHES_MAX) as unknown as ScannedBranch[]
  // Many begin at the same time: they are read in one go.
  return limitUs !== null && limitUs === heads[0]?.headUs
    ? { branches: heads as unknown as ScannedBranch[], limitUs: null }
    : { branches: near, limitUs }
}

async function keysOf(
  store: Store,
  scan: Scan,
  branches: readonly ScannedBranch[],
  texts: readonly TextCondition[],
  skip: number,
  limit: number,
): Promise<Key[]> {
  const { sql, values } = merged(store, scan, branches, texts, skip, limit)
  const rows = await store.read({ sql, values })
  return rows.map(keyOfRow)
}

function merged(
  store: Store,
  scan: Scan,
  branches: readonly ScannedBranch[],
  texts: readonly TextCondition[],
  skip: number,
  limit: number,
): Statement {
  const direction = scan.request.up ? 'ASC' : 'DESC'
  const order = `ORDER BY timestamp_us ${direction}, seq ${direction}`
  const arms = branches.map((branch) => armOf(store, scan, branch, texts))
  if (store.kind === 'sqlite') arms.push(unindexedArm(scan, branches, texts))
  // PostgreSQL merges what is ordered already; SQLite orders the parts itself.
  const parts = arms.map(({ sql }) =>
    store.kind === 'sqlite' ? sql : `(${sql} ${order} LIMIT ${skip + limit})`,
  )
  return {
    sql: `SELECT timestamp_us, seq, tx FROM (${parts.join(' UNION ALL ')}) AS found
      ${order} LIMIT ${limit} OFFSET ${skip}`,
    values: arms.flatMap(({ values }) => values),
  }
}

/** The events of a branch: a range of an index. */
function armOf(store: Store, scan: Scan, branch: ScannedBranch, texts: readonly TextCondition[]): Arm {
  const column = branch.by === 'account' ? 'account_id' : 'domain_name'
  const owner = branch.by === 'account' ? branch.accountId : branch.domainName
  const common = conditionsOf(store, scan, texts)
  const isJoined = store.kind === 'sqlite' && texts.length > 0
  // Where a list ends, only the index is read.
  const tx = store.kind === 'sqlite' || texts.length === 0 ? '0' : 'k.tx'
  const table =
    store.kind === 'postgres'
      ? 'events AS k'
      : isJoined
        ? 'event_index AS k CROSS JOIN events AS e'
        : 'event_index AS k'
  return {
    sql: `SELECT k.timestamp_us AS timestamp_us, k.seq AS seq, ${tx} AS tx FROM ${table}
      WHERE k.${column} = ? AND k.event = ? ${isJoined ? 'AND e.seq = k.seq' : ''} ${common.sql(isJoined ? 'e' : 'k')}`,
    values: [owner, branch.event, ...common.values],
  }
}

/** SQLite: the events that are not in the index yet. */
function unindexedArm(scan: Scan, branches: readonly ScannedBranch[], texts: readonly TextCondition[]): Arm {
  const column = branches[0]?.by === 'event' ? 'domain_name' : 'account_id'
  const owners = branches.map((branch) => (branch.by === 'account' ? branch.accountId : branch.domainName))
  const common = conditionsOf({ kind: 'sqlite' }, scan, texts)
  const list = 'IN (SELECT value FROM json_each(?))'
  return {
    sql: `SELECT k.timestamp_us AS timestamp_us, k.seq AS seq, 0 AS tx FROM events AS k
      WHERE k.seq > (SELECT seq FROM event_index_place) AND k.${column} ${list} AND k.event ${list} ${common.sql('k')}`,
    values: [
      JSON.stringify([...new Set(owners)]),
      JSON.stringify([...new Set(branches.map(({ event }) => event))]),
      ...common.values,
    ],
  }
}

/** Range, scope and texts. Conditions besides those of the range are in a form that no index matches. */
function conditionsOf({ kind }: Pick<Store, 'kind'>, scan: Scan, texts: readonly TextCondition[]) {
  const { lowUs, highUs, request, gap, start, scope } = scan
  // On PostgreSQL an array, which keeps the order of the index.
  const list =
    kind === 'sqlite'
      ? 'IN (SELECT value FROM json_each(?))'
      : '= ANY (ARRAY(SELECT json_array_elements_text(?::json)))'
  const parts: ((row: string) => string)[] = [() => 'k.timestamp_us >= ? AND k.timestamp_us <= ?']
  const values: SqlValue[] = [lowUs, highUs]
  const conditionsSql = (row: string) => parts.map((part) => `AND ${part(row)}`).join(' ')
  if (gap?.in === 'settled') {
    parts.push(() => `(k.timestamp_us, k.seq) ${request.up ? '>=' : '<'} (?, ?)`)
    values.push(gap.us, gap.seq)
  }
  if (request.ascending) {
    parts.push(() => (kind === 'sqlite' ? 'k.seq < ?' : '(k.tx, k.seq) < (?, ?)'))
    values.push(...(kind === 'sqlite' ? [start.seq] : [start.tx, start.seq]))
  }
  if (texts.length === 0) return { sql: conditionsSql, values }
  const byDomain = scan.plan.branches[0]?.by === 'event'
  if (byDomain) {
    parts.push(() => `k.account_id || '' ${list}`)
    values.push(JSON.stringify(scope.accountIds))
  } else if (scope.domainNames) {
    parts.push(() => `k.domain_name || '' ${list}`)
    values.push(JSON.stringify(scope.domainNames))
  }
  const find = kind === 'sqlite' ? 'instr' : 'strpos'
  for (const { column, texts: wanted } of texts) {
    parts.push((row) => `(${wanted.map(() => `${find}(lower(${row}.${column}), ?) > 0`).join(' OR ')})`)
    values.push(...wanted)
  }
  return { sql: conditionsSql, values }
}

/** About a millisecond. */
const KEYS_PER_READ = 1_000

/**
 * Events that became final since the first page of an ascending list, in commit order. They are few in a list that ends
 * in the past, so there is no index of them per account: the keys of all accounts are read, a bounded number at a time.
 */
export async function nextSinceKeys(
  store: Store,
  scan: Scan & { settled: CommitPosition },
): Promise<KeyPage> {
  const { request, plan, scope, lowUs, highUs, size } = scan
  const { sql, values } = sinceRead(store, scan)
  const rows = await store.read({ sql, values })
  const isListed = (row: Record<string, unknown>) =>
    scope.accountIds.includes(String(row['account_id'])) &&
    (plan.events?.includes(String(row['event'])) ?? true) &&
    Number(row['timestamp_us']) >= lowUs &&
    Number(row['timestamp_us']) <= highUs
  const keys: KeyPage['keys'] = []
  let last: Gap | null = null
  for (const [at, row] of rows.entries()) {
    const key = keyOfRow(row)
    if (isListed(row)) keys.push(key)
    last = (request.up ? gapAbove : gapBelow)({ key, area: 'since' })
    if (keys.length === size) return { keys, rest: last, read: at + 1 }
  }
  return { keys, rest: rows.length < KEYS_PER_READ ? null : last, read: rows.length }
}

function sinceRead({ kind }: Store, scan: Scan & { settled: CommitPosition }) {
  const { request, start, settled, gap } = scan
  const position = gap?.in === 'since' ? gap : null
  const from = request.up ? (position ?? start) : start
  const to = request.up ? settled : (position ?? settled)
  const [columns, mark, order] =
    kind === 'sqlite' ? ['seq', '?', ['seq']] : ['(tx, seq)', '(?, ?)', ['tx', 'seq']]
  const valuesOf = ({ tx, seq }: CommitPosition) => (kind === 'sqlite' ? [seq] : [tx, seq])
  const direction = request.up ? 'ASC' : 'DESC'
  return {
    sql: `SELECT seq, tx, timestamp_us, account_id, event FROM event_keys
      WHERE ${columns} >= ${mark} AND ${columns} < ${mark}
      ORDER BY ${order.map((column) => `${column} ${direction}`).join(', ')} LIMIT ${KEYS_PER_READ}`,
    values: [...valuesOf(from), ...valuesOf(to)],
  }
}
