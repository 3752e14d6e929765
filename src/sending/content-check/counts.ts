/**
 * How much mail of each account and domain was checked, and how much of it was bad: kept in memory, written every ten
 * seconds and at the end. A crash loses the last seconds; what the database does not take is written with the next ones.
 */
import type { Timer } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { inPortions, PORTION } from '../../platform/store/account-rows.ts'
import type { Statement } from '../../platform/store/store.ts'

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
/** Rows in one transaction. */
const WRITTEN_AT_A_TIME = PORTION
/** Accounts in one query. */
const ACCOUNTS_MAX = 500

const KEY = 'account_id, hour, domain_name'
const REMOVE = `DELETE FROM content_checks WHERE (${KEY}) IN
  (SELECT ${KEY} FROM content_checks WHERE hour < ? LIMIT ${PORTION})`
const ADD = `INSERT INTO content_checks (${KEY}, checked, bad) VALUES (?, ?, ?, ?, ?) ON CONFLICT (${KEY})
  DO UPDATE SET checked = content_checks.checked + excluded.checked, bad = content_checks.bad + excluded.bad`

type Counted = CheckFigure & { hour: number }

const addition = ({ accountId, hour, domain, checked, bad }: Counted): Statement => ({
  sql: ADD,
  values: [accountId, hour, domain, checked, bad],
})

export function createCheckCounts({ store, clock, log }: Pick<Core, 'store' | 'clock' | 'log'>) {
  let counts = new Map<string, Counted>()
  let timer: Timer | null = null

  async function write(): Promise<void> {
    timer = null
    // In one order on all nodes: else two of them could each wait for a row of the other.
    const batch = [...counts].sort(([one], [other]) => (one < other ? -1 : 1))
    counts = new Map()
    for (let from = 0; from < batch.length; from += WRITTEN_AT_A_TIME) {
      try {
        await store.commit(
          batch.slice(from, from + WRITTEN_AT_A_TIME).map(([, counted]) => addition(counted)),
        )
      } catch (error) {
        for (const [key, counted] of batch.slice(from)) merge(key, counted)
        throw error
      }
    }
  }

  function merge(key: string, counted: Counted): void {
    const known = counts.get(key)
    if (known) {
      known.checked += counted.checked
      known.bad += counted.bad
    } else if (counts.size < KEYS_MAX) counts.set(key, counted)
    timer ??= clock.setTimer(WRITE_EVERY_MS, () => {
      // It is counted again, and written with what comes next.
      write().catch((error: unknown) => log.warn({ err: error }, 'cannot write counts of the content check'))
    })
  }

  return {
    /** One message more. */
    add(accountId: string, domain: string, isBad: boolean): void {
      const hour = Math.floor(clock.now() / HOUR_MS) * HOUR_MS
      const key = `${hour} ${accountId} ${domain}`
      merge(key, { accountId, domain, hour, checked: 1, bad: isBad ? 1 : 0 })
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
    removeOld: (signal: AbortSignal) =>
      inPortions({ store, clock }, REMOVE, [Math.floor(clock.now() - KEPT_MS)], signal),
    async close(): Promise<void> {
      timer?.cancel()
      await write()
      timer?.cancel()
    },
  }
}
