/** Inbox placement: test messages to the operator's own mailboxes at receivers, and where they end up. */

import type { Area } from '../../area.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AcceptParts } from '../../mail/accept/accept.ts'
import { type PreviewParts, previewMessage } from '../../mail/accept/preview.ts'
import type { Tracker } from '../../mail/compose/tracker.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { bareAddress } from '../../protocols/mime/address.ts'
import { createOutgoingScorer, type OutgoingScorer } from '../../receiving/routes/spam/outgoing-score.ts'
import type { Scanners } from '../../sending/content-check/scanners.ts'
import type { UsageLimits } from '../../watching/alerts/usage-limits.ts'
import { createSeedLists } from './lists.ts'
import { lookEveryMs, readMailboxes } from './reading.ts'
import { placementRoutes } from './routes.ts'
import { loadSeeds } from './seeds.ts'
import { removeTests } from './store.ts'
import type { TestParts } from './tests.ts'

export const KEPT_MS = 90 * DAY_MS
const REMOVE_EVERY_MS = 3_600_000

interface PlacementUses {
  usageLimits: UsageLimits
  accept: AcceptParts
  /** Stores nothing. */
  tracker: Tracker
  scanners: Scanners
}

/** @throws SeedFileError when the operator's file has faults */
export function placementArea(core: Core, { accept, tracker, scanners, usageLimits }: PlacementUses): Area {
  const { config, store, clock, log, domains, firstAccountId } = core
  const seeds = loadSeeds(config.placementSeedsFile)
  if (seeds.all.length > 0) log.info({ seeds: seeds.all.length }, 'mailboxes for tests of inbox placement')
  const scorer = createOutgoingScorer(scanners, config.hostname)
  const score = scorer && scoreOf({ ...accept, tracker }, scorer, clock)
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
      ...{
        store,
        clock,
        domains,
        accept,
        seeds,
        lists,
        score,
        usageLimits,
        baseUrl: config.publicUrl,
        firstAccountId,
      },
      wake: () => reading.wake(),
    }),
    jobs: [reading, removal],
    async accountDeleted(accountId, signal) {
      await removeTests(store, { sql: 'account_id = ?', values: [accountId] }, signal)
      await store.db.deleteFrom('seed_lists').where('account_id', '=', accountId).execute()
    },
  }
}

/** The score of the copy for the first seed. */
function scoreOf(parts: PreviewParts, scorer: OutgoingScorer, clock: Clock): NonNullable<TestParts['score']> {
  return async (draft, domain) => {
    const { copy } = await previewMessage(parts, draft, domain, clock.now())
    const [first] = draft.recipients
    return copy && first ? scorer(domain, bareAddress(first), copy.sent.message) : null
  }
}
