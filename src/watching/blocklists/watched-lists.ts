/** The lists that are watched, as the operator sees them. */
import type { Of } from '../../base/shape.ts'
import type { Store } from '../../platform/store/store.ts'
import type { ListUsers } from './list-users.ts'
import type { Listings } from './listings.ts'
import type { Blocklist } from './lists.ts'
import type { WATCHED_LISTS } from './shapes.ts'

const isoTime = (time: number) => new Date(time).toISOString()

export async function watchedLists(
  { db }: Store,
  lists: readonly Blocklist[],
  users: ListUsers,
  listings: Listings,
): Promise<Of<typeof WATCHED_LISTS>['items']> {
  const [states, counts, used, addresses, domains] = await Promise.all([
    db.selectFrom('blocklist_states').selectAll().orderBy('kind').execute(),
    db
      .selectFrom('blocklist_checks')
      .select((eb) => ['list', eb.fn.countAll<number>().as('count')])
      .groupBy('list')
      .execute(),
    users.read(),
    listings.list('ip'),
    listings.list('domain'),
  ])
  const countOf = new Map(counts.map(({ list, count }) => [list, Number(count)]))
  return lists.map(({ zone, name, page }) => ({
    ...{ list: zone, name, page },
    tests: states
      .filter(({ list }) => list === zone)
      .map(({ kind, fault, checked_at }) => ({
        ...{ kind, usable: fault === '', fault, checked_at: isoTime(Number(checked_at)) },
      })),
    used_by: (used.get(zone) ?? []).map(({ site, provider, seen_at }) => ({
      ...{ site, provider, seen_at: Number(seen_at) === 0 ? null : isoTime(Number(seen_at)) },
    })),
    looked_up: countOf.get(zone) ?? 0,
    listed: [...addresses, ...domains]
      .filter(({ list }) => list.zone === zone)
      .map(({ subject, code, since, lastSeen }) => ({
        ...{ subject, code, since: isoTime(since), last_seen: isoTime(lastSeen) },
      })),
  }))
}
