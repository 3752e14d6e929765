/** Which accounts and events to read first for a page over many accounts. */
import type { Store } from '../store/store.ts'
import type { Scan } from './key-search.ts'
import type { Branch } from './plan.ts'

export type AccountBranch = Extract<Branch, { by: 'account' }>
/** With the time of its first event, in microseconds. */
export type AccountHead = AccountBranch & { headUs: number }

/**
 * The scan's branches that have an event after its gap, in the order of their first ones. So a page over a thousand
 * accounts reads pages of few of them.
 */
export async function accountHeads(store: Store, scan: Scan): Promise<AccountHead[]> {
  const { request, lowUs, highUs, gap } = scan
  const branches = scan.plan.branches as readonly AccountBranch[]
  const accounts = JSON.stringify([...new Set(branches.map(({ accountId }) => accountId))])
  const names = JSON.stringify([...new Set(branches.map(({ event }) => event))])
  const gapUs = gap?.in === 'settled' ? gap.us : request.up ? lowUs : highUs
  const range = request.up ? [Math.max(lowUs, gapUs), highUs] : [lowUs, Math.min(highUs, gapUs)]
  // Unindexed events first: one that is indexed meanwhile is found twice instead of missed.
  const rows: Record<string, unknown>[] = []
  if (store.kind === 'sqlite') {
    rows.push(...(await store.read({ sql: unindexedHeads(request.up), values: [...range, accounts, names] })))
  }
  rows.push(
    ...(await store.read({ sql: indexedHeads(store, request.up), values: [...range, accounts, names] })),
  )
  const heads = new Map<string, AccountHead>()
  const isBefore = (a: AccountHead, b: AccountHead) =>
    request.up ? a.headUs < b.headUs : a.headUs > b.headUs
  for (const row of rows) {
    const [accountId, event] = [String(row['account_id']), String(row['event'])]
    const head: AccountHead = { by: 'account', accountId, event, headUs: Number(row['head']) }
    const known = heads.get(`${accountId} ${event}`)
    if (!known || isBefore(head, known)) heads.set(`${accountId} ${event}`, head)
  }
  return [...heads.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1))
}

/** A step in an index for each pair. */
function indexedHeads({ kind }: Store, up: boolean): string {
  const table = kind === 'sqlite' ? 'event_index' : 'events'
  const list = kind === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  return `SELECT * FROM (
    SELECT accounts.value AS account_id, names.value AS event, (SELECT timestamp_us FROM ${table} AS keys
      WHERE keys.account_id = accounts.value AND keys.event = names.value AND timestamp_us BETWEEN ? AND ?
      ORDER BY timestamp_us ${up ? 'ASC' : 'DESC'} LIMIT 1) AS head
    FROM ${list} AS accounts CROSS JOIN ${list} AS names) AS heads
  WHERE head IS NOT NULL`
}

const unindexedHeads = (up: boolean) => `
  SELECT account_id, event, ${up ? 'min' : 'max'}(timestamp_us) AS head FROM events
  WHERE seq > (SELECT seq FROM event_index_place) AND timestamp_us BETWEEN ? AND ?
    AND account_id IN (SELECT value FROM json_each(?)) AND event IN (SELECT value FROM json_each(?))
  GROUP BY account_id, event`
