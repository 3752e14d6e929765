/** Statistics: what counts events, and the operations that read the figures. */
import type { Area } from '../../area.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { IsRateLimit } from './counters.ts'
import { createCounting } from './counting.ts'
import type { Figures } from './figures.ts'
import { metricsRoutes } from './routes.ts'
import { groupRoutes } from './stats/group-routes.ts'
import { statsRoutes } from './stats/routes.ts'
import { type ArchivedCopy, countArchived } from './storage/archived.ts'
import { createFigures } from './storage/figure-reader.ts'
import { keepPacks } from './storage/packing.ts'
import { startPacks } from './storage/places.ts'
import { removeFiguresOf, removeOldCounters } from './storage/removal.ts'
import { rollUp } from './storage/roll-up.ts'
import { Scopes } from './storage/scopes.ts'

/**
 * Figures include an event within 5 seconds (tags-stats.md section 6). An idle look is three reads by key; a wake-up
 * would be the duty of every writer of events, on every node. Much mail is counted less often, because more events at a
 * time write fewer rows for each (decision 110).
 */
const COUNT_EVERY_MS = { usually: 1_000, busy: 3_000 }
/** Events of a run from which on it is busy. */
const BUSY_FROM = 1_000
const REMOVE_EVERY_MS = HOUR_MS

interface MetricsArea extends Area {
  figures: Figures
  /** See archived.ts. */
  countArchived(copy: ArchivedCopy, removal: Statement): Promise<void>
}

export function metricsArea(
  { store, domains, accounts, clock }: Core,
  { isRateLimit }: { isRateLimit: IsRateLimit },
): MetricsArea {
  const scopes = new Scopes(store)
  const counting = createCounting(store, clock, isRateLimit, scopes)
  const figures = createFigures(store)
  const parts = { store, figures, domains, accounts, clock }
  return {
    figures,
    countArchived: (copy, removal) => countArchived(store, copy, removal, scopes),
    operations: [...metricsRoutes(parts), ...statsRoutes(parts), ...groupRoutes(parts)],
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
        async work(signal) {
          await rollUp(store, clock.now(), signal)
          await removeOldCounters(store, clock.now(), signal)
          await store.commit([startPacks])
          await keepPacks(store, clock.now(), signal)
        },
      }),
    ],
    follower: counting.follower,
    domainDeleted: (domain) => removeFiguresOf(store, domain),
    async accountDeleted(accountId) {
      await removeFiguresOf(store, { accountId })
      await store.db.deleteFrom('feature_usage').where('account_id', '=', accountId).execute()
    },
  }
}
