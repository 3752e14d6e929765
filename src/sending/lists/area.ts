/** Mailing lists and their uploads. Copies of posts are made by messages/. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import { removeListsOf } from './account-removal.ts'
import { createListDomains, type ListDomains } from './list-domains.ts'
import { listRoutes } from './routes.ts'
import { createLists, type Lists } from './service.ts'
import { createListStore, type ListStore } from './store.ts'
import { createUploadTasks } from './upload-tasks.ts'

export interface ListsArea extends Area {
  lists: Lists
  store: ListStore
  /** `wake` is called when a member may wait for its confirmation mail. */
  onPending(wake: () => void): void
  listDomains: ListDomains
}

export function listsArea(core: Core): ListsArea {
  const { config, store, domains, clock, recorder, leaseOwner } = core
  const listDomains = createListDomains(store, clock)
  const lists = createListStore(store, listDomains.forget)
  const service = createLists({ lists, domains, clock })
  let wakeMails = () => {}
  const uploads = createUploadTasks({ store, lists, clock, recorder, owner: leaseOwner })
  const job = taskJob('list-uploads', async () => {
    const ran = await uploads.runOne()
    if (ran) wakeMails()
    return ran
  })
  return {
    lists: service,
    store: lists,
    onPending(wake) {
      wakeMails = wake
    },
    listDomains,
    operations: listRoutes({
      lists: service,
      store: lists,
      uploads,
      wakeUploads: () => job.wake(),
      wakeMails: () => wakeMails(),
      clock,
      baseUrl: config.publicUrl,
    }),
    jobs: [job],
    accountDeleted: (accountId, signal) => removeListsOf(core, lists, accountId, signal),
  }
}
