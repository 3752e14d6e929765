/**
 * Usage of what is no mail, such as validations of addresses: rows by account, day and metric, which the areas add to in
 * the transaction of what they count. They are kept as long as the account.
 */

import { DAY_MS } from '../../base/time/durations.ts'
import { inList } from '../../platform/store/lists.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { noCounts } from './counters.ts'
import type { FigureQuery, FigureRow } from './figures.ts'
import { matches } from './filter.ts'
import { startOf } from './intervals.ts'

/** Adds to the counts of the day of `now` (Unix milliseconds); zeros write nothing. */
export function usageStatements(
  accountId: string,
  now: number,
  counts: Readonly<Record<string, number>>,
): Statement[] {
  const day = Math.floor(now / DAY_MS) * DAY_MS
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([metric, count]) => ({
      sql: `INSERT INTO feature_usage (account_id, day_at, metric, count) VALUES (?, ?, ?, ?)
        ON CONFLICT (account_id, day_at, metric) DO UPDATE SET count = feature_usage.count + excluded.count`,
      values: [accountId, day, metric, count],
      lockKey: `usage ${accountId} ${day} ${metric}`,
    }))
}

/** Adds the usage to rows of figures by `subaccount` and `time`, and rows where there are none. */
export async function addUsage(store: Store, query: FigureQuery, rows: FigureRow[]): Promise<void> {
  const { startMs, endMs, resolution, dimensions, filter } = query
  // Usage belongs to an account and to nothing else that can be named.
  if (filter.some(({ attribute }) => attribute !== 'subaccount')) return
  const accountIds = query.accountIds.filter((id) => filter.every((entry) => matches(entry, id)))
  if (accountIds.length === 0) return
  const days = await store.db
    .selectFrom('feature_usage')
    .select(['account_id', 'day_at', 'metric', 'count'])
    .where('account_id', 'in', inList(store, accountIds))
    .where('day_at', '>=', startOf(resolution, startMs))
    .where('day_at', '<', endMs)
    .execute()
  const known = new Map(rows.map((row) => [row.values.join('\n'), row]))
  for (const { account_id, day_at, metric, count } of days) {
    const values = dimensions.map((name) =>
      name === 'time' ? String(startOf(resolution, Number(day_at))) : account_id,
    )
    const key = values.join('\n')
    const row = known.get(key)
    const usage: Record<string, number> = { ...row?.usage }
    usage[metric] = (usage[metric] ?? 0) + Number(count)
    if (row) row.usage = usage
    else {
      const added = { values, counts: noCounts(), usage }
      rows.push(added)
      known.set(key, added)
    }
  }
}
