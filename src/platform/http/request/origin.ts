/**
 * Where a request comes from: of which site the page is that makes it, and from which address and over which scheme.
 *
 * Cross-site requests: browsers attach cookies and remembered Basic credentials to requests that foreign pages make, so a
 * state-changing request from a foreign page is refused whatever its credentials, and session cookies count only under our
 * own host names (DNS rebinding).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { classifyAddress } from '../../../base/net/ip.ts'
import type { Arrival } from '../listening/arrival.ts'

export type OriginPolicy = ReturnType<typeof createOriginPolicy>

interface OriginOptions {
  /** The configured public addresses: API, tracking, storage. */
  baseUrls: readonly string[]
  /** `cors_origins`, such as `https://app.example.com`. */
  corsOrigins: readonly string[]
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export function createOriginPolicy(options: OriginOptions) {
  const own = options.baseUrls.map((url) => new URL(url))
  const ownOrigins = new Set(own.map((url) => url.origin))
  const ownNames = new Set(own.map((url) => url.hostname))
  const allowed = new Set(options.corsOrigins)

  /** True: `Host` is a configured or a loopback name. */
  const knowsHost = (headers: IncomingHttpHeaders): boolean => {
    const name = hostName(headers.host)
    return name !== undefined && (ownNames.has(name) || isLoopbackName(name))
  }
  /** Pages that we served ourselves, under any of our names. */
  const isOwnPage = (origin: string, headers: IncomingHttpHeaders) =>
    ownOrigins.has(origin) || (knowsHost(headers) && originHost(origin) === headers.host?.toLowerCase())
  /** Headers that let a configured origin read the answer; undefined where none is configured. */
  const corsHeaders = (headers: IncomingHttpHeaders): Record<string, string> | undefined => {
    const { origin } = headers
    if (allowed.size === 0) return undefined
    if (origin === undefined || !allowed.has(origin)) return { vary: 'Origin' }
    return { vary: 'Origin', 'access-control-allow-origin': origin }
  }

  return {
    knowsHost,
    corsHeaders,
    /** True: a page of another site makes this request and would change state. */
    refuses(method: string, headers: IncomingHttpHeaders): boolean {
      if (SAFE_METHODS.has(method)) return false
      const { origin } = headers
      if (origin !== undefined && allowed.has(origin)) return false
      if (headers['sec-fetch-site'] === 'cross-site') return true
      return origin !== undefined && !isOwnPage(origin, headers)
    },
    /** The answer to a configured origin's preflight; undefined for other origins. */
    preflightHeaders(headers: IncomingHttpHeaders): Record<string, string> | undefined {
      const { origin } = headers
      if (origin === undefined || !allowed.has(origin)) return undefined
      return {
        ...corsHeaders(headers),
        'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
        'access-control-allow-headers': 'Content-Type, x-requested-with, Authorization',
        'access-control-max-age': '600',
      }
    },
  }
}

function originHost(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

/** Name part of a Host header in lower case, IPv6 in brackets; undefined if it is none. */
export function hostName(host: string | undefined): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:/@?#\s]+)(?::\d{1,5})?$/i.exec(host ?? '')
  return match?.[1]?.toLowerCase()
}

/** `localhost` and its sub-domains never leave the machine (RFC 6761 §6.3). */
function isLoopbackName(name: string): boolean {
  if (name === 'localhost' || name.endsWith('.localhost') || name === '[::1]') return true
  return isIP(name) === 4 && name.startsWith('127.')
}

/** The facts that they are derived from. */
export type Origin = Pick<Arrival, 'remoteAddress' | 'isEncrypted' | 'headers'>

/** Entries of X-Forwarded-For that are read, from the right: longer chains of proxies do not exist. */
const HOPS_MAX = 16

export type RemoteAddresses = ReturnType<typeof createRemoteAddresses>

/**
 * `trusted` lists the proxies whose X-Forwarded-For and -Proto count, as addresses or CIDR networks.
 * @throws RangeError naming an entry that is neither.
 */
export function createRemoteAddresses(trusted: readonly string[]) {
  const isProxy = networkMatcher(trusted)
  const socketAddress = (request: Origin) => plainAddress(request.remoteAddress)

  /** True if the caller speaks TLS to us or to a trusted proxy. */
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
    /** The address of the caller: the nearest one that is not a trusted proxy. IPv4 in its plain form. */
    address: clientAddress,
    isSecure,
    /**
     * True if the request has crossed a network in the clear, as far as can be known: it comes from another machine, and a
     * trusted proxy that does not name the scheme gets the benefit of the doubt.
     */
    isExposed(request: Origin): boolean {
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
