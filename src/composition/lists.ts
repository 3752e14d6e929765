/** Puts the mailing lists and their background work together. */
import { newId } from '../base/ids.ts'
import { createExpansionJob } from '../lists/expansion-job.ts'
import { createLists } from '../lists/service.ts'
import { createListStore } from '../lists/store.ts'
import { createTaskRunner, type TaskRunner } from '../lists/task-runner.ts'
import { createUploadTasks } from '../lists/upload-tasks.ts'
import { memberStatements } from '../messages/lists.ts'
import type { Sending } from '../messages/sending.ts'
import type { Closers, Core } from './core.ts'
import type { Mail } from './mail.ts'

/** Lists, and the background work of their uploads. */
export function startLists(
  { store: database, domains, clock, log }: Core,
  { listDomains }: Mail,
  open: Closers,
) {
  const store = createListStore(database, listDomains.forget)
  const uploads = createUploadTasks({ store: database, lists: store, clock, owner: newId() })
  const runner = createTaskRunner({ clock, log, runOne: uploads.runOne })
  open.push(() => runner.stop())
  runner.start()
  return { lists: createLists({ lists: store, domains, clock }), store, uploads, wakeUploads: runner.wake }
}

/** Copies of posts to lists, made in the background. */
export function startExpansions({ store, clock, log }: Core, { accept }: Sending, open: Closers): TaskRunner {
  const job = createExpansionJob({
    store,
    lists: createListStore(store),
    clock,
    owner: newId(),
    insertDeliveries(expansion, members) {
      accept.accepted?.(members.length)
      return memberStatements(accept, expansion, members)
    },
    inserted: () => accept.engine.wake(),
  })
  const runner = createTaskRunner({ clock, log, runOne: job.runOne })
  open.push(() => runner.stop())
  runner.start()
  return runner
}
