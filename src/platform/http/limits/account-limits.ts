/** Rate limits of single accounts (auth-limits.md section 6): all of them are in memory, and read again every few seconds. */
import { BadRequest } from '../../../base/process/errors.ts'
import { createJob, type Job } from '../../jobs/job.ts'
import type { Store } from '../../store/store.ts'
import type { LimitName } from './rate-limit.ts'

/** Those whose subject is the account. */
export const ACCOUNT_LIMITS = [
  'sending',
  'sending-recipients',
  'sending-bytes',
  'domains',
  'analytics',
  'lists',
] as const satisfies readonly LimitName[]
export type AccountLimitName = (typeof ACCOUNT_LIMITS)[number]

export interface AccountLimits {
  /** Undefined: the general limit. 0: off. */
  countOf(name: LimitName, accountId: string): number | undefined
  /** Null: the general limit. In other processes after a few seconds. @throws BadRequest for too many */
  set(name: AccountLimitName, accountId: string, count: number | null): Promise<void>
  readonly refresh: Job
}

const REFRESH_MS = 5_000
const TOPIC = 'account-rate-limits'
/** 2 MB in memory. */
const LIMITS_MAX = 10_000

const keyOf = (name: LimitName, accountId: string) => `${name} ${accountId}`

export async function openAccountLimits(store: Store): Promise<AccountLimits> {
  let counts: ReadonlyMap<string, number> = new Map()

  async function load(): Promise<void> {
    const rows = await store.db
      .selectFrom('account_rate_limits')
      .selectAll()
      .orderBy('account_id')
      .orderBy('name')
      .limit(LIMITS_MAX)
      .execute()
    counts = new Map(rows.map((row) => [keyOf(row.name as LimitName, row.account_id), Number(row.count)]))
  }

  store.changes.follow(TOPIC, load)
  await load()
  return {
    countOf: (name, accountId) => counts.get(keyOf(name, accountId)),
    async set(name, accountId, count) {
      if (count !== null && counts.size >= LIMITS_MAX && !counts.has(keyOf(name, accountId)))
        throw new BadRequest(`Only ${LIMITS_MAX} limits of accounts are allowed`)
      await store.commit([
        count === null
          ? {
              sql: 'DELETE FROM account_rate_limits WHERE account_id = ? AND name = ?',
              values: [accountId, name],
            }
          : {
              sql: `INSERT INTO account_rate_limits (account_id, name, count) VALUES (?, ?, ?)
                ON CONFLICT (account_id, name) DO UPDATE SET count = excluded.count`,
              values: [accountId, name, count],
            },
      ])
      await load()
      void store.changes.announce(TOPIC, '')
    },
    refresh: createJob({ name: 'account-rate-limits', everyMs: REFRESH_MS, scope: 'process', work: load }),
  }
}
