/** The first keys of many branches on PostgreSQL, in one statement: planning one range for each would take longer. */
import type { SqlValue, Store } from '../../../platform/store/store.ts'
import { OWNER, type OwnedBranch, ownerOf } from './branch-heads.ts'
import type { Key, Scan } from './key-search.ts'

/** Of a tag's entries only the partition with the event is read, and no other index. */
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
  return rows.map((row) => ({
    seq: Number(row['seq']),
    tx: Number(row['tx']),
    timestamp_us: Number(row['timestamp_us']),
  }))
}
