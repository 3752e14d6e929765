/**
 * Dynamic pools: domains send from the addresses of the band that periodic checks of their figures put them in. What a
 * domain sends from is read by `sending/ips/choice.ts`; this area changes it.
 */

import type { Area } from '../../area.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Figures } from '../../watching/metrics/figures.ts'
import type { IpsArea } from '../ips/area.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { accountRemoval } from './account-removal.ts'
import { createBulkEnrolment } from './bulk-enrolment.ts'
import { createContents } from './contents.ts'
import { enrolmentRoutes } from './enrolment-routes.ts'
import { createEnrolments } from './enrolments.ts'
import { createHealthChecks } from './health-checks.ts'
import { removeOldRecords } from './history.ts'
import { listRoutes } from './list-routes.ts'
import { poolRoutes } from './pool-routes.ts'

interface DynamicPoolUses extends Pick<IpsArea, 'assigned'> {
  known: KnownAddresses
  figures: Figures
}

/** Rule 19. */
const HISTORY_KEPT_MS = 366 * DAY_MS
const RETENTION_EVERY_MS = HOUR_MS

export function dynamicPoolsArea(core: Core, uses: DynamicPoolUses): Area {
  const { store, clock, config } = core
  const { known } = uses
  const contents = createContents({ clock, ...uses })
  const enrolments = createEnrolments({ ...core, ...uses, config: config.dynamicPools })
  const bulk = createBulkEnrolment({ ...core, owner: core.leaseOwner, known, enrolments })
  const checks = createHealthChecks({ ...core, enrolments })
  return {
    operations: [
      ...poolRoutes({ ...core, known, contents }),
      ...enrolmentRoutes({ ...core, enrolments, bulk, wakeChecks: () => checks.wake() }),
      ...listRoutes({ ...core, baseUrl: config.publicUrl }),
    ],
    jobs: [
      checks,
      bulk.job,
      createJob({
        name: 'dynamic-pool-history-retention',
        everyMs: RETENTION_EVERY_MS,
        scope: 'database',
        work: (signal) => removeOldRecords(store, clock.now() - HISTORY_KEPT_MS, signal),
      }),
    ],
    async domainDeleted({ id }) {
      await store.commit([{ sql: 'DELETE FROM dynamic_pool_domains WHERE domain_id = ?', values: [id] }])
    },
    accountDeleted: accountRemoval(core, known),
  }
}
