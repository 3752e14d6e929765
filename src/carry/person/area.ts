/** One person's data: exported into an archive, or erased, in the background (people.md). */
import type { Area } from '../../area.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { MessagesArea } from '../../mail/messages/area.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { createRemovedFiles } from './removed-files.ts'
import { reportOf } from './report.ts'
import { personRoutes } from './routes.ts'
import { ARCHIVE_KEPT_MS, KEPT_MS, removeTasks } from './store.ts'
import { createPersonSteps } from './work.ts'

export function personArea(
  core: Core,
  { accept, delivery }: Pick<MessagesArea, 'accept' | 'delivery'>,
): Area {
  const { config, store, clock } = core
  const removed = createRemovedFiles(core)
  const steps = createPersonSteps({
    ...{ ...core, accept, delivery, removed, owner: core.leaseOwner },
    report: (task, left) => reportOf(store, config.dataFolder, task, left),
  })
  const work = taskJob('person-tasks', steps.runOne)
  const before = (ms: number) => [Math.floor(clock.now() - ms)]
  const removal = createJob({
    name: 'person-task-removal',
    everyMs: HOUR_MS,
    scope: 'database',
    async work(signal) {
      const over = { sql: "state = 'done' AND finished_at <= ?", values: before(ARCHIVE_KEPT_MS) }
      await removeTasks(core, over, 'archives', signal)
      const old = { sql: 'coalesce(finished_at, created_at) <= ?', values: before(KEPT_MS) }
      await removeTasks(core, old, 'rows', signal)
    },
  })
  return {
    operations: personRoutes({ ...core, wake: () => work.wake() }),
    jobs: [work, removal, removed.job],
    accountDeleted: (accountId, signal) =>
      removeTasks(core, { sql: 'account_id = ?', values: [accountId] }, 'rows', signal),
  }
}
