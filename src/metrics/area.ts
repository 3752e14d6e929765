/** Statistics: what counts events, and the operations that read the figures. */
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { createJob } from '../jobs/job.ts'
import { createCounting } from './counting.ts'
import { removeCountersOf, removeCountersOfAccount, removeOldCounters } from './removal.ts'
import { statsRoutes } from './routes.ts'

/**
 * Figures include an event within 5 seconds (tags-stats.md section 6). An idle look is three reads by key; a wake-up
 * would be the duty of every writer of events, on every node.
 */
const COUNT_EVERY_MS = 1_000
const REMOVE_EVERY_MS = 3_600_000

export function metricsArea({ store, domains, clock }: Core): Area {
  const counting = createCounting(store, clock)
  return {
    operations: statsRoutes({ store, domains, clock }),
    jobs: [
      createJob({
        name: 'counters',
        everyMs: COUNT_EVERY_MS,
        // A step names the position it began at, so that of several processes one takes it.
        scope: 'process',
        work: (signal) => counting.run(signal),
      }),
      createJob({
        name: 'counter-retention',
        everyMs: REMOVE_EVERY_MS,
        scope: 'database',
        work: (signal) => removeOldCounters(store, clock.now(), signal),
      }),
    ],
    follower: counting.follower,
    domainDeleted: (domain) => removeCountersOf(store, domain),
    accountDeleted: (accountId, signal) => removeCountersOfAccount({ store, clock }, accountId, signal),
  }
}
