/** Puts together what counts events, and the statistics. */
import { createTicker, failingOnce } from '../domains/ticker.ts'
import { createCounting } from '../metrics/counting.ts'
import { removeCountersOf, removeOldCounters } from '../metrics/removal.ts'
import { statsRoutes } from '../metrics/routes.ts'
import type { Closers, Core } from './core.ts'

/**
 * Counts show within 5 seconds (tags-stats.md section 6). An idle look is three reads by key; waking it instead
 * would be the duty of all who write events, on every node.
 */
const COUNT_EVERY_MS = 1_000
const REMOVE_EVERY_MS = 3_600_000

export function createCounters({ store, domains, clock, log }: Core) {
  const counting = createCounting(store, clock)
  const jobs = [
    createTicker({
      name: 'counters',
      everyMs: COUNT_EVERY_MS,
      clock,
      log,
      work: failingOnce((signal) => counting.run(signal)),
    }),
    createTicker({
      name: 'old-counters',
      everyMs: REMOVE_EVERY_MS,
      clock,
      log,
      work: (signal) => removeOldCounters(store, clock.now(), signal),
    }),
  ]
  return {
    /** Whom retention has to wait for. */
    followers: [counting.follower],
    /** To be called when events that a copied database brought are adopted. */
    start(open: Closers) {
      for (const job of jobs) {
        job.start()
        open.push(() => job.stop())
      }
    },
    forgetDomain: (domain: { accountId: string; name: string }) => removeCountersOf(store, domain),
    routes: statsRoutes({ store, domains, clock }),
  }
}

export type Counters = ReturnType<typeof createCounters>
