/**
 * Where a delivery goes: its lane, and the addresses to try with the TLS rules of each.
 *
 * - The lane is the source address and the site. A relay is one site; in direct mode the domain's MX hosts name the
 *   site that it belongs to.
 * - Addresses follow the order of the hosts (RFC 5321 §5.1). A source skips those that it could not reach lately, and
 *   tries those that refused it last: a host that rejects one of our addresses may accept another.
 */
import type { Cache, MaybePromise } from '../../../base/flow/cache.ts'
import { type Cidr, parseIp } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { MailHost } from '../../../protocols/dns/mx.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { StsPolicies } from '../../../protocols/mta-sts/policies.ts'
import type { Prepared, Routed } from '../contract.ts'
import { type LaneInfo, NO_SOURCE, type Source, sourceIp } from '../lanes/lanes.ts'
import { type LaneLimits, type ShapingTable, shippedShaping } from '../shaping/shaping-table.ts'
import { createDestinations, type Destination, DownHosts, preferred } from './destinations.ts'
import { type HostTls, type HostTlsResult, hostTls, REPORT_TLS, relayTls, senderTls } from './tls-policy.ts'
import type { TlsResults } from './tls-results.ts'

/** Where mail goes: to one server, or to the recipients' own. */
export type Routing =
  | {
      kind: 'relay'
      host: string
      port: number
      auth: RelayLogin | null
      /** At a time from one source; where a relay refuses some of them, pacing reduces their number. */
      connections: number
    }
  | {
      kind: 'direct'
      port: number
      resolver: Resolver
      allow: readonly Cidr[]
      /** Null: MTA-STS is not used. */
      policies?: StsPolicies | null
    }

interface RelayLogin {
  user: string
  password: string
  /** The password is sent whatever the relay's certificate. */
  allowUnverified?: boolean
}

export interface RouteParts {
  routing: Routing
  clock: Clock
  random(): number
  /**
   * The address that a delivery is sent from, the same for all of a group at a time; null and default: the system's
   * choice. `reaches`: whether the destination has an address that can be reached from that one.
   */
  sourceOf?(
    delivery: Routed,
    reaches: (ip: string) => boolean,
    site: string,
  ): MaybePromise<Source | null | typeof NO_SOURCE>
  /** Limits by provider. Default: those of the shipped file. */
  shaping?(): ShapingTable
  /** The limits of a site with an operator's orders over them; default: as they are. */
  limitsOf?(site: string, limits: LaneLimits): LaneLimits
  tlsResults?: TlsResults
}

/** What one attempt sends, and where. */
export interface Job {
  lane: LaneInfo
  domain: string
  /** Null with a relay. */
  destination: Destination | null
  provider: string
  prepared: Extract<Prepared, { kind: 'send' }>
  recipient: string
  beforeFinalDot: () => Promise<void>
}

/** A host under the name that its certificate must have. */
export interface Host {
  name: string
  tlsRules(): HostTls | Promise<HostTlsResult>
}

/** One address to connect to. */
export interface Target extends Host {
  address: string
}

/** A relay is the operator's to load: only connections are bounded. */
const relaySite = (connections: number): Pick<LaneInfo, 'site' | 'provider' | 'limits'> => ({
  site: 'relay',
  provider: 'Other',
  limits: { connections, messagesPerConnection: 100, messagesPerSecond: null },
})
/** Addresses tried in one attempt: with half a minute for each it stays within minutes. */
const ADDRESSES_PER_ATTEMPT_MAX = 8

export class Routes {
  /** Null with a relay. */
  readonly destinations: Cache<Destination> | null
  readonly #parts: RouteParts
  readonly #relay: ReturnType<typeof relaySite> | null
  readonly #down: DownHosts

  constructor(parts: RouteParts) {
    const { routing, clock, random, shaping = shippedShaping } = parts
    this.#parts = parts
    this.#down = new DownHosts(clock)
    this.#relay = routing.kind === 'relay' ? relaySite(routing.connections) : null
    this.destinations =
      routing.kind === 'direct'
        ? createDestinations({
            resolver: routing.resolver,
            clock,
            random,
            allow: routing.allow,
            shaping,
          })
        : null
  }

