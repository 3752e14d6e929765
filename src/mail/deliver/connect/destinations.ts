/**
 * Where mail for a domain goes, remembered for a short time: its mail hosts, their site, and which of their addresses
 * could not be reached lately, and from which source.
 */
import { type Cache, createCache } from '../../../base/flow/cache.ts'
import type { Cidr } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { findMailHosts, type MailHost, type MxResult } from '../../../protocols/dns/mx.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { LaneLimits, ShapingTable } from '../shaping/shaping-table.ts'
import { siteOfHosts } from './site-of-hosts.ts'
import type { HostTlsResult } from './tls-policy.ts'

export interface Destination {
  found: MxResult
  site: string
  provider: string
  limits: LaneLimits
  /** TLS rules per host and sender's policy, looked up once while this is remembered. */
  tls: Map<string, Promise<HostTlsResult>>
}

/** The resolver keeps answers for their TTL; this only saves the work of sorting hosts into sites. */
const REMEMBER_MS = 30_000
const DOMAINS_MAX = 20_000

export function createDestinations(options: {
  resolver: Resolver
  clock: Clock
  random(): number
  allow: readonly Cidr[]
  shaping(): ShapingTable
}): Cache<Destination> {
  const { resolver, clock, random, allow, shaping } = options
  return createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: DOMAINS_MAX,
    load: async (domain) =>
      destinationOf(domain, await findMailHosts(resolver, domain, { random, allow }), shaping()),
  })
}

function destinationOf(domain: string, found: MxResult, shaping: ShapingTable): Destination {
  const tls: Destination['tls'] = new Map()
  if (found.kind !== 'hosts') {
    return { found, site: domain, provider: 'Other', limits: shaping.limitsOf(domain), tls }
  }
  const names = preferred(found.hosts).map(({ exchange }) => exchange.toLowerCase())
  const [first = domain] = names
  const known = shaping.siteOf(first)
  return {
    found,
    site: known?.site ?? siteOfHosts(names),
    provider: known?.displayName(domain, first) ?? 'Other',
    limits: known?.limits ?? shaping.default,
    tls,
  }
}

/** The hosts of the best preference. */
export function preferred(hosts: readonly MailHost[]): MailHost[] {
  return hosts.filter(({ preference }) => preference === hosts[0]?.preference)
}

/** A path is down after this many failures to connect in a row: one may be chance. */
const FAILURES_TO_DOWN = 3
/** For this long a path that is down is not tried, and one that refused us is tried last. */
const DOWN_MS = 60_000
const PATHS_MAX = 10_000

interface DownPath {
  failures: number
  until: number
  reason: string
  /** A server answered there and took no mail: a bad greeting, a refused EHLO. */
  refused: boolean
}

/** Paths from a source to an address that took no connections, or no mail, lately. */
export class DownHosts {
  private readonly clock: Clock
  private readonly entries = new Map<string, DownPath>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Why the path is not tried now; null: it is. */
  reason(path: string): string | null {
    const entry = this.current(path)
    return entry && entry.failures >= FAILURES_TO_DOWN ? entry.reason : null
  }

  /** Until when the path counts as one that refused us, on the monotonic clock; 0: it does not. */
  refusedUntil(path: string): number {
    const entry = this.current(path)
    return entry?.refused ? entry.until : 0
  }

  unreachable(path: string, reason: string): void {
    this.set(path, { failures: (this.entries.get(path)?.failures ?? 0) + 1, reason, refused: false })
  }

  /** Once is enough: such a path is not skipped, only tried last. */
  refused(path: string, reason: string): void {
    this.set(path, { failures: 0, reason, refused: true })
  }

  reached(path: string): void {
    this.entries.delete(path)
  }

  private current(path: string): DownPath | null {
    const entry = this.entries.get(path)
    return entry && this.clock.monotonic() < entry.until ? entry : null
  }

  private set(path: string, entry: Omit<DownPath, 'until'>): void {
    this.entries.delete(path)
    this.entries.set(path, { ...entry, until: this.clock.monotonic() + DOWN_MS })
    const oldest = this.entries.keys().next()
    if (this.entries.size > PATHS_MAX && !oldest.done) this.entries.delete(oldest.value)
  }
}
