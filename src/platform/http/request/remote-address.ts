/** The caller's address and scheme, from the connection or from trusted proxies. */
import { BlockList, isIP } from 'node:net'
import { classifyAddress } from '../../../base/net/ip.ts'
import type { Arrival } from '../listening/arrival.ts'

/** The facts that they are derived from. */
export type Origin = Pick<Arrival, 'remoteAddress' | 'isEncrypted' | 'headers'>

/** Entries of X-Forwarded-For that are read, from the right: longer chains of proxies do not exist. */
const HOPS_MAX = 16

export interface RemoteAddresses {
  /** The address of the caller: the nearest one that is not a trusted proxy. IPv4 in its plain form. */
  address(request: Origin): string
  /** True if the caller speaks TLS to us or to a trusted proxy. */
  isSecure(request: Origin): boolean
  /**
   * True if the request has crossed a network in the clear, as far as can be known: it comes from another machine, and a
   * trusted proxy that does not name the scheme gets the benefit of the doubt.
   */
  isExposed(request: Origin): boolean
}

/**
 * `trusted` lists the proxies whose X-Forwarded-For and -Proto count, as addresses or CIDR networks.
 * @throws RangeError naming an entry that is neither.
 */
export function createRemoteAddresses(trusted: readonly string[]): RemoteAddresses {
  const isProxy = networkMatcher(trusted)
  const socketAddress = (request: Origin) => plainAddress(request.remoteAddress)

  const isSecure = (request: Origin) => {
    if (request.isEncrypted) return true
    const protocol = headerText(request, 'x-forwarded-proto').split(',').at(-1)?.trim().toLowerCase()
    return protocol === 'https' && isProxy(socketAddress(request))
  }

  function clientAddress(request: Origin): string {
    let address = socketAddress(request)
    if (!isProxy(address)) return address
    const hops = headerText(request, 'x-forwarded-for').split(',').slice(-HOPS_MAX).reverse()
    for (const hop of hops) {
      const claimed = plainAddress(withoutPort(hop.trim()))
      if (isIP(claimed) === 0) return address
      address = claimed
      if (!isProxy(address)) return address
    }
    return address
  }

  return {
    address: clientAddress,
    isSecure,
    isExposed(request) {
      if (isSecure(request) || classifyAddress(clientAddress(request)) === 'loopback') return false
      return headerText(request, 'x-forwarded-proto') !== '' || !isProxy(socketAddress(request))
    },
  }
}

/**
 * Whether an address in its plain form is in one of the networks.
 * @throws RangeError as `networkList`
 */
export function networkMatcher(networks: readonly string[]): (address: string) => boolean {
  if (networks.length === 0) return () => false
  const list = networkList(networks)
  return (address) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** A list of `1.2.3.4`, `10.0.0.0/8`, `fd00::/8` as one matcher. */
export function networkList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/', 2)
    const family = isIP(address)
    const bits = prefix === undefined ? (family === 6 ? 128 : 32) : Number(prefix)
    const valid = /^\d{1,3}$/.test(prefix ?? '0') && bits <= (family === 6 ? 128 : 32)
    if (family === 0 || !valid) throw new RangeError(`"${network}" is neither an address nor a network`)
    list.addSubnet(address, bits, family === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

const headerText = (request: Origin, name: string) => String(request.headers[name] ?? '')

/** `::ffff:192.0.2.1`, an IPv4 peer on a socket of both families (RFC 4291 §2.5.5.2), as `192.0.2.1`. */
export const plainAddress = (address: string) =>
  address.startsWith(':') ? address.replace(/^::ffff:(?=\d+\.)/i, '') : address

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  const match = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(hop)
  return match?.[1] ?? match?.[2] ?? hop
}
