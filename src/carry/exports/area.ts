/** Exports: lists of the API as files, written in the background and kept for a day (exports.md). */
import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Operation } from '../../platform/http/operation.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { createSources } from './lists.ts'
import { exportRoutes } from './routes.ts'
import { KEPT_MS, removeExports } from './store.ts'
import { createExportSteps } from './work.ts'

const REMOVE_EVERY_MS = 10 * MINUTE_MS

/** @param operations all of the service, of areas that are built later too */
export function exportsArea(core: Core, operations: () => readonly Operation[]): Area {
  const { config, clock } = core
  const sourceOf = createSources(operations)
  const steps = createExportSteps({ ...core, owner: core.leaseOwner, sourceOf })
  const work = taskJob('exports', steps.runOne)
  const removal = createJob({
    name: 'export-removal',
    everyMs: REMOVE_EVERY_MS,
    scope: 'database',
    work: (signal) =>
      removeExports(core, { sql: 'created_at <= ?', values: [Math.floor(clock.now() - KEPT_MS)] }, signal),
  })
  return {
    operations: exportRoutes({ ...core, baseUrl: config.publicUrl, sourceOf, wake: () => work.wake() }),
    jobs: [work, removal],
    accountDeleted: (accountId, signal) =>
      removeExports(core, { sql: 'account_id = ?', values: [accountId] }, signal),
  }
}
