/** Event sinks: all events, sent to brokers, warehouses and log collectors as they happen. */
import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { createFollowing } from './following.ts'
import { createKnownSinks, type KnownSinks } from './known-sinks.ts'
import { sinkRoutes } from './routes.ts'

export interface EventSinksArea extends Area {
  known: Pick<KnownSinks, 'list' | 'behindMs'>
}

export function eventSinksArea(core: Core): EventSinksArea {
  const known = createKnownSinks(core)
  const following = createFollowing({ ...core, known })
  const job = createJob({
    name: 'event-sinks',
    everyMs: MINUTE_MS,
    scope: 'database',
    work: (signal) => following.turn(signal),
  })
  return {
    known,
    operations: sinkRoutes({ known, changed: () => job.wake() }),
    jobs: [job],
    stop: () => following.stop(),
  }
}
