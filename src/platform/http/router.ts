/** Leads a request to its route: an operation, a page, or an answer of its own (preflight, 404, 405, 414, 503). */

import { ownText, remember } from '../../base/flow/cache.ts'
import { newId } from '../../base/ids.ts'
import { BadRequest, MethodNotAllowed, NotFound, Unavailable } from '../../base/process/errors.ts'
import type { FaultLog } from '../../base/process/fault-log.ts'
import type { Clock } from '../../base/time/clock.ts'
import { answerTo } from './answer/errors.ts'
import { type FixedAnswer, sendFixed } from './answer/reply.ts'
import type { Dispatch } from './dispatch.ts'
import { Exchange, type ExchangeParts } from './exchange.ts'
import type { Arrival } from './listening/arrival.ts'
import type { Operation } from './operation.ts'
import { hostName, type OriginPolicy } from './request/origin.ts'

/** Parameters may be in the query string, yet a long one belongs into the body. */
const URL_MAX_LENGTH = 16 * 1024

/** Answers one request; a route of the table. */
type Route = (exchange: Exchange) => void

export interface RouterParts {
  clock: Clock
  faults: FaultLog
  exchange: ExchangeParts
  dispatch: Dispatch
  origin: OriginPolicy
  /** Files of the dashboard by their paths. */
  pages: ReadonlyMap<string, FixedAnswer>
  /** GET of these paths and of all below them answers with the dashboard's index. */
  pagesPrefixes: readonly string[]
  /** Aborted: every request is refused. */
  closing: AbortSignal
  /** The origin that visitors of a page at this host are sent to from plain HTTP; null: none. */
  httpsOrigin(host: string): string | null
}

export type Router = ReturnType<typeof createRouter>

export function createRouter(parts: RouterParts) {
  const { clock, faults, dispatch, origin, pages, pagesPrefixes, closing } = parts
  const routes = new PathTable<Route>()

  function addRoute(method: string, path: string, route: Route): void {
    routes.add(method, path, route)
    if (method === 'GET') routes.add('HEAD', path, route)
  }

  /** @throws what `refuse` answers */
  function follow(exchange: Exchange): void {
    const cors = origin.corsHeaders(exchange.headers)
    if (cors !== undefined) exchange.setHeaders(cors)
    if (closing.aborted) {
      exchange.setHeader('connection', 'close')
      throw new Unavailable()
    }
    if (exchange.url.length > URL_MAX_LENGTH) throw new UriTooLong()
    const path = pathOf(exchange.url)
    const found = routes.find(exchange.method, path)
    if (found === null) {
      answerUnrouted(exchange, path)
    } else {
      exchange.path = found.path
      found.value(exchange)
    }
  }

  /**
   * Pages are for browsers, which follow a redirect; operations are not redirected: clients would lose the body, and have
   * sent their key already.
   */
  function sendPage(page: FixedAnswer, exchange: Exchange): void {
    const secure = secureAddress(exchange)
    if (secure === null) {
      sendFixed(page, exchange)
      return
    }
    exchange.status = 308
    exchange.setHeader('location', secure)
    exchange.send(undefined)
  }

  /**
   * Null where the visitor speaks TLS already, and for what a proxy passes on: it may terminate TLS itself without saying
   * so, and a redirect would lead the visitor in a circle.
   */
  function secureAddress({ arrival, headers, url }: Exchange): string | null {
    if (parts.exchange.remote.isSecure(arrival)) return null
    if (PROXY_FIELDS.some((name) => headers[name] !== undefined)) return null
    const host = hostName(headers.host)
    const https = host === undefined ? null : parts.httpsOrigin(host)
    return https === null ? null : `${https}${url.startsWith('/') ? url : '/'}`
  }

  /** Neither operation nor page: a preflight, a route of the dashboard itself, 405 or 404. */
  function answerUnrouted(exchange: Exchange, path: string): void {
    const { method } = exchange
    const preflight = method === 'OPTIONS' ? origin.preflightHeaders(exchange.headers) : undefined
    if (preflight !== undefined) {
      exchange.status = 204
      exchange.setHeaders(preflight)
      exchange.send(undefined)
      return
    }
    const index = pages.get('/')
    const isPageRoute = pagesPrefixes.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))
    if (index !== undefined && isPageRoute && method === 'GET') {
      sendPage(index, exchange)
      return
    }
    const allowed = routes.methodsOf(path)
    if (allowed.length > 0) throw new MethodNotAllowed(allowed)
    // Not served: clients would differ in which of the two paths they sign, retry and compare.
    const bare = path.replace(/(?<!\/)\/+$/, '')
    const isKnown = bare !== path && routes.methodsOf(bare).length > 0
    throw new NotFound(undefined, isKnown ? { extra: { did_you_mean: bare } } : {})
  }

  function refuse(error: unknown, exchange: Exchange): void {
    if (error instanceof UriTooLong) {
      exchange.status = 414
      exchange.sendJson({ message: 'URI Too Long' })
      return
    }
    const { status, headers, body, ourFault } = answerTo(error, clock.now())
    if (ourFault && !(error instanceof Unavailable))
      faults.log(exchange.log, error, { status }, 'request failed')
    exchange.status = status
    exchange.setHeaders(headers)
    exchange.sendJson(body)
  }

  for (const [path, page] of pages) addRoute('GET', path, (exchange) => sendPage(page, exchange))

  return {
    /** A route of GET serves HEAD too. @throws Error as `PathTable.add` */
    add(spec: Operation): void {
      const route = (exchange: Exchange) => {
        exchange.operation = spec.id
        dispatch(spec, exchange).catch((error) => exchange.fail(error))
      }
      for (const path of [spec.path, ...(spec.aliases ?? [])]) addRoute(spec.method, path, route)
    },
    answer(arrival: Arrival): void {
      const exchange = new Exchange(newId(clock.now()), arrival, parts.exchange)
      try {
        follow(exchange)
      } catch (error) {
        refuse(error, exchange)
      }
    },
  }
}

