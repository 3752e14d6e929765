/**
 * Which of a destination's addresses are tried first, by their family.
 *
 * 1. Within one preference value of the MX records (RFC 5321 §5.1) the shaping's `prefer` of the provider orders the addresses, or
 *    leaves a family out. Without it IPv6 comes first, host by host (RFC 6724 §2.1).
 * 2. Where the system chooses the source address, IPv6 is left out until the address that it would choose has a name that
 *    leads back to it: large receivers refuse others. Destinations with no other address are tried all the same.
 *
 * Both are decided when a destination is looked up, which is remembered. The second needs DNS, which is never waited for: a
 * source that is not known yet counts as one without a name.
 */
import { createSocket } from 'node:dgram'
import { isPublicAddress } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import { confirmName } from '../../../protocols/dns/confirmed-name.ts'
import type { MailHost } from '../../../protocols/dns/mx.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { AddressPreference } from '../shaping/shaping-file.ts'

/** Hosts in the order of trying. A host with addresses of both families may come twice; empty: no family is left. */
export function byPreference(hosts: readonly MailHost[], prefer: AddressPreference | null): MailHost[] {
  if (prefer === null) return [...hosts]
  const wanted = prefer.startsWith('ipv4') ? 4 : 6
  const families = prefer.endsWith('-only') ? [wanted] : [wanted, wanted === 4 ? 6 : 4]
  return families
    .flatMap((family) =>
      hosts.map((host) => ({ ...host, addresses: host.addresses.filter((one) => one.family === family) })),
    )
    .filter(({ addresses }) => addresses.length > 0)
    .sort((a, b) => a.preference - b.preference)
}

/** How long a verdict on a source address counts. */
const CONFIRMED_MS = HOUR_MS
const UNCONFIRMED_MS = 10 * MINUTE_MS
/** After DNS gave no answer. */
const UNKNOWN_MS = MINUTE_MS
/** Sources of one host; privacy extensions change them. */
const SOURCES_MAX = 100

interface Verdict {
  isConfirmed: boolean
  /** Monotonic. */
  until: number
}

export type SystemSources = ReturnType<typeof createSystemSources>

/** @param sourceTowards the address that the system would choose for a destination; null: there is no way to it */
export function createSystemSources(parts: {
  resolver: Resolver
  clock: Clock
  sourceTowards?: (address: string) => Promise<string | null>
}) {
  const { resolver, clock, sourceTowards = systemSource } = parts
  const verdicts = new Map<string, Verdict>()

  function check(source: string, known: Verdict | undefined): void {
    const set = (isConfirmed: boolean, ms: number) =>
      verdicts.set(source, { isConfirmed, until: clock.monotonic() + ms })
    if (verdicts.size >= SOURCES_MAX) verdicts.clear()
    const isConfirmed = known?.isConfirmed ?? false
    // One look-up at a time.
    set(isConfirmed, UNKNOWN_MS)
    confirmName(resolver, source).then(
      ({ fault, isKnown }) => {
        if (isKnown) set(fault === null, fault === null ? CONFIRMED_MS : UNCONFIRMED_MS)
      },
      () => {},
    )
  }

  return {
    /** Whether IPv6 is left out for these hosts, where the system chooses the source address. Never rejects. */
    async avoidsIpv6(hosts: readonly MailHost[]): Promise<boolean> {
      const addresses = hosts.flatMap((host) => host.addresses)
      if (!addresses.some(({ family }) => family === 4)) return false
      // Others are of the operator's own networks.
      const target = addresses.find(({ address, family }) => family === 6 && isPublicAddress(address))
      if (target === undefined) return false
      const source = await sourceTowards(target.address)
      if (source === null || !isPublicAddress(source)) return true
      const known = verdicts.get(source)
      if (known === undefined || known.until <= clock.monotonic()) check(source, known)
      return !known?.isConfirmed
    },
  }
}

const ANY_PORT = 25

/** The source address of packets to `address`, by the routes of this machine; no packet is sent. Null: there is no way. */
export function systemSource(address: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket('udp6')
    const end = (source: string | null) => {
      socket.close()
      resolve(source)
    }
    socket.once('error', () => end(null))
    socket.connect(ANY_PORT, address, () => end(socket.address().address))
  })
}
