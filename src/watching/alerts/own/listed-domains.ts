/** Sending domains in DNS blocklists of domains. Looks only where mail goes to the recipients' own servers. */
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Config } from '../../../platform/config/config.ts'
import type { Store } from '../../../platform/store/store.ts'
import { queryDomainBlocklists } from '../../../protocols/dns/blocklist.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { OwnCheck } from './own-check.ts'

/** Queries of one check: lists have daily limits for queries. */
const QUERIES_MAX = 1_000

/** Null: no zones are configured, or no receiver sees the domains. */
export function listedDomainsCheck(config: Config, store: Store, resolver: Resolver): OwnCheck | null {
  const zones = config.alertDomainZones
  if (zones.length === 0 || config.delivery.kind !== 'direct') return null
  /** Of the last check, by domain and zone: a list that does not answer says nothing new. */
  let listed = new Set<string>()
  return {
    name: 'listed-domains',
    description: 'A sending domain is on a blocklist.',
    metric: 'blocklists_listing',
    comparator: '>=',
    limit: '1',
    dimension: 'domain',
    everyMs: HOUR_MS,
    eventTypes: { triggered: 'domain_listed', resolved: 'domain_delisted' },
    async read(now) {
      const rows = await store.db
        .selectFrom('domains')
        .select('name')
        .where('state', '=', 'active')
        .where('disabled_json', 'is', null)
        .orderBy('id')
        .limit(Math.floor(QUERIES_MAX / zones.length))
        .execute()
      const names = rows.map(({ name }) => name)
      const answers = await queryDomainBlocklists(resolver, names, zones)
      const found = answers.filter(
        ({ kind, subject, zone }) =>
          kind === 'listed' || (kind === 'silent' && listed.has(`${subject} ${zone}`)),
      )
      listed = new Set(found.map(({ subject, zone }) => `${subject} ${zone}`))
      return [...Map.groupBy(found, ({ subject }) => subject)].map(([domain, ofDomain]) => {
        const lists = ofDomain.map(({ zone }) => zone).join(', ')
        return {
          value: domain,
          figure: String(ofDomain.length),
          since: now,
          advice: `${domain} is listed by ${lists}. Receivers that use it refuse mail that names the domain, from whatever address. Find what caused it on the list's own page, end that, then ask for removal; meanwhile disable the domain.`,
        }
      })
    },
  }
}
