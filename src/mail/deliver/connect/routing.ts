/**
 * Where a delivery goes: its lane, and the addresses to try with the TLS rules of each.
 *
 * - The lane is the source address and the site. A relay that takes the mail is one site; else the domain's MX hosts name
 *   the site that it belongs to.
 * - Addresses follow the order of the hosts (RFC 5321 §5.1). A source skips those that it could not reach lately, and
 *   tries those that refused it last: a host that rejects one of our addresses may accept another.
 * - A domain's hosts and their TLS rules are remembered for a short time.
 */

import { type Cache, createCache, type MaybePromise } from '../../../base/flow/cache.ts'
import { type Cidr, parseIp } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import {
  findMailHosts,
  type MailHost,
  type MailHostDenial,
  type MxResult,
} from '../../../protocols/dns/mx.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { StsPolicies } from '../../../protocols/mta-sts/policies.ts'
import type { Prepared, Relays, Routed, TlsPolicy } from '../contract.ts'
import { type LaneInfo, NO_SOURCE, type Source, sourceIp } from '../lanes/lanes.ts'
import { providerOfDomain } from '../shaping/provider-names.ts'
import type { AddressPreference } from '../shaping/shaping-file.ts'
import type { LaneLimits, ShapingTable } from '../shaping/shaping-table.ts'
import { byPreference, type SystemSources } from './address-families.ts'
import { type HostTls, type HostTlsResult, receiverTls } from './receiver-tls.ts'
import { type RelayHop, relayTls } from './relay.ts'
import type { TlsCounts } from './tls-counts.ts'

interface Destination {
  found: MxResult
  site: string
  provider: string
  limits: LaneLimits
  /** Addresses of this family come first; null: none do. */
  family: 4 | 6 | null
  /** IPv6 is not used where the system chooses the source address. */
  avoidsIpv6: boolean
  /** TLS rules per host and sender's policy, looked up once while this is remembered. */
  tls: Map<string, Promise<HostTlsResult>>
}

/** The resolver keeps answers for their TTL; this only saves the work of sorting hosts into sites. */
const REMEMBER_MS = 30_000
const DOMAINS_MAX = 20_000

/** How mail that no relay takes goes to the recipients' own servers. */
export interface DirectHop {
  port: number
  resolver: Resolver
  allow: readonly Cidr[]
  /** Hosts that get no mail. */
  deny?: MailHostDenial | undefined
  /** Absent: any address that the system chooses is used. */
  systemSources?: SystemSources | undefined
  /** Null: MTA-STS is not used. */
  policies: StsPolicies | null
}

export interface RoutingParts {
  direct: DirectHop
  relays: Relays
  clock: Clock
  random(): number
  /**
   * The address that a delivery is sent from, the same for all of a group at a time; null: the system's choice.
   * `reaches`: whether the destination has an address that can be reached from that one.
   */
  sourceOf(
    delivery: Routed,
    reaches: (ip: string) => Reach,
    site: string,
  ): MaybePromise<Source | null | typeof NO_SOURCE>
  /** Limits by provider. */
  shaping(): ShapingTable
  /** The limits of a site with an operator's orders over them. */
  limitsOf(site: string, limits: LaneLimits): LaneLimits
  tlsCounts: Pick<TlsCounts, 'record'>
}

/** Whether a destination can be reached from an address; `preferred`: at its addresses that come first. */
export type Reach = boolean | 'preferred'

/** What one attempt sends, and where. */
export interface Attempt {
  lane: LaneInfo
  domain: string
  /** Null with a relay. */
  destination: Destination | null
  /** Null without one. */
  relay: RelayHop | null
  provider: string
  prepared: Extract<Prepared, { kind: 'send' }>
  recipient: string
  beforeFinalDot: () => Promise<void>
}

/** A host under the name that its certificate must have. */
interface Host {
  name: string
  tlsRules(): HostTls | Promise<HostTlsResult>
}

/** One address to connect to. */
export interface Target extends Host {
  address: string
}

/** Addresses tried in one attempt: with half a minute for each it stays within minutes. */
const ADDRESSES_PER_ATTEMPT_MAX = 8

