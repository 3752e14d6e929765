/** Statistics: what counts events, and the operations that read the figures. */
import type { Area } from '../../area.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { IsRateLimit } from './counters.ts'
import { createCounting, type NewStepCount } from './counting.ts'
import type { Figures } from './figures.ts'
import { metricsRoutes } from './routes.ts'
import { sharedFigureRoutes } from './shared/routes.ts'
import { createSharedFigures } from './shared/store.ts'
import { groupRoutes } from './stats/group-routes.ts'
import { statsRoutes } from './stats/routes.ts'
import { createFigureStore, type FigureStore } from './storage/figure-store.ts'

/**
 * Figures include an event within 5 seconds (tags-stats.md section 6). An idle look is three reads by key; a wake-up
 * would be the duty of every writer of events, on every node. Much mail is counted less often, because more events at a
 * time write fewer rows for each (decision 110).
 */
const COUNT_EVERY_MS = { usually: 1_000, busy: 3_000 }
/** Events of a run from which on it is busy. */
const BUSY_FROM = 1_000
const REMOVE_EVERY_MS = HOUR_MS

interface MetricsArea extends Area, Pick<FigureStore, 'countArchived'> {
  figures: Figures
}

export function metricsArea(
  { store, domains, accounts, clock, sealer, config }: Core,
  { isRateLimit, also }: { isRateLimit: IsRateLimit; also: NewStepCount },
): MetricsArea {
  const figures = createFigureStore(store)
  const counting = createCounting(store, clock, isRateLimit, figures, undefined, also)
  const parts = { store, figures, domains, accounts, clock }
  const shared = createSharedFigures({ store, sealer, clock })
  return {
    figures,
    countArchived: figures.countArchived,
    operations: [
      ...sharedFigureRoutes({ ...parts, shared, publicUrl: config.publicUrl }),
      ...metricsRoutes(parts),
      ...statsRoutes(parts),
      ...groupRoutes(parts),
    ],
    jobs: [
      createJob({
        name: 'counters',
        everyMs: COUNT_EVERY_MS.busy,
        retryMs: COUNT_EVERY_MS.usually,
        // A step names the position it began at, so that of several processes one takes it.
        scope: 'claims',
        async work(signal) {
          const counted = await counting.run(signal)
          if (counted < BUSY_FROM) return { againInMs: COUNT_EVERY_MS.usually }
        },
      }),
      createJob({
        name: 'counter-retention',
        everyMs: REMOVE_EVERY_MS,
        scope: 'database',
        work: (signal) => figures.keep(clock.now(), signal),
      }),
      createJob({
        name: 'shared-figure-retention',
        everyMs: REMOVE_EVERY_MS,
        scope: 'database',
        work: shared.removeExpired,
      }),
    ],
    follower: counting.follower,
    domainDeleted: (domain) => figures.remove(domain),
    async accountDeleted(accountId) {
      await figures.remove({ accountId })
      await shared.removeOf(accountId)
      await store.db.deleteFrom('feature_usage').where('account_id', '=', accountId).execute()
    },
  }
}
