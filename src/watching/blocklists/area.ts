/** Blocklists: what is looked up in them, what follows from a listing, and what accounts monitor. */
import type { Area } from '../../area.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Blocks } from '../../sending/ips/blocks/blocks.ts'
import type { KnownAddresses } from '../../sending/ips/known-addresses.ts'
import { removeOldEvents } from './history.ts'
import { createListUsers, USER_KEPT_MS } from './list-users.ts'
import { createListings, type Listings } from './listings.ts'
import { blocklistsOf, eachOnce } from './lists.ts'
import { createMonitoredDomains } from './monitored-domains.ts'
import { createMonitoredIps } from './monitored-ips.ts'
import { blocklistRoutes } from './routes.ts'
import { createViews } from './views.ts'
import { createWatch, type ListingNotices } from './watch.ts'
import { watchedLists } from './watched-lists.ts'

export interface BlocklistsArea extends Area {
  /** Null: no list is watched. */
  listings: Listings | null
  /** Notices to accounts go through this. */
  notifyBy(notices: ListingNotices): void
}

interface BlocklistsUses {
  known: KnownAddresses
  blocks: Blocks
}

export function blocklistsArea(core: Core, { known, blocks }: BlocklistsUses): BlocklistsArea {
  const { config, store, clock, firstAccountId } = core
  // Only receivers that see the address look it up.
  const isDirect = config.delivery.kind === 'direct'
  const addressLists = isDirect ? blocklistsOf(config.alertDnsblZones, 'addresses') : []
  const domainLists = isDirect ? blocklistsOf(config.alertDomainZones, 'domains') : []
  const lists = eachOnce([...addressLists, ...domainLists])
  let notices: ListingNotices | null = null
  const users = createListUsers({ ...core, lists, wake: () => watch.job.wake() })
  const listings = createListings({ ...core, lists, users, blocks, known })
  const watch = createWatch({
    ...core,
    ...{ lists, firstAccountId, book: known.book, leave: listings.leave },
    notices: () => notices,
  })
  if (addressLists.length > 0) blocks.onRefused(users.refused)

  const domains = createMonitoredDomains({ ...core, changed: watch.renew })

  async function removeOld(signal: AbortSignal): Promise<void> {
    const now = Math.floor(clock.now())
    await store.commit([
      { sql: 'DELETE FROM blocklist_users WHERE seen_at < ?', values: [now - USER_KEPT_MS] },
    ])
    await removeOldEvents(store, now, signal)
  }

  return {
    listings: lists.length > 0 ? listings : null,
    notifyBy(through) {
      notices = through
    },
    operations: blocklistRoutes({
      ...{ store, accounts: core.accounts, baseUrl: config.publicUrl },
      ...{ addressLists, domainLists, domains, views: createViews(lists) },
      ips: createMonitoredIps({ store, clock, book: known.book }),
      watchedLists: () => watchedLists(store, lists, users, listings),
    }),
    jobs: [
      domains.job,
      ...(lists.length > 0 ? [watch.job] : []),
      createJob({ name: 'blocklist-retention', everyMs: HOUR_MS, scope: 'database', work: removeOld }),
    ],
    domainDeleted: domains.domainDeleted,
    async accountDeleted(accountId) {
      await store.commit(
        ['monitored_domains', 'monitored_ips', 'blocklist_events'].map((table) => ({
          sql: `DELETE FROM ${table} WHERE account_id = ?`,
          values: [accountId],
        })),
      )
    },
    stop: users.written,
  }
}
