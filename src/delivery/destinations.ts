/**
 * Where mail for a domain goes, remembered for a short while: its mail hosts, the site that they belong to,
 * and which of their addresses could not be reached lately, and from where.
 */
import { type Cache, createCache } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import type { Cidr } from '../base/ip.ts'
import { findMailHosts, type MailHost, type MxResult } from '../dns/mx.ts'
import type { Resolver } from '../dns/resolver.ts'
import { DEFAULT_LIMITS, type LaneLimits, type Provider, providerOf, siteOfHosts } from './providers.ts'
import type { HostTlsResult } from './tls-policy.ts'

export interface Destination {
  found: MxResult
  site: string
  provider: string
  limits: LaneLimits
  /** TLS rules per host and wish, looked up once while this is remembered. */
  tls: Map<string, Promise<HostTlsResult>>
}

/** The resolver keeps answers for their TTL; this only saves its work, and that of sorting hosts into sites. */
const REMEMBER_MS = 30_000
const DOMAINS_MAX = 20_000

export function createDestinations(options: {
  resolver: Resolver
  clock: Clock
  random(): number
  allow: readonly Cidr[]
  providers: readonly Provider[]
}): Cache<Destination> {
  const { resolver, clock, random, allow, providers } = options
  return createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: DOMAINS_MAX,
    load: async (domain) =>
      destinationOf(domain, await findMailHosts(resolver, domain, { random, allow }), providers),
  })
}

function destinationOf(domain: string, found: MxResult, providers: readonly Provider[]): Destination {
  const tls: Destination['tls'] = new Map()
  if (found.kind !== 'hosts') {
    return { found, site: domain, provider: 'Other', limits: DEFAULT_LIMITS, tls }
  }
  const names = preferred(found.hosts).map(({ exchange }) => exchange.toLowerCase())
  const [first = domain] = names
  const known = providerOf(first, providers)
  return {
    found,
    site: known?.site ?? siteOfHosts(names),
    provider: known?.displayName(domain, first) ?? 'Other',
    limits: known?.limits ?? DEFAULT_LIMITS,
    tls,
  }
}

/** The hosts of the best preference. */
export function preferred(hosts: readonly MailHost[]): MailHost[] {
  return hosts.filter(({ preference }) => preference === hosts[0]?.preference)
}

/** Failures to connect in a row that make a way count as down: one may be chance. */
const FAILURES_TO_DOWN = 3
/** So long a way that is down is not tried again, and one that refused us is tried last. */
const DOWN_MS = 60_000
const WAYS_MAX = 10_000

interface DownWay {
  failures: number
  until: number
  why: string
  /** A server answered there and took no mail: a bad greeting, a refused EHLO. */
  refused: boolean
}

/** Ways from a source to an address that did not take connections, or no mail, lately. */
export class DownHosts {
  private readonly clock: Clock
  private readonly entries = new Map<string, DownWay>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Why the way is not to be tried now; null: it is. */
  whyDown(way: string): string | null {
    const entry = this.current(way)
    return entry && entry.failures >= FAILURES_TO_DOWN ? entry.why : null
  }

  /** When the way stops counting as one that refused us, on the monotonic clock; 0: it does not count as such. */
  refusedUntil(way: string): number {
    const entry = this.current(way)
    return entry?.refused ? entry.until : 0
  }

  failed(way: string, why: string): void {
    this.set(way, { failures: (this.entries.get(way)?.failures ?? 0) + 1, why, refused: false })
  }

  /** Once is enough: such a way is not left out, only tried last. */
  refused(way: string, why: string): void {
    this.set(way, { failures: 0, why, refused: true })
  }

  worked(way: string): void {
    this.entries.delete(way)
  }

  private current(way: string): DownWay | null {
    const entry = this.entries.get(way)
    return entry && this.clock.monotonic() < entry.until ? entry : null
  }

  private set(way: string, entry: Omit<DownWay, 'until'>): void {
    this.entries.delete(way)
    this.entries.set(way, { ...entry, until: this.clock.monotonic() + DOWN_MS })
    const oldest = this.entries.keys().next()
    if (this.entries.size > WAYS_MAX && !oldest.done) this.entries.delete(oldest.value)
  }
}
