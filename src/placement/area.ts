/** Inbox placement: test messages to the operator's own mailboxes at receivers, and where they end up. */
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { DAY_MS } from '../events/event-retention.ts'
import { createJob } from '../jobs/job.ts'
import type { AcceptParts } from '../messages/acceptance/accept.ts'
import { createSeedLists } from './lists.ts'
import { lookEveryMs, readMailboxes } from './reading.ts'
import { placementRoutes } from './routes.ts'
import { loadSeeds } from './seeds.ts'
import { removeTests } from './store.ts'

const KEPT_MS = 90 * DAY_MS
const REMOVE_EVERY_MS = 3_600_000

/** @throws SeedFileError when the operator's file has faults */
export function placementArea(core: Core, { accept }: { accept: AcceptParts }): Area {
  const { config, store, clock, log, domains } = core
  const seeds = loadSeeds(config.placementSeedsFile)
  if (seeds.all.length > 0) log.info({ seeds: seeds.all.length }, 'mailboxes for tests of inbox placement')
  const lists = createSeedLists({ store, clock, host: config.hostname.toLowerCase() })
  const reading = createJob({
    name: 'placement-reading',
    everyMs: lookEveryMs(config.placementWaitMs),
    scope: 'database',
    async work(signal) {
      await readMailboxes({ store, clock, log, seeds, waitMs: config.placementWaitMs }, signal)
    },
  })
  const removal = createJob({
    name: 'placement-retention',
    everyMs: REMOVE_EVERY_MS,
    scope: 'database',
    work: (signal) =>
      removeTests(store, { sql: 'created_at < ?', values: [Math.floor(clock.now() - KEPT_MS)] }, signal),
  })
  return {
    operations: placementRoutes({
      ...{ store, clock, domains, accept, seeds, lists, baseUrl: config.publicUrl },
      wake: () => reading.wake(),
    }),
    jobs: [reading, removal],
    async accountDeleted(accountId, signal) {
      await removeTests(store, { sql: 'account_id = ?', values: [accountId] }, signal)
      await store.db.deleteFrom('seed_lists').where('account_id', '=', accountId).execute()
    },
  }
}
