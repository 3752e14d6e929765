/**
 * Whether DNS says of a sending address what receivers look for: a reverse name that leads back to it, a name for EHLO that
 * exists (one of its own leads to the address), and an SPF record that permits it.
 */
import { parseIp } from '../../base/net/ip.ts'
import { confirmName } from '../../protocols/dns/confirmed-name.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { spfPermits } from '../../protocols/dns/spf-permits.ts'

export interface NamedAddress {
  ip: string
  /** Name for EHLO; null: the service's own. */
  helo: string | null
}

interface NameParts {
  resolver: Resolver
  hostname: string
  /** That the SPF records of sending domains include. */
  spfHost: string
}

/** What is wrong, a sentence each; null: DNS did not answer. */
export type NameFaults = readonly string[] | null

export async function nameFaults(parts: NameParts, address: NamedAddress): Promise<NameFaults> {
  const found = await Promise.all([
    reverseFaults(parts.resolver, address),
    heloFaults(parts, address),
    spfFaults(parts, address),
  ])
  return found.includes(null) ? null : found.flatMap((faults) => faults ?? [])
}

async function reverseFaults(resolver: Resolver, { ip }: NamedAddress): Promise<NameFaults> {
  const { fault, isKnown } = await confirmName(resolver, ip)
  if (!isKnown) return null
  return fault === null ? [] : [`${fault}.`]
}

export async function heloFaults(
  { resolver, hostname }: Pick<NameParts, 'resolver' | 'hostname'>,
  { ip, helo }: NamedAddress,
): Promise<NameFaults> {
  const name = helo ?? hostname
  const isV6 = parseIp(ip)?.family === 6
  const answers = await Promise.all([resolver.query(name, 'A'), resolver.query(name, 'AAAA')])
  if (answers.some(({ kind }) => !['records', 'nodata', 'nxdomain'].includes(kind))) return null
  const [v4, v6] = answers.map(({ records }) => records)
  const found = [...(v4 ?? []), ...(v6 ?? [])]
  if (found.length === 0) return [`${name}, which ${ip} names itself in EHLO, has no address.`]
  if (helo === null) return []
  const bits = parseIp(ip)?.bits
  const leads = ((isV6 ? v6 : v4) ?? []).some((address) => parseIp(address)?.bits === bits)
  return leads ? [] : [`${name}, which ${ip} names itself in EHLO, leads to ${found.slice(0, 4).join(', ')}.`]
}

export async function spfFaults(
  { resolver, spfHost }: Pick<NameParts, 'resolver' | 'spfHost'>,
  { ip }: NamedAddress,
): Promise<NameFaults> {
  const verdict = await spfPermits(resolver, spfHost, ip)
  switch (verdict) {
    case 'permits':
      return []
    case 'refuses':
      return [`The SPF record of ${spfHost} does not permit ${ip}.`]
    case 'none':
      return [`${spfHost} has no usable SPF record, which those of sending domains include.`]
    case 'unknown':
      return null
  }
}
