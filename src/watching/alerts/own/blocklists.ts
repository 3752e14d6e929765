/**
 * Own source addresses and sending domains in DNS blocklists. Looks only where mail goes to the recipients' own servers.
 */
import { hostAddresses, seenAddresses } from '../../../base/net/host-addresses.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Config } from '../../../platform/config/config.ts'
import type { Store } from '../../../platform/store/store.ts'
import { queryBlocklists, queryDomainBlocklists } from '../../../protocols/dns/blocklist.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { OwnCheck } from './own-check.ts'

/** Queries of one check: as many addresses as a large installation has, in a handful of lists. */
const ADDRESS_QUERIES_MAX = 512
/** Lists of domains have daily limits for queries. */
const DOMAIN_QUERIES_MAX = 1_000

/** Null: no zones are configured, or no receiver sees these addresses. */
export function blocklistCheck(config: Config, resolver: Resolver): OwnCheck | null {
  const zones = config.alertDnsblZones
  if (zones.length === 0 || config.delivery.kind !== 'direct') return null
  return {
    name: 'blocklists',
    description: 'An address that mail leaves from is on a blocklist.',
    dimension: 'ip',
    eventTypes: { triggered: 'ip_listed', resolved: 'ip_delisted' },
    ...listing(
      async () => {
        const addresses = seenAddresses(config.sourceAddresses, hostAddresses())
        const most = Math.floor(ADDRESS_QUERIES_MAX / zones.length)
        return queryBlocklists(resolver, addresses.slice(0, most), zones)
      },
      (ip, lists) =>
        `${ip} is listed by ${lists}. Receivers that use it refuse mail from there. Find what caused it on the list's own page, end that, then ask for removal; meanwhile send from another address.`,
    ),
  }
}

/** Null: no zones are configured, or no receiver sees the domains. */
export function listedDomainsCheck(config: Config, store: Store, resolver: Resolver): OwnCheck | null {
  const zones = config.alertDomainZones
  if (zones.length === 0 || config.delivery.kind !== 'direct') return null
  return {
    name: 'listed-domains',
    description: 'A sending domain is on a blocklist.',
    dimension: 'domain',
    eventTypes: { triggered: 'domain_listed', resolved: 'domain_delisted' },
    ...listing(
      async () => {
        const rows = await store.db
          .selectFrom('domains')
          .select('name')
          .where('state', '=', 'active')
          .where('disabled_json', 'is', null)
          .orderBy('id')
          .limit(Math.floor(DOMAIN_QUERIES_MAX / zones.length))
          .execute()
        const names = rows.map(({ name }) => name)
        return queryDomainBlocklists(resolver, names, zones)
      },
      (domain, lists) =>
        `${domain} is listed by ${lists}. Receivers that use it refuse mail that names the domain, from whatever address. Find what caused it on the list's own page, end that, then ask for removal; meanwhile disable the domain.`,
    ),
  }
}

/** What the two checks have in common. */
function listing(
  query: () => ReturnType<typeof queryBlocklists>,
  adviceOn: (subject: string, lists: string) => string,
) {
  /** By subject and zone, from the last check: a list that does not answer says nothing new. */
  let listed = new Set<string>()
  return {
    metric: 'blocklists_listing',
    comparator: '>=',
    limit: '1',
    everyMs: HOUR_MS,
    async read(now: number) {
      const found = (await query()).filter(
        ({ kind, subject, zone }) =>
          kind === 'listed' || (kind === 'silent' && listed.has(`${subject} ${zone}`)),
      )
      listed = new Set(found.map(({ subject, zone }) => `${subject} ${zone}`))
      return [...Map.groupBy(found, ({ subject }) => subject)].map(([subject, some]) => ({
        value: subject,
        figure: String(some.length),
        since: now,
        advice: adviceOn(subject, some.map(({ zone }) => zone).join(', ')),
      }))
    },
  } as const
}
