/** Blocklists: what is looked up in them, what follows from a listing, and what accounts monitor. */
import type { Area } from '../../area.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Blocks } from '../../sending/ips/blocks/blocks.ts'
import type { KnownAddresses } from '../../sending/ips/known-addresses.ts'
import { createListUsers, USER_KEPT_MS } from './list-users.ts'
import { createListings, type Listings } from './listings.ts'
import { blocklistsOf } from './lists.ts'
import { createWatch, type ListingNotices } from './watch.ts'

export interface BlocklistsArea extends Area {
  /** Null: no list is watched. */
  listings: Listings | null
  /** Whom accounts are told by. */
  notifyBy(notices: ListingNotices): void
}

interface BlocklistsUses {
  known: KnownAddresses
  blocks: Blocks
}

/** The history. */
const KEPT_MS = 366 * DAY_MS
const REMOVED_AT_A_TIME = 1_000

export function blocklistsArea(core: Core, { known, blocks }: BlocklistsUses): BlocklistsArea {
  const { config, store, clock, firstAccountId } = core
  // Only receivers that see the address look it up.
  const isDirect = config.delivery.kind === 'direct'
  const addressLists = isDirect ? blocklistsOf(config.alertDnsblZones, 'addresses') : []
  const domainLists = isDirect ? blocklistsOf(config.alertDomainZones, 'domains') : []
  const lists = [...addressLists, ...domainLists]
  let notices: ListingNotices | null = null
  const users = createListUsers({ ...core, lists, wake: () => watch.job.wake() })
  const listings = createListings({ ...core, lists, users, blocks, known })
  const watch = createWatch({
    ...core,
    ...{ lists, firstAccountId, book: known.book, leave: listings.leave },
    notices: () => notices,
  })
  if (addressLists.length > 0) blocks.onRefused(users.refused)

  async function removeOld(): Promise<'more' | undefined> {
    const [events] = await store.commit([
      {
        sql: `DELETE FROM blocklist_events WHERE id IN
          (SELECT id FROM blocklist_events WHERE created_at < ? LIMIT ${REMOVED_AT_A_TIME})`,
        values: [Math.floor(clock.now()) - KEPT_MS],
      },
      {
        sql: 'DELETE FROM blocklist_users WHERE seen_at < ?',
        values: [Math.floor(clock.now()) - USER_KEPT_MS],
      },
    ])
    return events?.affected === REMOVED_AT_A_TIME ? 'more' : undefined
  }

  return {
    listings: lists.length > 0 ? listings : null,
    notifyBy(through) {
      notices = through
    },
    jobs: [
      ...(lists.length > 0 ? [watch.job] : []),
      createJob({ name: 'blocklist-retention', everyMs: HOUR_MS, scope: 'database', work: removeOld }),
    ],
    stop: users.written,
  }
}
