/** The check of mail before it is sent, and the scanners that received mail is checked by too (content-check.md). */

import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { removeIndexedRows } from '../../platform/store/account-rows.ts'
import { type ContentCheck, createContentCheck } from './check.ts'
import { type CheckCounts, createCheckCounts } from './counts.ts'
import { createHolds, type Holds } from './holds.ts'
import { createScanners, type Scanners } from './scanners.ts'

export interface ContentCheckArea extends Area {
  scanners: Scanners
  /** Null: no scanner of sent mail is configured. */
  check: ContentCheck | null
  holds: Holds
  figures: CheckCounts['figures']
}

const REMOVE_EVERY_MS = 10 * MINUTE_MS

export function contentCheckArea(core: Core): ContentCheckArea {
  const { config, store, blobs, clock } = core
  const scanners = createScanners(core)
  const holds = createHolds(store, clock)
  const counts = createCheckCounts(core)
  const check = createContentCheck({ config, scanners, holds, blobs, clock, count: counts.add })
  return {
    ...{ scanners, check, holds, figures: counts.figures },
    jobs: [
      createJob({
        name: 'content-check-retention',
        everyMs: REMOVE_EVERY_MS,
        scope: 'database',
        async work(signal) {
          await holds.removeOld(signal)
          await counts.removeOld(signal)
        },
      }),
    ],
    async accountDeleted(accountId, signal) {
      const remove = { store, clock }
      await removeIndexedRows(remove, 'content_holds', ['message_pk'], 'account_id', accountId, signal)
      await removeIndexedRows(remove, 'content_decisions', ['digest'], 'account_id', accountId, signal)
      const key = ['account_id', 'hour', 'domain_name'] as const
      await removeIndexedRows(remove, 'content_checks', key, 'account_id', accountId, signal)
    },
    stop: () => counts.close(),
  }
}
