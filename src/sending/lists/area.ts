/** Mailing lists and their uploads. Copies of posts are made by messages/. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { removeListsOf } from './account-removal.ts'
import { createListDomains, type ListDomains } from './list-domains.ts'
import { listRoutes } from './routes.ts'
import { createLists } from './service.ts'
import { createListStore, type ListStore } from './store.ts'
import { createUploadTasks } from './upload-tasks.ts'

export interface ListsArea extends Area {
  store: ListStore
  listDomains: ListDomains
}

export function listsArea(core: Core): ListsArea {
  const { config, store, domains, clock, recorder, leaseOwner } = core
  const listDomains = createListDomains(store, clock)
  const lists = createListStore(store, listDomains.forget)
  const uploads = createUploadTasks({ store, lists, clock, recorder, owner: leaseOwner })
  const job = taskJob('list-uploads', uploads.runOne)
  return {
    store: lists,
    listDomains,
    operations: listRoutes({
      lists: createLists({ lists, domains, clock }),
      store: lists,
      uploads,
      wakeUploads: () => job.wake(),
      clock,
      baseUrl: config.publicUrl,
    }),
    jobs: [job],
    accountDeleted: (accountId, signal) => removeListsOf(core, lists, accountId, signal),
  }
}