export class Routing {
  readonly destinations: Cache<Destination>
  readonly #parts: RoutingParts
  readonly down: DownPaths

  constructor(parts: RoutingParts) {
    const { direct, clock, random } = parts
    this.#parts = parts
    this.down = new DownPaths(clock)
    this.destinations = createCache({
      clock,
      ttlMs: REMEMBER_MS,
      entriesMax: DOMAINS_MAX,
      load: async (domain) => {
        const { resolver, allow, deny, systemSources } = direct
        const found = await findMailHosts(resolver, domain, { random, allow, deny })
        const destination = destinationOf(domain, found, parts.shaping())
        if (systemSources && destination.found.kind === 'hosts')
          destination.avoidsIpv6 = await systemSources.avoidsIpv6(destination.found.hosts)
        return destination
      },
    })
  }

  async laneOf(delivery: Routed): Promise<LaneInfo> {
    const { relays } = this.#parts
    const relay = relays.inUse() ? await relays.choose(delivery, this.#providerOf) : null
    if (relay !== null) return this.#laneOfRelay(delivery, relay)
    const destination = await this.destinations.get(delivery.recipient_domain)
    const { site, provider, limits } = destination
    const reaches = (ip: string) => reachesHosts(ip, destination)
    const source = await this.#parts.sourceOf(delivery, reaches, site)
    const name = `${nameOfSource(source)}/${site}`
    return { name, source, site, relay: null, provider, limits: this.#parts.limitsOf(site, limits) }
  }

  async #laneOfRelay(delivery: Routed, { name: relay, host, site, limits }: RelayHop): Promise<LaneInfo> {
    const family = parseIp(host)?.family
    const reaches = (ip: string) => family === undefined || parseIp(ip)?.family === family
    const source = await this.#parts.sourceOf(delivery, reaches, site)
    const name = `${nameOfSource(source)}/${site}`
    return { name, source, site, relay, provider: 'Other', limits: this.#parts.limitsOf(site, limits) }
  }

  /** The provider of a recipient's domain. */
  readonly #providerOf = async (domain: string): Promise<string> => {
    const { provider } = await this.destinations.get(domain)
    return provider === 'Other' ? providerOfDomain(domain) : provider
  }

  /**
   * The source key of a delivery that the relay of its lane cannot take, by which another one does; null: none can. `sizeBytes`:
   * it is too large for that relay.
   */
  withoutRelay(delivery: Routed, relay: string, sizeBytes: number | null): MaybePromise<string | null> {
    return this.#parts.relays.without(delivery, relay, sizeBytes, this.#providerOf)
  }

  /** Null: direct delivery, or the relay was removed. */
  relayOf({ relay }: LaneInfo): RelayHop | null {
    return relay === null ? null : this.#parts.relays.byName(relay)
  }

  /** The limits of a lane as they are now. */
  limitsOf(lane: LaneInfo): LaneLimits {
    const limits = this.relayOf(lane)?.limits ?? this.#parts.shaping().limitsOf(lane.site)
    return this.#parts.limitsOf(lane.site, limits)
  }

  /** The hosts of the best preference, whose open connections serve the attempt. */
  preferredHosts(attempt: Attempt): Host[] {
    if (attempt.relay !== null) return [relayTarget(attempt, attempt.relay)]
    return preferred(hostsOf(attempt)).map((host) => this.#hostOf(attempt, host))
  }

  #hostOf(attempt: Attempt, host: MailHost): Host {
    return { name: host.exchange, tlsRules: () => this.#rulesOf(attempt, host) }
  }

  /**
   * The addresses in the order to try them. Of those that refused us lately only one is tried, after all others: the one
   * that did so first, as some attempt must find out that it has ended.
   */
  targetsOf(attempt: Attempt): Target[] {
    const targets = this.#allTargets(attempt)
    const refusedUntil = (target: Target) => this.down.refusedUntil(attempt, target)
    const refusing = targets.filter((target) => refusedUntil(target) > 0)
    if (refusing.length === 0) return targets
    const [first] = refusing.sort((a, b) => refusedUntil(a) - refusedUntil(b))
    return [...targets.filter((target) => !refusing.includes(target)), ...(first ? [first] : [])]
  }

  #allTargets(attempt: Attempt): Target[] {
    if (attempt.relay !== null) return [relayTarget(attempt, attempt.relay)]
    const source = sourceIp(attempt.lane)
    const from = source === null ? undefined : parseIp(source)?.family
    const avoidsIpv6 = attempt.destination?.avoidsIpv6 ?? false
    const isUsable = (family: 4 | 6) => (from === undefined ? !(avoidsIpv6 && family === 6) : family === from)
    return hostsOf(attempt)
      .flatMap((host) =>
        host.addresses
          .filter(({ family }) => isUsable(family))
          .map(({ address }) => ({ address, ...this.#hostOf(attempt, host) })),
      )
      .slice(0, ADDRESSES_PER_ATTEMPT_MAX)
  }

  /** The TLS rules of a host in direct mode, looked up once while its destination is remembered. */
  #rulesOf({ destination, domain, prepared }: Attempt, host: MailHost): HostTls | Promise<HostTlsResult> {
    const { direct, clock } = this.#parts
    if (!destination) return senderTls(prepared.tls)
    if (prepared.tls.isOptional) return OPTIONAL_TLS
    const key = `${host.exchange} ${prepared.tls.required} ${prepared.tls.verify}`
    const known = destination.tls.get(key)
    if (known) return known
    const isOnward = prepared.tls.required === 'requiretls'
    const rules = receiverTls(direct, clock, domain, host, senderTls(prepared.tls), isOnward).then(
      (result) => {
        if ('refused' in result) {
          if (result.localFault !== undefined) destination.tls.delete(key)
          else if (result.policy !== 'none') this.#reportRefused(domain, host, result.policy, result.result)
        }
        return result
      },
    )
    destination.tls.set(key, rules)
    return rules
  }

  #reportRefused(domain: string, { exchange }: MailHost, policy: 'tlsa' | 'sts', result: string): void {
    const policyDomain = policy === 'tlsa' ? exchange : domain
    // No connection was tried, so that no address was chosen.
    const about = { recipientDomain: domain, sendingIp: '', policyDomain, policyType: policy }
    this.#parts.tlsCounts.record({ ...about, mxHost: exchange, result })
  }
}

/** None with a relay, and where the domain has none. */
const hostsOf = ({ destination }: Attempt): readonly MailHost[] =>
  destination?.found.kind === 'hosts' ? destination.found.hosts : []

const relayTarget = ({ prepared }: Attempt, relay: RelayHop): Target => ({
  address: relay.host,
  name: relay.host,
  tlsRules: () => relayTls(relay, senderTls(prepared.tls), prepared.tls.required === 'requiretls'),
})

const nameOfSource = (source: Source | null | typeof NO_SOURCE) =>
  source === NO_SOURCE ? NO_SOURCE : (source?.ip ?? 'any')

function reachesHosts(ip: string, { found, family: first }: Destination): Reach {
  if (found.kind !== 'hosts') return true
  const from = parseIp(ip)?.family
  const reaches = found.hosts.some(({ addresses }) => addresses.some(({ family }) => family === from))
  return reaches && from === first ? 'preferred' : reaches
}

/** What can be down: the path from a source to an address, or to a relay. */
const pathOf = ({ lane, relay }: Attempt, { address }: Target) =>
  `${sourceIp(lane) ?? 'any'} ${relay?.site ?? address}`

/** Rules that no receiver has made. */
const ownTls = (required: boolean, verify: boolean, key: string): HostTls => ({
  ...{ required, verify, key },
  judge: null,
  policy: 'none',
})

/** The sender's policy alone (messages.md rule 36). */
const senderTls = ({ required, verify }: TlsPolicy) =>
  ownTls(required !== false, verify, `${required} ${verify}`)

/**
 * For TLS reports, which are about failures of these rules, and for mail whose author asks for it, whatever anybody's
 * policy. The key is their own: sessions are reported when they are opened, and so other mail may not use one that was
 * opened for these, nor the reverse.
 */
const OPTIONAL_TLS = ownTls(false, false, 'optional')

function destinationOf(domain: string, found: MxResult, shaping: ShapingTable): Destination {
  const common = { family: null, avoidsIpv6: false, tls: new Map() }
  if (found.kind !== 'hosts') {
    return { found, site: domain, provider: 'Other', limits: shaping.limitsOf(domain), ...common }
  }
  const names = preferred(found.hosts).map(({ exchange }) => exchange.toLowerCase())
  const [first = domain] = names
  const known = shaping.siteOf(first)
  const prefer = known?.prefer === undefined ? shaping.prefer : known.prefer
  return {
    found: arranged(domain, found, prefer),
    site: known?.site ?? siteOfHosts(names),
    provider: known?.displayName(domain, first) ?? 'Other',
    limits: known?.limits ?? shaping.default,
    ...common,
    family: prefer === null ? null : prefer.startsWith('ipv4') ? 4 : 6,
  }
}

function arranged(
  domain: string,
  found: Extract<MxResult, { kind: 'hosts' }>,
  prefer: AddressPreference | null,
): MxResult {
  const hosts = byPreference(found.hosts, prefer)
  if (hosts.length > 0) return { ...found, hosts }
  const reason = `the mail hosts of ${domain} have no address that "prefer": "${prefer}" of the shaping allows`
  return { kind: 'temporary', reason }
}

/** The hosts of the best preference. */
function preferred(hosts: readonly MailHost[]): MailHost[] {
  return hosts.filter(({ preference }) => preference === hosts[0]?.preference)
}

/** All names of the best preference, so that a domain's hosts share their limits, and so do domains with the same hosts. */
export function siteOfHosts(mxHosts: readonly string[]): string {
  const names = [...mxHosts].sort()
  const shown = names.slice(0, SITE_HOSTS_SHOWN).join(',')
  return names.length > SITE_HOSTS_SHOWN ? `${shown},+${names.length - SITE_HOSTS_SHOWN}` : shown
}

const SITE_HOSTS_SHOWN = 3

/** A path is down after this many failures to connect in a row: one may be chance. */
const FAILURES_TO_DOWN = 3
/** For this long a path that is down is not tried, and one that refused us is tried last. */
const DOWN_MS = MINUTE_MS
const PATHS_MAX = 10_000

interface DownPath {
  failures: number
  until: number
  reason: string
  /** A server answered there and took no mail: a bad greeting, a refused EHLO. */
  refused: boolean
}

/** Paths from a source to an address that took no connections, or no mail, lately. */
class DownPaths {
  readonly #clock: Clock
  readonly #entries = new Map<string, DownPath>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Why the address is not tried from this source now; null: it is. */
  reason(attempt: Attempt, target: Target): string | null {
    const entry = this.#current(attempt, target)
    return entry && entry.failures >= FAILURES_TO_DOWN ? entry.reason : null
  }

  /** Until when the path counts as one that refused us, on the monotonic clock; 0: it does not. */
  refusedUntil(attempt: Attempt, target: Target): number {
    const entry = this.#current(attempt, target)
    return entry?.refused ? entry.until : 0
  }

  /** It took no connection. */
  unreachable(attempt: Attempt, target: Target, reason: string): void {
    const path = pathOf(attempt, target)
    this.#set(path, { failures: (this.#entries.get(path)?.failures ?? 0) + 1, reason, refused: false })
  }

  /** A server answered there and took no mail. Once is enough: such a path is not skipped, only tried last. */
  refused(attempt: Attempt, target: Target, reason: string): void {
    this.#set(pathOf(attempt, target), { failures: 0, reason, refused: true })
  }

  /** It took a connection. */
  reached(attempt: Attempt, target: Target): void {
    this.#entries.delete(pathOf(attempt, target))
  }

  #current(attempt: Attempt, target: Target): DownPath | null {
    const entry = this.#entries.get(pathOf(attempt, target))
    return entry && this.#clock.monotonic() < entry.until ? entry : null
  }

  #set(path: string, entry: Omit<DownPath, 'until'>): void {
    this.#entries.delete(path)
    this.#entries.set(path, { ...entry, until: this.#clock.monotonic() + DOWN_MS })
    const oldest = this.#entries.keys().next()
    if (this.#entries.size > PATHS_MAX && !oldest.done) this.#entries.delete(oldest.value)
  }
}
