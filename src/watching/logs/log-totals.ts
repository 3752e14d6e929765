/** Counts of a whole list of logs, for `include_totals`. */
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import type { LogPlan } from './log-plan.ts'

export interface LogTotals {
  all: number
  /** By name of event; those without any are left out. */
  metrics: Record<string, number>
  /** There are more: the counts are what was found before the limit. */
  partial?: true
}

/** Entries of the index that one request counts: 10 ms of SQLite's only reader. */
const COUNT_MAX = 50_000
/** The same where each entry's row is read for its account. */
const COUNT_OF_DOMAINS_MAX = 4_000

/** Counts what an exact plan finds, from the index alone. */
export async function countExact(
  store: Store,
  plan: LogPlan,
  lowUs: number,
  highUs: number,
): Promise<LogTotals> {
  if (plan.branches.length === 0) return { all: 0, metrics: {} }
  const most = plan.domainNames === null ? COUNT_MAX : COUNT_OF_DOMAINS_MAX
  const rows = await store.read(countQuery(store, plan, [lowUs, highUs], most))
  return totalsOf(
    rows.map((row) => [String(row['event']), Number(row['count'])]),
    most,
  )
}

function totalsOf(counts: readonly (readonly [event: string, count: number])[], most: number): LogTotals {
  const all = counts.reduce((sum, [, count]) => sum + count, 0)
  const metrics = Object.fromEntries(counts)
  return all > most ? { all, metrics, partial: true } : { all, metrics }
}

/** An index range for each account, or domain, and event. Both databases keep to that order of the joins. */
function countQuery(
  { kind }: Store,
  plan: LogPlan,
  range: [lowUs: number, highUs: number],
  most: number,
): Statement {
  const isByDomain = plan.domainNames !== null
  const column = isByDomain ? 'domain_name' : 'account_id'
  const owners = JSON.stringify(plan.domainNames ?? plan.accountIds)
  const names = JSON.stringify(plan.events ?? [])
  const accounts = JSON.stringify(plan.accountIds)
  const list = kind === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const inScope = isByDomain ? `AND account_id || '' IN (SELECT value FROM ${list})` : ''
  const scope: SqlValue[] = isByDomain ? [accounts] : []
  const matches = `${column} = owners.value AND event = names.value AND timestamp_us BETWEEN ? AND ? ${inScope}`
  if (kind === 'postgres') {
    return {
      sql: `SELECT event, count(*) AS count FROM (
          SELECT names.value AS event FROM ${list} AS owners CROSS JOIN ${list} AS names
            CROSS JOIN LATERAL (SELECT 1 FROM events WHERE ${matches} OFFSET 0) AS keys
          LIMIT ?) AS found GROUP BY event`,
      values: [owners, names, ...range, ...scope, most + 1],
    }
  }
  return {
    sql: `SELECT event, count(*) AS count FROM (
        SELECT names.value AS event FROM ${list} AS owners CROSS JOIN ${list} AS names CROSS JOIN event_index
          WHERE ${matches}
        UNION ALL
        SELECT event FROM events WHERE seq > (SELECT seq FROM event_index_place)
          AND ${column} IN (SELECT value FROM ${list}) AND event IN (SELECT value FROM ${list})
          AND timestamp_us BETWEEN ? AND ? ${inScope}
        LIMIT ?) GROUP BY event`,
    values: [owners, names, ...range, ...scope, owners, names, ...range, ...scope, most + 1],
  }
}

/** Counts what a walk found; `more`: it ended before the list did. */
export function countFound(names: readonly string[], more: boolean): LogTotals {
  const metrics: Record<string, number> = {}
  for (const name of names) metrics[name] = (metrics[name] ?? 0) + 1
  return { all: names.length, metrics, ...(more && { partial: true as const }) }
}
