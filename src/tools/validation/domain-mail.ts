/**
 * Whether domains receive mail: an MX record that names a host, or without MX records an address (RFC 5321 §5.1); a null MX
 * means that none is accepted (RFC 7505 §3). One query for most domains, three at most.
 *
 * Anybody with a key names the domains, so that the number of queries is bounded in all directions: answers are
 * remembered, equal questions of an account are asked once, few are open at a time, fewer of one account, and names below
 * one registered domain take turns. That keeps a list of made-up subdomains from becoming a flood at one foreign server, and
 * a list of domains whose servers do not answer from delaying other accounts.
 */
import { getDomain } from 'tldts'
import { createKeyedGate } from '../../base/flow/gate.ts'
import { pause, untilAborted } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import { createTtlCache } from '../../protocols/dns/cache.ts'
import type { DnsAnswer, Resolver } from '../../protocols/dns/resolver.ts'
import type { DomainMail } from './verdict.ts'

export type DomainMailLookup = ReturnType<typeof createDomainMailLookup>

/** About 10 MB. */
const REMEMBERED_MAX = 50_000
/** validation.md section 2 rule 6. */
const REMEMBER_SECONDS_MAX = 3_600
/** For answers with a shorter TTL, and for no answer. */
const REMEMBER_SECONDS_MIN = 60
/** A few of the resolver's 256: sending has priority. */
const OPEN_MAX = 32
/** Lookups of an account at once, whose further ones wait outside the common queue. */
const ACCOUNT_OPEN_MAX = 8
const WAITING_MAX = 2_000
/** Waiting for its turn included. */
const DEADLINE_MS = 15_000
/** Names below one registered domain: this many at once, then one in each interval. */
const ZONE_BURST = 20
const ZONE_INTERVAL_MS = 100
const ZONE_WAIT_MAX_MS = 10_000
const ZONES_MAX = 10_000

export function createDomainMailLookup(resolver: Pick<Resolver, 'query'>, clock: Clock) {
  const known = createTtlCache<DomainMail>(REMEMBERED_MAX, clock)
  const pending = new Map<string, Promise<DomainMail>>()
  const gates = createKeyedGate({ openMax: OPEN_MAX, ownOpenMax: ACCOUNT_OPEN_MAX, waitingMax: WAITING_MAX })
  const turns = createZoneTurns(clock)

  async function lookUp(accountId: string, domain: string): Promise<DomainMail> {
    const deadline = new AbortController()
    const timer = clock.setTimer(DEADLINE_MS, () => deadline.abort())
    const { signal } = deadline
    try {
      const waitMs = turns.waitMs(getDomain(domain, { allowPrivateDomains: false }) ?? domain)
      if (waitMs === null) return 'unknown'
      if (waitMs > 0) await pause(clock, waitMs, signal)
      return (await gates.run(accountId, signal, () => ask(domain, signal))) ?? 'unknown'
    } finally {
      timer.cancel()
    }
  }

  async function ask(domain: string, signal: AbortSignal): Promise<DomainMail> {
    // Another account may have asked meanwhile.
    const hit = known.get(domain)
    if (hit) return hit.value
    const begunAt = clock.monotonic()
    try {
      const { mail, ttlSeconds } = await query(resolver, domain, signal)
      known.set(domain, mail, Math.min(REMEMBER_SECONDS_MAX, Math.max(REMEMBER_SECONDS_MIN, ttlSeconds)))
      return mail
    } catch (error) {
      if (!signal.aborted) throw error
      // Not for other accounts if most of the time was spent in the queue of this one.
      if (clock.monotonic() - begunAt >= DEADLINE_MS / 2) known.set(domain, 'unknown', REMEMBER_SECONDS_MIN)
      return 'unknown'
    }
  }

  return {
    /** Rejects only when `signal` is aborted. */
    async of(accountId: string, domain: string, signal?: AbortSignal): Promise<DomainMail> {
      signal?.throwIfAborted()
      const hit = known.get(domain)
      if (hit) return hit.value
      const key = `${accountId} ${domain}`
      let lookup = pending.get(key)
      if (!lookup) {
        lookup = lookUp(accountId, domain).finally(() => pending.delete(key))
        pending.set(key, lookup)
      }
      return signal ? untilAborted(lookup, signal) : lookup
    },
  }
}

/** Not from the resolver's cache, which may hold answers for a day. */
const FRESH = { fresh: true } as const

async function query(
  resolver: Pick<Resolver, 'query'>,
  domain: string,
  signal: AbortSignal,
): Promise<{ mail: DomainMail; ttlSeconds: number }> {
  const mx = await resolver.query(domain, 'MX', { ...FRESH, signal })
  if (mx.kind === 'nxdomain') return { mail: 'refuses', ttlSeconds: mx.ttlSeconds }
  if (mx.kind === 'records') {
    const named = mx.records.some(({ exchange }) => exchange !== '')
    return { mail: named ? 'accepts' : 'refuses', ttlSeconds: mx.ttlSeconds }
  }
  if (mx.kind !== 'nodata') return { mail: 'unknown', ttlSeconds: 0 }
  let ttlSeconds = mx.ttlSeconds
  for (const type of ['A', 'AAAA'] as const) {
    const answer: DnsAnswer = await resolver.query(domain, type, { ...FRESH, signal })
    ttlSeconds = Math.min(ttlSeconds, answer.ttlSeconds)
    if (answer.kind === 'records') return { mail: 'accepts', ttlSeconds }
    if (answer.kind !== 'nodata' && answer.kind !== 'nxdomain') return { mail: 'unknown', ttlSeconds: 0 }
  }
  return { mail: 'refuses', ttlSeconds }
}

/** When the next query about a zone may begin. A zone is forgotten once its turn has passed. */
function createZoneTurns(clock: Clock) {
  const nextAt = new Map<string, number>()
  return {
    /** Takes a turn; null: too many wait for one. */
    waitMs(zone: string): number | null {
      const now = clock.monotonic()
      const earliest = now - ZONE_BURST * ZONE_INTERVAL_MS
      const at = Math.max(nextAt.get(zone) ?? earliest, earliest)
      if (at - now > ZONE_WAIT_MAX_MS) return null
      nextAt.delete(zone)
      nextAt.set(zone, at + ZONE_INTERVAL_MS)
      if (nextAt.size > ZONES_MAX) nextAt.delete(nextAt.keys().next().value as string)
      return Math.max(0, at - now)
    },
  }
}