/** Fields that proxies add (RFC 9110 §7.6.3, RFC 7239). */
const PROXY_FIELDS = ['via', 'forwarded', 'x-forwarded-for', 'x-forwarded-proto'] as const

/** Without query and fragment; of a request target in absolute form its path (RFC 9112 §3.2.2). */
function pathOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

/** Fixed first parts under /v3 that take precedence over `{domain}` (auth-limits.md section 1, rule 11). */
const RESERVED_HEADS = new Set([
  ...['domains', 'ips', 'ip_pools', 'ip_warmups', 'dynamic_pools', 'routes', 'lists', 'stats'],
])
/** Percent-encoded paging tokens and addresses. */
const PART_MAX_LENGTH = 4 * 1024

export interface Found<T> {
  value: T
  /** The variable parts by their names, decoded. */
  path: Readonly<Record<string, string>>
}

interface Node<T> {
  fixed: Map<string, Node<T>>
  variable: Node<T> | null
  routes: Map<string, { value: T; names: readonly string[] }>
}

/** A path, or a part of one, is longer than any route can match. */
export class UriTooLong extends Error {}

/** Results that are remembered: an application uses the same few paths. */
const KNOWN_MAX = 1_000
const KNOWN_MAX_LENGTH = 256

/**
 * The routes by method and path, and the methods of a path, which distinguish a 405 from a 404.
 *
 * Templates are parts between slashes; a part in braces matches any text but the empty one. A fixed part takes precedence
 * over a variable one; where it leads to no route, the variable one is tried. Parts of a path are percent-decoded once.
 */
export class PathTable<T> {
  readonly #root: Node<T> = emptyNode()
  readonly #known = new Map<string, Found<T>>()

  /** @throws Error if there is a route for this method and path */
  add(method: string, template: string, value: T): void {
    let node = this.#root
    const names: string[] = []
    for (const part of template.split('/')) {
      if (part.startsWith('{')) {
        names.push(part.slice(1, -1))
        node.variable ??= emptyNode()
        node = node.variable
      } else {
        const next: Node<T> = node.fixed.get(part) ?? emptyNode()
        node.fixed.set(part, next)
        node = next
      }
    }
    if (node.routes.has(method)) throw new Error(`two routes for ${method} ${template}`)
    node.routes.set(method, { value, names })
    // Also of an empty map a new table would be made.
    if (this.#known.size > 0) this.#known.clear()
  }

  /** Null: no route. @param path without its query @throws BadRequest for broken escapes; UriTooLong */
  find(method: string, path: string): Found<T> | null {
    const name = `${method} ${path}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (path.length > KNOWN_MAX_LENGTH) return this.#find(method, path)
    const found = this.#find(method, ownText(path))
    return found === null ? null : remember(this.#known, KNOWN_MAX, name, found)
  }

  #find(method: string, path: string): Found<T> | null {
    const parts = partsOf(path)
    const values: string[] = []
    const route = this.#lookUp(this.#root, method, parts, 0, values)
    if (!route) return null
    const named: Record<string, string> = {}
    for (let at = 0; at < values.length; at++) named[route.names[at] as string] = values[at] as string
    return { value: route.value, path: Object.freeze(named) }
  }

  #lookUp(
    node: Node<T>,
    method: string,
    parts: readonly string[],
    at: number,
    values: string[],
  ): { value: T; names: readonly string[] } | null {
    const part = parts[at]
    if (part === undefined) return node.routes.get(method) ?? null
    const fixed = node.fixed.get(part)
    const found = fixed ? this.#lookUp(fixed, method, parts, at + 1, values) : null
    if (found || node.variable === null || !fits(parts, at)) return found
    values.push(part)
    const rest = this.#lookUp(node.variable, method, parts, at + 1, values)
    if (!rest) values.pop()
    return rest
  }

  /** Methods of every template that matches the path, HEAD with GET; empty: unknown path. */
  methodsOf(path: string): string[] {
    const parts = partsOf(path)
    const methods = new Set<string>()
    let nodes = [this.#root]
    for (let at = 0; at < parts.length; at++) {
      nodes = nodes.flatMap((node) =>
        [
          node.fixed.get(parts[at] as string) ?? [],
          node.variable && fits(parts, at) ? node.variable : [],
        ].flat(),
      )
    }
    for (const { routes } of nodes) for (const method of routes.keys()) methods.add(method)
    return [...methods].sort()
  }
}

const emptyNode = <T>(): Node<T> => ({ fixed: new Map(), variable: null, routes: new Map() })

/**
 * Whether the part at this position can be a variable one. An empty part would make `/v3/example.com/bounces/` mean one
 * bounce without an address, and the first part of another resource is never a domain.
 */
function fits(parts: readonly string[], at: number): boolean {
  const part = parts[at] as string
  if (part === '') return false
  return at !== 2 || parts[1] !== 'v3' || !RESERVED_HEADS.has(part.toLowerCase())
}

function partsOf(path: string): string[] {
  const parts = path.split('/')
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as string
    if (part.includes('%')) parts[at] = decoded(part)
    if ((parts[at] as string).length > PART_MAX_LENGTH) throw new UriTooLong()
  }
  return parts
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (error) {
    throw new BadRequest('Bad Request', { cause: error })
  }
}
