/** Expired keys stay in the list for a while, so that people see why a client stopped; then they are removed. */

import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { Store } from '../../platform/store/store.ts'
import type { OnDomainDeleted } from '../../sending/domains/deletion.ts'

/** accounts.md section 4 rule 8. */
const EXPIRED_KEYS_KEPT_MS = 30 * DAY_MS
const EVERY_MS = HOUR_MS
/** Removed at a time: each takes its sessions and links with it. */
const STEP_ROWS = 500

export function keyRetention(store: Store, clock: Clock): Job {
  const sql = `DELETE FROM api_keys WHERE id IN
    (SELECT id FROM api_keys WHERE expires_at < ? ORDER BY expires_at LIMIT ${STEP_ROWS})`
  return createJob({
    name: 'key-retention',
    everyMs: EVERY_MS,
    scope: 'database',
    async work() {
      const [result] = await store.commit([{ sql, values: [Math.floor(clock.now() - EXPIRED_KEYS_KEPT_MS)] }])
      return (result?.affected ?? 0) === STEP_ROWS ? 'more' : undefined
    },
  })
}

/** Removes the sending keys of a deleted domain: creating a domain under its name again must not revive them. */
export function removeSendingKeys(store: Store): OnDomainDeleted {
  return async (domain) => {
    await store.db
      .deleteFrom('api_keys')
      .where('account_id', '=', domain.accountId)
      .where('kind', '=', 'domain')
      .where('domain_name', '=', domain.name)
      .execute()
  }
}
