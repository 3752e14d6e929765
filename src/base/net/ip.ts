/**
 * IP addresses as numbers: what kind of network an address belongs to, and whether it lies in a CIDR range.
 *
 * Addresses that contain another address are classified by the inner one where packets really reach it (IPv4-mapped,
 * NAT64), and are never public where the mechanism is deprecated and only of use to an attacker (6to4, Teredo,
 * IPv4-compatible). Text forms that some libraries read in their own way (octal, hexadecimal
 * and decimal IPv4) are not addresses here.
 */
import { isIPv4, isIPv6 } from 'node:net'

export interface IpAddress {
  family: 4 | 6
  /** The address as one number: 32 bits for IPv4, 128 for IPv6. */
  bits: bigint
}

export interface Cidr {
  family: 4 | 6
  /** First address of the range; the bits after the prefix are zero. */
  network: bigint
  prefixLength: number
}

export type AddressKind =
  | 'public'
  | 'unspecified'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'shared' // carrier-grade NAT, RFC 6598
  | 'multicast'
  | 'documentation'
  | 'benchmarking'
  | 'transition' // 6to4, Teredo, local NAT64, IPv4-compatible
  | 'reserved'
  | 'invalid'

const IPV4_MAPPED = 0xffffn // upper 96 bits of ::ffff:0:0/96, RFC 4291 §2.5.5.2
const LOW_32_BITS = 0xffff_ffffn

/** Reads an address; an IPv4-mapped one becomes IPv4, a zone ("%eth0") is dropped. Null: not an address. */
export function parseIp(text: string): IpAddress | null {
  if (isIPv4(text)) return { family: 4, bits: ipv4Bits(text) }
  if (!isIPv6(text)) return null
  const bits = ipv6Bits(text.split('%', 1)[0] as string)
  if (bits >> 32n === IPV4_MAPPED) return { family: 4, bits: bits & LOW_32_BITS }
  return { family: 6, bits }
}

function ipv4Bits(text: string): bigint {
  return text.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)
}

function ipv6Bits(text: string): bigint {
  const [head = '', tail] = text.split('::')
  const left = hextets(head)
  const right = tail === undefined ? [] : hextets(tail)
  const zeros = new Array<bigint>(8 - left.length - right.length).fill(0n)
  return [...left, ...zeros, ...right].reduce((bits, part) => (bits << 16n) | part, 0n)
}

/** The 16-bit groups of one side of "::"; a dotted quad at the end counts as two. */
function hextets(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [BigInt(`0x${part}`)]
    const quad = ipv4Bits(part)
    return [quad >> 16n, quad & 0xffffn]
  })
}

/**
 * Reads "10.0.0.0/8", "fd00::/8" or a bare address (a range of one). Bits after the prefix are cleared.
 * Null when the text is neither, or the prefix is too long. RFC 4632 §3.1, RFC 4291 §2.3.
 */
export function parseCidr(text: string): Cidr | null {
  const [host = '', length, ...rest] = text.trim().split('/')
  const address = parseIp(host)
  if (address === null || rest.length > 0 || host.includes('%')) return null
  const width = address.family === 4 ? 32 : 128
  if (length !== undefined && !/^\d{1,3}$/.test(length)) return null
  let prefixLength = length === undefined ? width : Number(length)
  // "::ffff:10.0.0.0/104" is written with IPv6's width but means IPv4.
  if (length !== undefined && address.family === 4 && host.includes(':')) prefixLength -= 96
  if (prefixLength < 0 || prefixLength > width) return null
  const network = truncate(address.bits, width, prefixLength)
  return { family: address.family, network, prefixLength }
}

/**
 * The one text for a range that `parseCidr` reads: IPv4-mapped as IPv4, IPv6 as RFC 5952 writes it, bits after the prefix
 * cleared, no prefix for a single address. Null when the text is no range.
 */
export function canonicalCidr(text: string): string | null {
  const cidr = parseCidr(text)
  if (cidr === null) return null
  const { family, network, prefixLength } = cidr
  const address = family === 4 ? ipv4Text(network) : ipv6Text(network)
  return prefixLength === (family === 4 ? 32 : 128) ? address : `${address}/${prefixLength}`
}

/** The one text of an address; null: it is none. */
export const canonicalIp = (text: string): string | null =>
  parseIp(text) === null ? null : canonicalCidr(text.split('%', 1)[0] as string)

