/**
 * Limits of what is no mail, such as tests of inbox placement: how many an account, a subaccount or a domain may use in a
 * period (alerts.md section 7). They are checked and counted in the transaction of what is used.
 */
import { Forbidden } from '../../base/process/errors.ts'
import { message, type Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { accountLockStatements } from '../../platform/store/account-rows.ts'
import { insert, StaleWrite, type Statement } from '../../platform/store/store.ts'
import { matches } from '../metrics/filter.ts'
import { type Alert, alertOfRow, alertView, type ParentId, periodMs } from './alert.ts'
import type { AlertStore } from './alert-store.ts'
import { givenLimit } from './given-alert.ts'
import { type LIMIT_METRICS, USAGE_LIMIT, USAGE_LIMIT_BODY, USAGE_LIMITS } from './shapes.ts'

export type LimitMetric = (typeof LIMIT_METRICS)[number]
type UsageLimit = Alert<LimitMetric>

interface Use {
  accountId: string
  domain: string
  metric: LimitMetric
}

export type UsageLimits = ReturnType<typeof createUsageLimits>

interface LimitParts extends Pick<Core, 'store' | 'clock'> {
  accounts: Pick<AccountDirectory, 'byId'>
}

export function createUsageLimits({ store, accounts, clock }: LimitParts) {
  /** Limits that hold for the use: of the account, and of its parent where they speak of subaccounts. */
  async function limitsFor({ accountId, domain, metric }: Use): Promise<UsageLimit[]> {
    const parentId = (await accounts.byId(accountId))?.parentId ?? null
    const rows = await store.db
      .selectFrom('usage_limits')
      .selectAll()
      .where('account_id', 'in', parentId === null ? [accountId] : [accountId, parentId])
      .where('metric', '=', metric)
      .execute()
    const values = { domain, subaccount: accountId } as Record<string, string>
    return rows
      .map((row) => alertOfRow<LimitMetric>(row))
      .filter(
        ({ accountId: owner, dimension, filters }) =>
          (owner === accountId ||
            [dimension, ...filters.map((one) => one.dimension)].includes('subaccount')) &&
          filters.every((one) =>
            matches({ ...one, attribute: one.dimension }, values[one.dimension] ?? 'none'),
          ),
      )
  }

  return {
    /** What is to be committed with the use. @throws nothing by itself: `checked` does */
    async of(use: Use): Promise<{
      statements: readonly Statement[]
      /** Runs a commit that has the statements. @throws Forbidden if a limit is reached */
      checked<T>(commit: () => Promise<T>): Promise<T>
    }> {
      const now = Math.floor(clock.now())
      const limits = await limitsFor(use)
      const rooms = new Map(limits.map((limit) => [roomStatement(limit, use, now), limit]))
      // Subaccounts share the limits of their parent.
      const owners = new Set(limits.map(({ accountId }) => accountId).filter((id) => id !== use.accountId))
      return {
        statements: [
          ...[...owners].flatMap((id) => accountLockStatements(store, id)),
          ...rooms.keys(),
          ...limits.map(({ id }) => ({
            sql: 'UPDATE usage_limits SET last_checked_at = ? WHERE id = ?',
            values: [now, id],
          })),
        ],
        async checked(commit) {
          try {
            return await commit()
          } catch (error) {
            const limit = error instanceof StaleWrite ? rooms.get(error.statement as Statement) : undefined
            if (limit === undefined) throw error
            throw new Forbidden(
              `limit "${limit.name}" is reached: ${limit.metric} ${limit.comparator} ${limit.limit} in ${limit.period}`,
            )
          }
        },
      }
    },
    /** Counts it. */
    countStatements({ accountId, domain, metric }: Use): Statement[] {
      const hour_at = Math.floor(clock.now() / HOUR_MS) * HOUR_MS
      const { sql, values } = insert('usage_hours', {
        ...{ account_id: accountId, metric, hour_at, domain_name: domain, count: 1 },
      })
      const add = `ON CONFLICT (account_id, metric, hour_at, domain_name)
        DO UPDATE SET count = usage_hours.count + excluded.count`
      return [{ sql: `${sql} ${add}`, values }]
    },
  }
}

/** Rolls its unit back unless there is room. The period begins with the hour that it begins in, as that of alerts. */
function roomStatement(limit: UsageLimit, { accountId, domain, metric }: Use, now: number): Statement {
  const since = Math.floor((now - periodMs(limit.period)) / HOUR_MS) * HOUR_MS
  const ofDomain = limit.dimension === 'domain'
  return {
    sql: `SELECT 1 AS room WHERE (SELECT COALESCE(sum(count), 0) FROM usage_hours
      WHERE account_id = ? AND metric = ? AND hour_at >= ? ${ofDomain ? 'AND domain_name = ?' : ''}) < ?`,
    values: [accountId, metric, since, ...(ofDomain ? [domain] : []), roomOf(limit)],
    expectRows: 1,
  }
}

/**
 * How many may be used. `>`, `>=` and `=` name what is too much, the others what is allowed: `>= 50` and `< 50` both leave
 * 50, `> 50` and `<= 50` one more.
 */
export const roomOf = ({ comparator, limit }: Pick<UsageLimit, 'comparator' | 'limit'>): number =>
  Number(limit) + (comparator === '>' || comparator === '<=' ? 1 : 0)

/** Longer than any period. */
const KEPT_MS = 31 * DAY_MS

export const usageRetention = ({ store, clock }: Pick<LimitParts, 'store' | 'clock'>): Job =>
  createJob({
    name: 'usage-hour-retention',
    everyMs: HOUR_MS,
    scope: 'database',
    async work() {
      const before = Math.floor(clock.now() - KEPT_MS)
      await store.db.deleteFrom('usage_hours').where('hour_at', '<', before).execute()
    },
  })

const PATH = '/v1/thresholds/limits'
const ONE = `${PATH}/{name}` as const
const api = operationsOf({ tag: 'Limits', auth: { area: 'alerts' }, rateLimit: 'analytics' })
const GIVEN = ['name', 'metric', 'comparator', 'limit', 'dimension', 'period']

export function usageLimitRoutes(
  limits: AlertStore<LimitMetric>,
  parentOf: (accountId: string) => Promise<ParentId>,
  clock: Clock,
): Operation[] {
  const viewOf = async (limit: UsageLimit): Promise<Of<typeof USAGE_LIMIT>> => {
    const { alert_channels: _, ...view } = alertView(limit, await parentOf(limit.accountId))
    return view
  }
  return [
    api.get(PATH, {
      id: 'listUsageLimits',
      summary: 'List the limits of usage of the account and its subaccounts',
      answers: { 200: USAGE_LIMITS },
      async handler({ caller }) {
        const found = await limits.list(caller.accountId)
        return { items: await Promise.all(found.alerts.map(viewOf)), total: found.total }
      },
    }),
    api.post(PATH, {
      id: 'createUsageLimit',
      audit: { given: GIVEN, made: ['id'] },
      summary: 'Limit usage, such as tests of inbox placement',
      body: USAGE_LIMIT_BODY,
      answers: { 200: USAGE_LIMIT },
      handler: async ({ params, caller }) =>
        viewOf(await limits.create(caller.accountId, givenLimit(params.json()), Math.floor(clock.now()))),
    }),
    api.get(ONE, {
      id: 'readUsageLimit',
      summary: 'Read one limit of usage',
      answers: { 200: USAGE_LIMIT },
      handler: async ({ path, caller }) => viewOf(await limits.find(caller.accountId, path.name)),
    }),
    api.put(ONE, {
      id: 'replaceUsageLimit',
      audit: { given: GIVEN },
      summary: 'Replace a limit of usage; absent members return to their defaults',
      body: USAGE_LIMIT_BODY,
      answers: { 200: message('Limit updated', 'Replaced') },
      async handler({ params, path, caller }) {
        const limit = await limits.find(caller.accountId, path.name)
        await limits.replace(limit, givenLimit(params.json()), Math.floor(clock.now()))
        return { message: 'Limit updated' }
      },
    }),
    api.delete(ONE, {
      id: 'deleteUsageLimit',
      summary: 'Delete a limit of usage',
      answers: { 200: message('Limit deleted', 'Deleted') },
      async handler({ path, caller }) {
        await limits.remove(await limits.find(caller.accountId, path.name))
        return { message: 'Limit deleted' }
      },
    }),
  ]
}
