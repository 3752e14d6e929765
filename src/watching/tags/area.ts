/** Tags: which ones domains and accounts have used, up to their limits, and the operations on them. */
import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Figures } from '../metrics/figures.ts'
import { accountTagRoutes } from './account-routes.ts'
import { countTags, createKnownTags, type KnownTags } from './known-tags.ts'
import { createLastSeen } from './last-seen.ts'
import { tagRoutes } from './routes.ts'
import { createTagStore } from './tag-store.ts'

interface TagsArea extends Area {
  known: KnownTags
}

/** When tags were last seen is noted for each hour. */
const WRITE_EVERY_MS = MINUTE_MS

export function tagsArea(core: Core, { figures }: { figures: Figures }): TagsArea {
  const { config, store, clock, domains, accounts } = core
  const limits = { perDomain: config.tagsPerDomainMax, perAccount: config.tagsPerAccountMax }
  const lastSeen = createLastSeen({ store, clock })
  const known = createKnownTags({ store, clock, limits, lastSeen })
  const tags = createTagStore(store)
  return {
    known,
    operations: [
      ...tagRoutes({
        ...{ tags, known, domains, limits },
        count: (domainId) => countTags(store, 'domain_id', domainId),
        baseUrl: config.publicUrl,
      }),
      ...accountTagRoutes({
        ...{ tags, known, figures, accounts, limits, clock },
        count: (accountId) => countTags(store, 'account_id', accountId),
      }),
    ],
    jobs: [
      createJob({
        name: 'tags-last-seen',
        everyMs: WRITE_EVERY_MS,
        scope: 'process',
        work: (signal) => lastSeen.write(signal),
      }),
    ],
    async domainDeleted(domain) {
      await tags.removeAll(domain)
      known.forgetDomain(domain.id)
    },
    accountDeleted: (accountId) => tags.removeAccount(accountId),
    stop: () => lastSeen.write(),
  }
}
