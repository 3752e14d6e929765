/**
 * Events that became final since the first page of an ascending list, in commit order. They are few in a list that ends
 * in the past, so there is no index of them per account: the keys of all accounts are read, a bounded number at a time.
 */

import type { Store } from '../../platform/store/store.ts'
import type { Scan } from '../events/search/key-search.ts'
import type { CommitPosition, Gap } from '../events/search/page-request.ts'
import { gapAbove, gapBelow, type KeyPage } from '../events/search/walk.ts'

/** About a millisecond. */
const KEYS_PER_READ = 1_000

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
    const key = { seq: Number(row['seq']), tx: Number(row['tx']), timestamp_us: Number(row['timestamp_us']) }
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