  async laneOf(delivery: Routed): Promise<LaneInfo> {
    const destination = (await this.destinations?.get(delivery.recipient_domain)) ?? null
    // One of the two, by the kind of routing.
    const { site, provider, limits } = (destination ?? this.#relay) as ReturnType<typeof relaySite>
    const reaches = (ip: string) => this.#reaches(ip, destination)
    const source = (await this.#parts.sourceOf?.(delivery, reaches, site)) ?? null
    const from = source === NO_SOURCE ? NO_SOURCE : (source?.ip ?? 'any')
    return { name: `${from}/${site}`, source, site, provider, limits: this.#ordered(site, limits) }
  }

  /** The limits of a lane as they are now. */
  limitsOf({ site }: LaneInfo): LaneLimits {
    const limits = this.#relay?.limits ?? (this.#parts.shaping ?? shippedShaping)().limitsOf(site)
    return this.#ordered(site, limits)
  }

  #ordered(site: string, limits: LaneLimits): LaneLimits {
    return this.#parts.limitsOf?.(site, limits) ?? limits
  }

  #reaches(ip: string, destination: Destination | null): boolean {
    const { routing } = this.#parts
    const from = parseIp(ip)?.family
    if (routing.kind === 'relay') return (parseIp(routing.host)?.family ?? from) === from
    if (destination?.found.kind !== 'hosts') return true
    return destination.found.hosts.some(({ addresses }) => addresses.some(({ family }) => family === from))
  }

  /** The hosts of the best preference, whose open connections serve the job. */
  preferredHosts(job: Job): Host[] {
    const { routing } = this.#parts
    if (routing.kind === 'relay') return [relayTarget(job, routing)]
    if (job.destination?.found.kind !== 'hosts') return []
    return preferred(job.destination.found.hosts).map((host) => ({
      name: host.exchange,
      tlsRules: () => this.#rulesOf(job, host),
    }))
  }

  /**
   * The addresses in the order to try them. Of those that refused us lately only one is tried, after all others: the one
   * that did so first, as some attempt must find out that it has ended.
   */
  targetsOf(job: Job): Target[] {
    const targets = this.#allTargets(job)
    const refusedUntil = (target: Target) => this.#down.refusedUntil(pathOf(job, target))
    const refusing = targets.filter((target) => refusedUntil(target) > 0)
    if (refusing.length === 0) return targets
    const [first] = refusing.sort((a, b) => refusedUntil(a) - refusedUntil(b))
    return [...targets.filter((target) => !refusing.includes(target)), ...(first ? [first] : [])]
  }

  #allTargets(job: Job): Target[] {
    const { routing } = this.#parts
    if (routing.kind === 'relay') return [relayTarget(job, routing)]
    if (job.destination?.found.kind !== 'hosts') return []
    const source = sourceIp(job.lane)
    const family = source === null ? undefined : parseIp(source)?.family
    return job.destination.found.hosts
      .flatMap((host) =>
        host.addresses
          .filter((address) => family === undefined || address.family === family)
          .map(({ address }) => ({
            address,
            name: host.exchange,
            tlsRules: () => this.#rulesOf(job, host),
          })),
      )
      .slice(0, ADDRESSES_PER_ATTEMPT_MAX)
  }

  /** The TLS rules of a host in direct mode, looked up once while its destination is remembered. */
  #rulesOf({ destination, domain, prepared }: Job, host: MailHost): HostTls | Promise<HostTlsResult> {
    const { routing, clock } = this.#parts
    if (routing.kind === 'relay' || !destination) return senderTls(prepared.tls)
    if (prepared.tls.isTlsReport) return REPORT_TLS
    const key = `${host.exchange} ${prepared.tls.required} ${prepared.tls.verify}`
    const known = destination.tls.get(key)
    if (known) return known
    const { resolver, policies = null, port } = routing
    const rules = hostTls({ resolver, policies, port, clock }, domain, host, prepared.tls).then((result) => {
      if ('refused' in result) {
        if (result.localFault !== undefined) destination.tls.delete(key)
        else this.#reportRefused(domain, host, result)
      }
      return result
    })
    destination.tls.set(key, rules)
    return rules
  }

  #reportRefused(
    domain: string,
    { exchange }: MailHost,
    { policy, result }: Extract<HostTlsResult, { refused: string }>,
  ): void {
    const policyDomain = policy === 'tlsa' ? exchange : domain
    // No connection was tried, so that no address was chosen.
    const about = { recipientDomain: domain, sendingIp: '', policyDomain, policyType: policy }
    this.#parts.tlsResults?.record({ ...about, mxHost: exchange, result })
  }

  /** Why the address is not tried from this source now; null: it is tried. */
  downReason(job: Job, target: Target): string | null {
    return this.#down.reason(pathOf(job, target))
  }

  /** It took a connection. */
  reached(job: Job, target: Target): void {
    this.#down.reached(pathOf(job, target))
  }

  /** It took no connection. */
  unreachable(job: Job, target: Target, reason: string): void {
    this.#down.unreachable(pathOf(job, target), reason)
  }

  /** A server answered there and took no mail. */
  refused(job: Job, target: Target, reason: string): void {
    this.#down.refused(pathOf(job, target), reason)
  }
}

const relayTarget = ({ prepared }: Job, { host, auth }: Extract<Routing, { kind: 'relay' }>): Target => ({
  address: host,
  name: host,
  tlsRules: () => (auth ? relayTls(host, auth) : senderTls(prepared.tls)),
})

/** What can be down: the path from a source to an address. */
const pathOf = ({ lane }: Job, { address }: Target) => `${sourceIp(lane) ?? 'any'} ${address}`
