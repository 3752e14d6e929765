/** Which branches of a plan to read first for a page over many of them. */
import type { SqlValue, Store } from '../../../platform/store/store.ts'
import { type Branch, type Key, keyOfRow, type Scan } from './plan.ts'

/** Ranges of an owner and a name of event; those of tags have the tag as well. */
export type OwnedBranch = Extract<Branch, { by: 'account' | 'event' | 'tag' }>
/** With the time of its first event, in microseconds. */
type BranchHead = OwnedBranch & { headUs: number }

export const isOwned = (branch: Branch | undefined): boolean =>
  branch?.by === 'account' || branch?.by === 'event' || branch?.by === 'tag'

/**
 * The scan's branches that have an event after its gap, in the order of their first ones. So a page over a thousand
 * accounts reads pages of few of them.
 */
export async function branchHeads(store: Store, scan: Scan): Promise<BranchHead[]> {
  const { request, lowUs, highUs, gap } = scan
  const branches = scan.plan.branches as readonly OwnedBranch[]
  const gapUs = gap?.in === 'settled' ? gap.us : request.up ? lowUs : highUs
  const range = request.up ? [Math.max(lowUs, gapUs), highUs] : [lowUs, Math.min(highUs, gapUs)]
  const kind = branches[0]?.by ?? 'account'
  const lists = [
    [...new Set(branches.map(ownerOf))],
    [...new Set(branches.map(({ event }) => event))],
    ...(kind === 'tag'
      ? [[...new Set(branches.map((branch) => (branch.by === 'tag' ? branch.tag : '')))]]
      : []),
  ].map((list) => JSON.stringify(list))
  // Unindexed events first: one that is indexed meanwhile is found twice instead of missed.
  const rows: Record<string, unknown>[] = []
  if (store.kind === 'sqlite') {
    rows.push(...(await store.read({ sql: unindexedHeads(kind, request.up), values: [...range, ...lists] })))
  }
  rows.push(
    ...(await store.read({ sql: indexedHeads(store, kind, request.up), values: [...range, ...lists] })),
  )
  return earliest(branches, rows, request.up)
}

export const ownerOf = (branch: OwnedBranch) =>
  branch.by === 'account' ? branch.accountId : branch.domainName
const nameOf = (owner: string, event: string, tag: string) => `${owner}\n${event}\n${tag}`

function earliest(
  branches: readonly OwnedBranch[],
  rows: readonly Record<string, unknown>[],
  up: boolean,
): BranchHead[] {
  const times = new Map<string, number>()
  for (const row of rows) {
    const name = nameOf(String(row['owner']), String(row['event']), String(row['tag'] ?? ''))
    const us = Number(row['head'])
    const known = times.get(name)
    times.set(name, known === undefined ? us : up ? Math.min(us, known) : Math.max(us, known))
  }
  const heads = branches.flatMap((branch): BranchHead[] => {
    const headUs = times.get(nameOf(ownerOf(branch), branch.event, branch.by === 'tag' ? branch.tag : ''))
    return headUs === undefined ? [] : [{ ...branch, headUs }]
  })
  return heads.sort((a, b) => (up ? a.headUs - b.headUs : b.headUs - a.headUs))
}

export const OWNER = { account: 'account_id', event: 'domain_name', tag: 'domain_name' } as const

/** A step in an index for each branch. */
function indexedHeads({ kind: database }: Store, kind: OwnedBranch['by'], up: boolean): string {
  const isSqlite = database === 'sqlite'
  const table = kind === 'tag' ? 'event_tags' : isSqlite ? 'event_index' : 'events'
  const list = isSqlite ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const isTag = kind === 'tag'
  return `SELECT * FROM (
    SELECT owners.value AS owner, names.value AS event${isTag ? ', tags.value AS tag' : ''},
      (SELECT timestamp_us FROM ${table} AS keys
        WHERE keys.${OWNER[kind]} = owners.value AND keys.event = names.value ${isTag ? 'AND keys.tag = tags.value' : ''}
          AND timestamp_us BETWEEN ? AND ?
        ORDER BY timestamp_us ${up ? 'ASC' : 'DESC'} LIMIT 1) AS head
    FROM ${list} AS owners CROSS JOIN ${list} AS names ${isTag ? `CROSS JOIN ${list} AS tags` : ''}) AS heads
  WHERE head IS NOT NULL`
}

