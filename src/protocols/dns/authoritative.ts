/**
 * Finds the authoritative servers of a name, so that a check can query them directly: when dig shows the right
 * record and the service a wrong one, the cause is nearly always an old cached answer.
 */
import { anyCidrContains, type Cidr, isPublicAddress } from '../../base/net/ip.ts'
import { normalizeName } from './names.ts'
import type { ServerAddress } from './query-transport.ts'
import type { Resolver } from './resolver.ts'

const DNS_PORT = 53
const SERVERS_MAX = 4 // two nearly always suffice, four allow for broken ones
const LABELS_MAX = 10 // levels above the name; hostile names have 127 labels

interface Authority {
  /** The zone that holds the name. */
  zone: string
  /** Addresses of its servers; usable as `servers` of a separate resolver. Never empty. */
  servers: ServerAddress[]
}

/**
 * Finds the zone that holds `name` by querying NS records upwards, and the addresses of its servers. Omits
 * addresses that are not public unless `allow` has them. Null when none is found.
 */
export async function findAuthority(
  resolver: Resolver,
  name: string,
  allow: readonly Cidr[] = [],
): Promise<Authority | null> {
  const labels = (normalizeName(name) ?? '').split('.').slice(-LABELS_MAX)
  for (let from = 0; from < labels.length; from++) {
    const zone = labels.slice(from).join('.')
    const answer = await resolver.query(zone, 'NS')
    // After a CNAME the servers are those of another zone, which know nothing of this one.
    if (answer.kind !== 'records' || answer.chain.length > 0) continue
    const servers = await addressesOf(resolver, answer.records.slice(0, SERVERS_MAX), allow)
    return servers.length > 0 ? { zone, servers } : null
  }
  return null
}

/** The first usable address of each host, IPv4 before IPv6: hosts without IPv6 are more common. */
async function addressesOf(
  resolver: Resolver,
  hosts: readonly string[],
  allow: readonly Cidr[],
): Promise<ServerAddress[]> {
  const usable = (address: string) => isPublicAddress(address) || anyCidrContains(allow, address)
  const found = await Promise.all(
    hosts.map(async (host) => {
      const v4 = (await resolver.query(host, 'A')).records.find(usable)
      return v4 ?? (await resolver.query(host, 'AAAA')).records.find(usable)
    }),
  )
  return found.filter((address) => address !== undefined).map((host) => ({ host, port: DNS_PORT }))
}
