/** The networks that a client's address is counted for: limits by address alone mean nothing where one client has many. */
import { isIPv6 } from 'node:net'

/** An IPv6 caller owns a /64 at least (RFC 6177), so the network counts, not the address. */
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
