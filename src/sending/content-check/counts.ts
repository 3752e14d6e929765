/**
 * How much mail of each account and domain was checked, and how much of it was bad: kept in memory, written every ten
 * seconds and at the end. A crash loses the last seconds.
 */
import type { Clock, Timer } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { Statement, Store } from '../../platform/store/store.ts'

export interface CheckFigure {
  accountId: string
  domain: string
  checked: number
  /** Tagged, held or refused. */
  bad: number
}

export type CheckCounts = ReturnType<typeof createCheckCounts>

const WRITE_EVERY_MS = 10 * SECOND_MS
/** Accounts and domains counted between two writes; further ones are not counted. */
const KEYS_MAX = 20_000
const KEPT_MS = 31 * DAY_MS
/** Accounts in one query. */
const ACCOUNTS_MAX = 500

const KEY = 'account_id, hour, domain_name'
const ADD = `INSERT INTO content_checks (${KEY}, checked, bad) VALUES (?, ?, ?, ?, ?) ON CONFLICT (${KEY})
  DO UPDATE SET checked = content_checks.checked + excluded.checked, bad = content_checks.bad + excluded.bad`

export function createCheckCounts(store: Store, clock: Clock) {
  let counts = new Map<string, CheckFigure & { hour: number }>()
  let timer: Timer | null = null

  async function write(): Promise<void> {
    timer = null
    const batch = [...counts.values()]
    counts = new Map()
    if (batch.length === 0) return
    const statements: Statement[] = batch.map(({ accountId, hour, domain, checked, bad }) => ({
      sql: ADD,
      values: [accountId, hour, domain, checked, bad],
    }))
    await store.commit(statements)
  }

  return {
    /** One message more. */
    add(accountId: string, domain: string, isBad: boolean): void {
      const hour = Math.floor(clock.now() / HOUR_MS) * HOUR_MS
      const key = `${hour} ${accountId} ${domain}`
      const known = counts.get(key)
      if (known) {
        known.checked++
        if (isBad) known.bad++
      } else if (counts.size < KEYS_MAX)
        counts.set(key, { accountId, domain, hour, checked: 1, bad: isBad ? 1 : 0 })
      timer ??= clock.setTimer(WRITE_EVERY_MS, () => void write().catch(() => {}))
    },
    /** What the outbound check said of mail of these accounts since a time, which counts from the start of its hour. */
    async figures(accountIds: readonly string[], sinceMs: number): Promise<readonly CheckFigure[]> {
      const since = Math.floor(sinceMs / HOUR_MS) * HOUR_MS
      const found: CheckFigure[] = []
      for (let at = 0; at < accountIds.length; at += ACCOUNTS_MAX) {
        const ids = accountIds.slice(at, at + ACCOUNTS_MAX)
        const rows = await store.read({
          sql: `SELECT account_id, domain_name, sum(checked) AS checked, sum(bad) AS bad FROM content_checks
            WHERE account_id IN (${ids.map(() => '?').join(', ')}) AND hour >= ? GROUP BY account_id, domain_name`,
          values: [...ids, since],
        })
        for (const row of rows)
          found.push({
            accountId: String(row['account_id']),
            domain: String(row['domain_name']),
            checked: Number(row['checked']),
            bad: Number(row['bad']),
          })
      }
      return found
    },
    async removeOld(now: number): Promise<void> {
      await store.commit([
        { sql: 'DELETE FROM content_checks WHERE hour < ?', values: [Math.floor(now - KEPT_MS)] },
      ])
    },
    async close(): Promise<void> {
      timer?.cancel()
      await write()
    },
  }
}
