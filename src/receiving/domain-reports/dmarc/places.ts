/**
 * Where addresses belong: the name that DNS confirms for each, looked up when figures are asked for.
 *
 * Reverse zones belong to those who send, and may never answer; anybody can have reports about thousands of addresses sent to
 * a domain of theirs. So places are remembered, few are looked up at once, and fewer for one account.
 */
import { createKeyedGate } from '../../../base/flow/gate.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { createTtlCache } from '../../../protocols/dns/cache.ts'
import { confirmName } from '../../../protocols/dns/confirmed-name.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { rootDomainOf } from '../../../sending/domains/names/domain-names.ts'

/** An address with its place in the levels. */
export interface Place {
  source: string
  host: string
}

const UNKNOWN = 'unknown'
export const UNKNOWN_PLACE: Place = { source: UNKNOWN, host: UNKNOWN }

/** Some 300 bytes each. */
const REMEMBERED_MAX = 10_000
const REMEMBERED_SECONDS = 3_600
/** Without an answer of DNS. */
const NO_ANSWER_SECONDS = 600
const AT_ONCE = { openMax: 32, ownOpenMax: 8, waitingMax: 1_000 }
/** For an answer to wait for its places, and for the names of one address. */
const NAMING_MS = 5_000

export function createPlaces(
  { resolver, clock }: { resolver: Resolver; clock: Clock },
  namingMs = NAMING_MS,
) {
  const known = createTtlCache<Place>(REMEMBERED_MAX, clock)
  const gate = createKeyedGate(AT_ONCE)

  async function look(ip: string): Promise<Place> {
    // Another answer may have needed it meanwhile.
    const hit = known.get(ip)
    if (hit) return hit.value
    const signal = AbortSignal.timeout(namingMs)
    const bounded: Resolver = {
      query: (name, type, options = {}) => resolver.query(name, type, { ...options, signal }),
      close() {},
    }
    const { name, isKnown } = await confirmName(bounded, ip).catch(() => ({ name: '', isKnown: false }))
    const host = name.toLowerCase()
    const place = host === '' ? UNKNOWN_PLACE : { source: rootDomainOf(host), host }
    known.set(ip, place, isKnown ? REMEMBERED_SECONDS : NO_ANSWER_SECONDS)
    return place
  }

  /** Places that are not found in time are `unknown`. */
  return async (accountId: string, ips: readonly string[]): Promise<Map<string, Place>> => {
    const signal = AbortSignal.timeout(namingMs)
    const places = await Promise.all(
      ips.map(async (ip) => known.get(ip)?.value ?? (await gate.run(accountId, signal, () => look(ip)))),
    )
    return new Map(ips.map((ip, n) => [ip, places[n] ?? UNKNOWN_PLACE]))
  }
}
