/** Events: their index, their retention, and the operations that read them. */
import type { Area } from '../../area.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { keptBounds } from '../../platform/store/kept-days.ts'
import type { EventFollower } from './follower.ts'
import { createEventRetention, removeEventsOf } from './kept/event-retention.ts'
import { createEventPartitions } from './kept/partitions.ts'
import { eventRoutes } from './routes.ts'
import { indexEvents } from './search/indexing.ts'
import { createEventReader } from './search/query.ts'

/** What is not indexed yet costs a search 1 to 2 us an event. An idle look is two reads by key. */
const INDEX_EVERY_MS = 1_000

/** Partitions are for days. */
const PARTITIONS_EVERY_MS = 10 * MINUTE_MS

/** `followers`: of all areas; retention leaves what they have not read. */
export async function eventsArea(core: Core, followers: readonly EventFollower[]): Promise<Area> {
  const { config, store, domains, clock, log, sealer } = core
  const partitions = createEventPartitions({ store, clock, log, days: config.eventRetentionDays })
  const retention = createEventRetention({
    store,
    clock,
    log,
    days: config.eventRetentionDays,
    bounds: keptBounds(config).events,
    bytesMax: config.eventRetentionBytes,
    followers,
    partitions,
  })
  // The job tries again, and a table that is in use now must not keep a node from its start.
  await partitions.repair().catch((error) => log.error({ err: error }, 'cannot repair partitions of events'))
  await retention.adopt()
  const index = createJob({
    name: 'event-index',
    everyMs: INDEX_EVERY_MS,
    scope: 'claims',
    work: (signal) => indexEvents(store, signal),
  })
  const ahead = createJob({
    name: 'event-partitions',
    everyMs: PARTITIONS_EVERY_MS,
    scope: 'database',
    work: (signal) => partitions.advance(signal),
  })
  return {
    operations: eventRoutes({
      events: createEventReader(store, config.eventRetentionDays * DAY_MS),
      accounts: core.accounts,
      domains,
      clock,
      sealer,
      baseUrl: config.publicUrl,
    }),
    accountDeleted: (accountId, signal) => removeEventsOf(core, accountId, signal),
    // PostgreSQL indexes a row when it is written.
    jobs: store.kind === 'sqlite' ? [retention.job, index] : [retention.job, ahead],
  }
}
