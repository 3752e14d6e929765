/** Leads a request to its route: an operation, a page, or an answer of its own (preflight, 404, 405, 414, 503). */

import { MethodNotAllowed, NotFound, Unavailable } from '../../base/process/errors.ts'
import type { FaultLog } from '../../base/process/fault-log.ts'
import type { Clock } from '../../base/time/clock.ts'
import { answerTo } from './answer/errors.ts'
import { type FixedAnswer, sendFixed } from './answer/fixed-answer.ts'
import type { Exchange } from './exchange.ts'
import { PathTable, UriTooLong } from './path-table.ts'
import type { OriginPolicy } from './request/origin.ts'

/** Parameters may be in the query string, yet a long one belongs into the body. */
const URL_MAX_LENGTH = 16 * 1024

/** Answers one request; a route of the table. */
export type Route = (exchange: Exchange) => void

export interface RouterParts {
  clock: Clock
  faults: FaultLog
  origin: OriginPolicy
  /** Files of the dashboard by their paths. */
  pages: ReadonlyMap<string, FixedAnswer>
  /** GET of these paths and of all below them answers with the dashboard's index. */
  pagesPrefixes: readonly string[]
  /** Aborted: every request is refused. */
  closing: AbortSignal
  /** Where the visitor of a page belongs instead, over https; null: here. Default: always here. */
  secureAddress?: (exchange: Exchange) => string | null
}

export interface Router {
  /** A route of GET serves HEAD too. @throws Error as `PathTable.add` */
  add(method: string, path: string, route: Route): void
  answer(exchange: Exchange): void
}

export function createRouter(parts: RouterParts): Router {
  const { clock, faults, origin, pages, pagesPrefixes, closing } = parts
  const routes = new PathTable<Route>()

  function add(method: string, path: string, route: Route): void {
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
    const secure = parts.secureAddress?.(exchange) ?? null
    if (secure === null) {
      sendFixed(page, exchange)
      return
    }
    exchange.status = 308
    exchange.setHeader('location', secure)
    exchange.send(undefined)
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

  for (const [path, page] of pages) add('GET', path, (exchange) => sendPage(page, exchange))

  return {
    add,
    answer(exchange) {
      try {
        follow(exchange)
      } catch (error) {
        refuse(error, exchange)
      }
    },
  }
}

/** Without query and fragment; of a request target in absolute form its path (RFC 9112 §3.2.2). */
function pathOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}
