/**
 * The lists of a deleted domain: they go with their members, since their addresses belong to whoever has the domain
 * next. Posts that are still being expanded through them end, as the domain's other waiting mail does.
 */
import type { OnDomainDeleted } from '../domains/deletion.ts'
import type { Store } from '../store/store.ts'
import { cancelExpansions } from './expansion-job.ts'
import { createListStore } from './store.ts'

/** Looked up at a time; each is removed in a transaction of its own. */
const BATCH = 100

export function removeLists(store: Store): OnDomainDeleted {
  const lists = createListStore(store)
  return async (domain) => {
    await store.commit(cancelExpansions(domain.id))
    for (;;) {
      const some = await lists.ofDomain(domain.accountId, domain.name, BATCH)
      for (const list of some) await lists.remove(list)
      if (some.length < BATCH) return
    }
  }
}