function unindexedHeads(kind: OwnedBranch['by'], up: boolean): string {
  const isTag = kind === 'tag'
  return `SELECT ${OWNER[kind]} AS owner, event${isTag ? ', tags.value AS tag' : ''},
      ${up ? 'min' : 'max'}(timestamp_us) AS head
    FROM events ${isTag ? 'CROSS JOIN json_each(tags_json) AS tags' : ''}
    WHERE seq > (SELECT seq FROM event_index_place) AND timestamp_us BETWEEN ? AND ?
      AND ${OWNER[kind]} IN (SELECT value FROM json_each(?)) AND event IN (SELECT value FROM json_each(?))
      ${isTag ? 'AND tags.value IN (SELECT value FROM json_each(?))' : ''}
    GROUP BY owner, event ${isTag ? ', tag' : ''}`
}

/** For an entry of a tag only the partition with the event is read, and no other index. */
const TAGGED = 'event_tags AS k JOIN events ON events.seq = k.seq AND events.timestamp_us = k.timestamp_us'

/** All branches are of one kind. In the order of the scan, `size` at most. `tx` is 0 in a descending list, which ends without it. */
export async function lateralKeys(store: Store, scan: Scan): Promise<Key[]> {
  const { lowUs, highUs, request, gap, start, scope, size } = scan
  const branches = scan.plan.branches as readonly OwnedBranch[]
  const kind = branches[0]?.by ?? 'account'
  const isTag = kind === 'tag'
  const direction = request.up ? 'ASC' : 'DESC'
  const wanted = branches.map((branch) => ({
    owner: ownerOf(branch),
    event: branch.event,
    tag: branch.by === 'tag' ? branch.tag : '',
  }))
  // Rows of events: their own, or those that a tag's entries point to.
  const event = isTag ? 'events' : 'k'
  const conditions = ['k.timestamp_us BETWEEN ? AND ?']
  const values: SqlValue[] = [JSON.stringify(wanted), lowUs, highUs]
  const add = (sql: string, ...more: SqlValue[]) => {
    conditions.push(sql)
    values.push(...more)
  }
  if (isTag) add('events.timestamp_us BETWEEN ? AND ?', lowUs, highUs)
  if (gap?.in === 'settled') add(`(k.timestamp_us, k.seq) ${request.up ? '>=' : '<'} (?, ?)`, gap.us, gap.seq)
  if (request.ascending) add(`(${event}.tx, ${event}.seq) < (?, ?)`, start.tx, start.seq)
  // An array keeps the ranges in the order of their index, which a join with a list would not.
  const list = 'ANY (ARRAY(SELECT json_array_elements_text(?::json)))'
  if (kind !== 'account') add(`${event}.account_id || '' = ${list}`, JSON.stringify(scope.accountIds))
  else if (scope.domainNames) add(`${event}.domain_name || '' = ${list}`, JSON.stringify(scope.domainNames))
  // A descending list of accounts needs nothing but the index: each branch reads `size` entries, and most are not used.
  const tx = request.ascending ? `${event}.tx` : '0 AS tx'
  const rows = await store.read({
    sql: `SELECT DISTINCT found.timestamp_us, found.seq, found.tx
      FROM json_to_recordset(?::json) AS wanted(owner text, event text, tag text)
      CROSS JOIN LATERAL (
        SELECT k.timestamp_us, k.seq, ${tx}
        FROM ${isTag ? TAGGED : 'events AS k'}
        WHERE k.${OWNER[kind]} = wanted.owner AND k.event = wanted.event ${isTag ? 'AND k.tag = wanted.tag' : ''}
          AND ${conditions.join(' AND ')}
        ORDER BY k.timestamp_us ${direction}, k.seq ${direction} LIMIT ${size}) AS found
      ORDER BY found.timestamp_us ${direction}, found.seq ${direction} LIMIT ${size}`,
    values,
  })
  return rows.map(keyOfRow)
}