const ipv4Text = (bits: bigint) => [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.')

function ipv6Text(bits: bigint): string {
  const groups = Array.from({ length: 8 }, (_, at) =>
    ((bits >> BigInt(112 - 16 * at)) & 0xffffn).toString(16),
  )
  // The URL standard serialises addresses as RFC 5952 does.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

function truncate(bits: bigint, width: number, prefixLength: number): bigint {
  const free = BigInt(width - prefixLength)
  return (bits >> free) << free
}

/** Whether `ip` lies in the range; IPv4-mapped addresses match IPv4 ranges. False for a text that is no address. */
export function cidrContains(cidr: Cidr, ip: string): boolean {
  const address = parseIp(ip)
  return address !== null && contains(cidr, address)
}

function contains(cidr: Cidr, address: IpAddress): boolean {
  if (cidr.family !== address.family) return false
  return truncate(address.bits, address.family === 4 ? 32 : 128, cidr.prefixLength) === cidr.network
}

/** Whether `ip` lies in one of the ranges. */
export function anyCidrContains(cidrs: readonly Cidr[], ip: string): boolean {
  const address = parseIp(ip)
  return address !== null && cidrs.some((cidr) => contains(cidr, address))
}

// IANA's registries of special-purpose addresses (RFC 6890); the first range that fits decides.
const SPECIAL_RANGES: readonly (readonly [Cidr, AddressKind])[] = (
  [
    ['0.0.0.0/32', 'unspecified'],
    ['0.0.0.0/8', 'reserved'], // "this network", which Linux delivers to itself
    ['10.0.0.0/8', 'private'],
    ['100.64.0.0/10', 'shared'],
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link-local'], // cloud metadata services too
    ['172.16.0.0/12', 'private'],
    ['192.0.0.0/24', 'reserved'],
    ['192.0.2.0/24', 'documentation'],
    ['192.88.99.0/24', 'transition'], // 6to4 relays, RFC 7526
    ['192.168.0.0/16', 'private'],
    ['198.18.0.0/15', 'benchmarking'],
    ['198.51.100.0/24', 'documentation'],
    ['203.0.113.0/24', 'documentation'],
    ['224.0.0.0/4', 'multicast'],
    ['240.0.0.0/4', 'reserved'], // 255.255.255.255 too
    ['::/128', 'unspecified'],
    ['::1/128', 'loopback'],
    ['::/96', 'transition'], // IPv4-compatible, RFC 4291 §2.5.5.1
    ['64:ff9b:1::/48', 'transition'], // NAT64 of one's own network, RFC 8215
    ['100::/64', 'reserved'], // discard, RFC 6666
    ['2001::/32', 'transition'], // Teredo, RFC 4380
    ['2001:2::/48', 'benchmarking'],
    ['2001::/23', 'reserved'], // IETF protocol assignments, ORCHID among them
    ['2001:db8::/32', 'documentation'],
    ['2002::/16', 'transition'], // 6to4, RFC 3056
    ['3fff::/20', 'documentation'], // RFC 9637
    ['fc00::/7', 'private'],
    ['fe80::/10', 'link-local'],
    ['fec0::/10', 'private'], // site-local, RFC 3879
    ['ff00::/8', 'multicast'],
  ] as const
).map(([text, kind]) => [parseCidr(text) as Cidr, kind] as const)

const NAT64 = parseCidr('64:ff9b::/96') as Cidr // RFC 6052 §2.1
const GLOBAL_UNICAST = parseCidr('2000::/3') as Cidr // all that IANA gives out so far, RFC 4291 §2.4

/** What kind of network an address belongs to; 'invalid' when `ip` is not an address at all. */
export function classifyAddress(ip: string): AddressKind {
  const address = parseIp(ip)
  return address === null ? 'invalid' : kindOf(address)
}

function kindOf(address: IpAddress): AddressKind {
  // A DNS64 resolver makes such addresses for every IPv4-only host, so the public ones must stay reachable.
  if (contains(NAT64, address)) return kindOf({ family: 4, bits: address.bits & LOW_32_BITS })
  for (const [range, kind] of SPECIAL_RANGES) if (contains(range, address)) return kind
  if (address.family === 6 && !contains(GLOBAL_UNICAST, address)) return 'reserved'
  return 'public'
}

/** Whether a connection to `ip` leaves for the public internet; false for everything special or unreadable. */
export function isPublicAddress(ip: string): boolean {
  return classifyAddress(ip) === 'public'
}

/** For limits by client: an IPv6 caller owns a /64 at least (RFC 6177), so the network counts, not the address. */
export function networkOf(address: string): string {
  return isIPv6(address) ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address
}

/**
 * The address itself and the networks around it, the widest last. IPv4: /32, /24, /20, the last being
 * what a small provider has; IPv6: /64, /56, /48, which are what one customer may have (RFC 6177).
 */
export function networksOf(address: string): [string, string, string] {
  if (isIPv6(address)) {
    const [one, two, three, four = ''] = groupsOf(address)
    const upper = four.padStart(4, '0').slice(0, 2)
    return [networkOf(address), `${one}:${two}:${three}:${upper}00::/56`, `${one}:${two}:${three}::/48`]
  }
  const [one, two, three] = address.split('.')
  return [address, `${one}.${two}.${three}.0/24`, `${one}.${two}.${Number(three) & 0xf0}.0/20`]
}

/** The eight groups, each without leading zeros. */
function groupsOf(address: string): string[] {
  const [head = '', tail = ''] = address.split('::') as [string, string?]
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - left.length - right.length)).fill('0') : []
  return [...left, ...zeros, ...right].map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
}
