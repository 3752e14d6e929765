/** Own source addresses in DNS blocklists. Looks only where mail goes to the recipients' own servers. */
import { hostAddresses, seenAddresses } from '../../../base/net/host-addresses.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Config } from '../../../platform/config/config.ts'
import { queryBlocklists } from '../../../protocols/dns/blocklist.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { OwnCheck } from './own-check.ts'

/** Queries of one check: as many addresses as a large installation has, in a handful of lists. */
const QUERIES_MAX = 512

/** Null: no zones are configured, or no receiver sees these addresses. */
export function blocklistCheck(config: Config, resolver: Resolver): OwnCheck | null {
  const zones = config.alertDnsblZones
  if (zones.length === 0 || config.delivery.kind !== 'direct') return null
  /** Of the last check, by address and zone: a list that does not answer says nothing new. */
  let listed = new Set<string>()
  return {
    name: 'blocklists',
    description: 'An address that mail leaves from is on a blocklist.',
    metric: 'blocklists_listing',
    comparator: '>=',
    limit: '1',
    dimension: 'ip',
    everyMs: HOUR_MS,
    eventTypes: { triggered: 'ip_listed', resolved: 'ip_delisted' },
    async read(now) {
      const addresses = seenAddresses(config.sourceAddresses, hostAddresses())
      const answers = await queryBlocklists(
        resolver,
        addresses.slice(0, Math.floor(QUERIES_MAX / zones.length)),
        zones,
      )
      const isListed = ({ kind, subject, zone }: (typeof answers)[number]) =>
        kind === 'listed' || (kind === 'silent' && listed.has(`${subject} ${zone}`))
      const found = answers.filter(isListed)
      listed = new Set(found.map(({ subject, zone }) => `${subject} ${zone}`))
      return [...Map.groupBy(found, ({ subject }) => subject)].map(([ip, ofAddress]) => {
        const names = ofAddress.map(({ zone }) => zone).join(', ')
        return {
          value: ip,
          figure: String(ofAddress.length),
          since: now,
          advice: `${ip} is listed by ${names}. Receivers that use it refuse mail from there. Find what caused it on the list's own page, end that, then ask for removal; meanwhile send from another address.`,
        }
      })
    },
  }
}
