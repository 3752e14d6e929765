/** Domains and addresses with what the lists say of them, as the API shows them. */
import type { Of } from '../../base/shape.ts'
import type { BlocklistCheckRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import type { Blocklist } from './lists.ts'
import type { MonitoredDomain } from './monitored-domains.ts'
import type { MonitoredIp } from './monitored-ips.ts'
import type {
  DOMAIN_HEALTH,
  LISTED_ADDRESS,
  LISTED_DOMAIN,
  MONITORED_DOMAIN,
  MONITORED_IP,
} from './shapes.ts'

/** Subjects of one query. */
const SUBJECTS_AT_A_TIME = 500

const isoTime = (time: number | null) => new Date(Number(time)).toISOString()

/** What is known of subjects in the lists that are watched, by subject. */
export async function readChecks(
  store: Store,
  lists: readonly Blocklist[],
  subjects: readonly string[],
): Promise<Map<string, BlocklistCheckRow[]>> {
  const rows: BlocklistCheckRow[] = []
  const zones = lists.map(({ zone }) => zone)
  const all = zones.length === 0 ? [] : [...new Set(subjects)]
  for (let at = 0; at < all.length; at += SUBJECTS_AT_A_TIME)
    rows.push(
      ...(await store.db
        .selectFrom('blocklist_checks')
        .selectAll()
        .where('list', 'in', zones)
        .where('subject', 'in', all.slice(at, at + SUBJECTS_AT_A_TIME))
        .orderBy('list')
        .execute()),
    )
  return Map.groupBy(rows, ({ subject }) => subject)
}

export function createViews(lists: readonly Blocklist[]) {
  const byZone = new Map(lists.map((list) => [list.zone, list]))

  const nameOf = (zone: string) => byZone.get(zone)?.name ?? zone

  const listedDomains = (rows: readonly BlocklistCheckRow[]): Of<typeof LISTED_DOMAIN>[] =>
    rows
      .filter(({ listed_since }) => listed_since !== null)
      .map(({ list, listed_since, listed_at }) => ({
        ...{ list, name: nameOf(list), first_seen: isoTime(listed_since), last_seen: isoTime(listed_at) },
        comments: [byZone.get(list)?.page ?? ''].filter((page) => page !== ''),
      }))

  const listedAddress = (listed: Of<typeof LISTED_DOMAIN>): Of<typeof LISTED_ADDRESS> => ({
    ...listed,
    delist_requested_at: '0001-01-01T00:00:00Z',
  })

  return {
    nameOf,
    listedDomains,
    domainHealth(
      { accountId, name, createdAt }: MonitoredDomain,
      checks: ReadonlyMap<string, readonly BlocklistCheckRow[]>,
    ): Of<typeof DOMAIN_HEALTH> {
      const rows = checks.get(rootDomainOf(name)) ?? []
      return {
        ...{ account_id: accountId, domain: name, state: stateOf(rows), listed: listedDomains(rows) },
        updated_at: isoTime(Math.max(createdAt, ...rows.map(({ checked_at }) => Number(checked_at)))),
      }
    },
    address(
      one: MonitoredIp,
      checks: ReadonlyMap<string, readonly BlocklistCheckRow[]>,
    ): Of<typeof MONITORED_IP> {
      const rows = checks.get(one.ip) ?? []
      return { ...one, state: stateOf(rows), listed: listedDomains(rows).map(listedAddress) }
    },
  }
}

export type Views = ReturnType<typeof createViews>

function stateOf(rows: readonly BlocklistCheckRow[]): 'healthy' | 'listed' | 'unknown' {
  if (rows.some(({ listed_since }) => listed_since !== null)) return 'listed'
  return rows.some(({ checked_at }) => checked_at !== null) ? 'healthy' : 'unknown'
}

/** As in the list of domains; `isWatched`: lists of domains are. */
export function monitoredDomainView(
  { accountId, name, createdAt, added }: MonitoredDomain,
  isWatched: boolean,
): Of<typeof MONITORED_DOMAIN> {
  const verifiedAt = added === null ? createdAt : added.verified_at
  return {
    acid: accountId,
    created_at: seconds(createdAt),
    name,
    services: { blocklist_monitoring: isWatched && verifiedAt !== null },
    txt_record: added?.txt_record ?? '',
    verified: {
      status: statusOf(added),
      verified_at: verifiedAt === null ? 0 : seconds(Number(verifiedAt)),
    },
  }
}

const seconds = (time: number) => Math.floor(time / 1000)

function statusOf(added: MonitoredDomain['added']): Of<typeof MONITORED_DOMAIN>['verified']['status'] {
  if (added === null) return 'sending'
  if (added.verified_at !== null) return 'inbox_ready'
  return added.looked_until !== null && added.next_look_at === null ? 'failed' : 'pending'
}
