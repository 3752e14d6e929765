/** Rate limits: those of single accounts, and the upkeep of buckets that processes share. The limiter is in the core. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { limitsOf } from '../../platform/http/limits/rate-limit.ts'
import { bucketRetention } from '../../platform/http/limits/shared-rate-limit.ts'
import { rateLimitRoutes } from './routes.ts'

export function rateLimitsArea({ config, store, accounts, accountLimits }: Core): Area {
  const limits = limitsOf(config)
  return {
    operations: rateLimitRoutes({ accountLimits, limits, accounts }),
    async accountDeleted(accountId) {
      const sql = 'DELETE FROM account_rate_limits WHERE account_id = ?'
      await store.commit([{ sql, values: [accountId] }])
    },
    jobs: [accountLimits.refresh, ...(store.kind === 'postgres' ? [bucketRetention(store)] : [])],
  }
}
