/**
 * The HTTP listener: routes made of operations, the machine description, health, the dashboard's files, and
 * what holds for every answer. Nothing here knows a resource; what the parts need is handed in.
 */
import { setMaxListeners } from 'node:events'
import type { ServerOptions } from 'node:https'
import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import type { ByteBudget } from '../base/byte-budget.ts'
import type { Clock } from '../base/clock.ts'
import { MethodNotAllowed, NotFound, Unavailable } from '../base/errors.ts'
import { createFaultLog } from '../base/fault-log.ts'
import { newId } from '../base/ids.ts'
import type { Arrival } from './arrival.ts'
import type { AuditLog } from './audit.ts'
import type { Authenticator } from './auth.ts'
import { createDispatch } from './dispatch.ts'
import { answerTo } from './errors.ts'
import { Exchange } from './exchange.ts'
import type { FailedAttempts } from './failed-attempts.ts'
import { type FixedAnswer, sendFixed } from './fixed-answer.ts'
import type { Idempotency } from './idempotency.ts'
import { createListener, type Deadlines, type Listener } from './listener.ts'
import { describeApi, descriptionAnswer } from './openapi.ts'
import type { JsonSchema, Operation } from './operation.ts'
import { createOriginPolicy, hostName } from './origin.ts'
import { ownOperations } from './own-operations.ts'
import { PathTable, UriTooLong } from './path-table.ts'
import type { RateLimiter } from './rate-limit.ts'
import { createRemoteAddresses } from './remote-address.ts'
import { createThreadedListener } from './threaded-listener.ts'
import type { FileSpool } from './uploads.ts'

/** Parameters may come in the query string, yet a long one belongs into the body. */
const URL_MAX_LENGTH = 16 * 1024
/** Time for running requests to end once the server closes. */
const CLOSE_GRACE_MS = 10_000

export interface HttpServerOptions {
  host: string
  /** 0: any free one. */
  port: number
  /** A second listener with TLS for the same routes. */
  tls?: { port: number; options: ServerOptions }
  logger: Logger
  clock: Clock
  /** Public address, without a final slash: the base of links, and an own origin. */
  baseUrl: string
  /** Further public addresses of ours: tracking, storage. */
  otherBaseUrls?: readonly string[]
  /** Default `X-Service-`. */
  headerPrefix?: string
  /** Default `X-Mailgun-`. */
  headerPrefixAliases?: readonly string[]
  /** Default `API`. */
  authRealm?: string
  corsOrigins?: readonly string[]
  /** Of one client, on each listener; trusted proxies may have any number. Default: any number. */
  connectionsPerClientMax?: number
  /** Addresses and networks whose X-Forwarded-For and -Proto count. */
  trustedProxies?: readonly string[]
  authenticator: Authenticator
  limiter: RateLimiter
  /** Shared with other ways in, so that attempts count together. Default: its own. */
  failedAttempts?: FailedAttempts
  spool: FileSpool
  /** Answers to POSTs repeated under an Idempotency-Key; without it the header has no meaning. */
  idempotency?: Idempotency
  /** Memory for bodies that are not small; default: without a limit. */
  largeBodies?: ByteBudget
  /** Where changes are recorded; without it they are not. */
  audit?: AuditLog
  /** The dashboard, from `readPages`. */
  pages?: ReadonlyMap<string, FixedAnswer>
  /** GET of these paths and of all below them answers with the dashboard's index: its own routes, such as `/app`. */
  pagesPrefixes?: readonly string[]
  /** Strict-Transport-Security for a request over TLS to this host name (RFC 6797); null: none. */
  strictTransport?: (host: string) => Promise<string | null>
  /** Whether the service can do its work now; `reason` goes into the answer of `/health/ready`. */
  isReady?: () => Promise<{ ready: boolean; reason?: string }>
  /** Called once per answered request, for metrics. */
  observe?: (answered: Answered) => void
  deadlines?: Deadlines
  /** The listener without TLS has a thread of its own; default: where there is more than one processor. */
  thread?: boolean
}

export interface Answered {
  /** operationId, or undefined for pages and unknown paths. */
  operation: string | undefined
  method: string
  status: number
  durationMs: number
}

export interface HttpServer {
  /** Adds operations and the schemas they refer to. Before `listen`. */
  register(operations: readonly Operation[], schemas?: Readonly<Record<string, JsonSchema>>): void
  /** Resolves with the ports once every listener is open. */
  listen(): Promise<{ port: number; tlsPort?: number }>
  /** Refuses new requests, ends event streams, waits for running requests, then cuts the rest. */
  close(): Promise<void>
  /** The machine description as it stands. */
  describe(): JsonSchema
}

/** Answers one request; a route of the table. */
type Route = (exchange: Exchange) => void

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { clock, logger, baseUrl, headerPrefix = 'X-Service-', deadlines = {} } = options
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every open stream listens
  const operations: Operation[] = []
  const schemas: Record<string, JsonSchema> = {}
  const routes = new PathTable<Route>()
  const origin = createOriginPolicy({
    baseUrls: [baseUrl, ...(options.otherBaseUrls ?? [])],
    corsOrigins: options.corsOrigins ?? [],
  })
  const remote = createRemoteAddresses(options.trustedProxies ?? [])
  const faults = createFaultLog(clock)
  const dispatch = createDispatch({
    clock,
    faults,
    authenticator: options.authenticator,
    limiter: options.limiter,
    failedAttempts: options.failedAttempts,
    spool: options.spool,
    origin,
    remote,
    headerPrefix,
    headerPrefixAliases: options.headerPrefixAliases ?? ['X-Mailgun-'],
    authRealm: options.authRealm ?? 'API',
    closing: closing.signal,
    idempotency: options.idempotency,
    largeBodies: options.largeBodies,
    audit: options.audit,
  })
  const requestIdName = `${headerPrefix}Request-Id`.toLowerCase()
  const exchangeParts = { logger, requestIdName, beforeSend }
  let description: Promise<FixedAnswer> | undefined

  /** Every request, over TLS or not. */
  function answer(arrival: Arrival): void {
    const exchange = new Exchange(newId(clock.now()), arrival, exchangeParts)
    try {
      route(exchange)
    } catch (error) {
      refuse(error, exchange)
    }
  }

  /** @throws what `refuse` answers */
  function route(exchange: Exchange): void {
    const cors = origin.corsHeaders(exchange.headers)
    if (cors !== undefined) exchange.setHeaders(cors)
    if (closing.signal.aborted) {
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
    const index = options.pages?.get('/')
    const isPageRoute = options.pagesPrefixes?.some(
      (prefix) => path === prefix || path.startsWith(`${prefix}/`),
    )
    if (index !== undefined && isPageRoute && method === 'GET') {
      sendFixed(index, exchange)
      return
    }
    const allowed = routes.methodsOf(path)
    throw allowed.length === 0 ? new NotFound() : new MethodNotAllowed(allowed)
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

  function beforeSend(exchange: Exchange): Promise<void> | undefined {
    // Never the URL: paths carry tokens and addresses, queries carry anything.
    const level = () => (exchange.status >= 400 ? 'info' : 'debug')
    if (!exchange.watched && (options.observe || logger.isLevelEnabled(level()))) {
      exchange.watched = true
      exchange.arrival.onAnswered(() => {
        const { operation, method, status, startedAt } = exchange
        const answered = { operation, method, status, durationMs: performance.now() - startedAt }
        options.observe?.(answered)
        exchange.log[level()](answered, 'answered')
      })
    }
    return options.strictTransport && remote.isSecure(exchange.arrival)
      ? announceTls(exchange, options.strictTransport)
      : undefined
  }

  function register(added: readonly Operation[], addedSchemas: Readonly<Record<string, JsonSchema>> = {}) {
    Object.assign(schemas, addedSchemas)
    for (const spec of added) {
      operations.push(spec)
      for (const path of [spec.path, ...(spec.aliases ?? [])]) {
        addRoute(spec.method, path, (exchange) => {
          exchange.operation = spec.id
          dispatch(spec, exchange).catch((error) => exchange.fail(error))
        })
      }
    }
    description = undefined
  }

  function addRoute(method: string, path: string, run: Route): void {
    routes.add(method, path, run)
    if (method === 'GET') routes.add('HEAD', path, run)
  }

  for (const [path, page] of options.pages ?? []) {
    addRoute('GET', path, (exchange) => sendFixed(page, exchange))
  }
  register(
    ownOperations({
      isReady: options.isReady ?? (async () => ({ ready: true })),
      describe: () => {
        description ??= descriptionAnswer(describe())
        return description
      },
    }),
  )
  const describe = () => describeApi(operations, { baseUrl, headerPrefix, schemas })

  const { tls } = options
  const threaded = options.thread ?? availableParallelism() > 1
  const failed = (error: Error) => logger.error({ err: error }, 'the HTTP thread failed')
  const listening = {
    deadlines,
    connections: { perClientMax: options.connectionsPerClientMax, proxies: options.trustedProxies ?? [] },
  }
  const plain = threaded
    ? createThreadedListener({ ...listening, failed }, answer)
    : createListener(listening, answer)
  const secure = tls && createListener({ ...listening, tls: tls.options }, answer)
  const listeners: Listener[] = secure ? [plain, secure] : [plain]

  async function closeAll(): Promise<void> {
    closing.abort()
    const cut = clock.setTimer(deadlines.closeGraceMs ?? CLOSE_GRACE_MS, () => {
      for (const listener of listeners) listener.cut()
    })
    await Promise.all(listeners.map((listener) => listener.close())).finally(() => cut.cancel())
  }
  let ended: Promise<void> | undefined

  return {
    register,
    describe,
    async listen() {
      const port = await plain.listen(options.port, options.host)
      if (secure === undefined || tls === undefined) return { port }
      return { port, tlsPort: await secure.listen(tls.port, options.host) }
    },
    close() {
      ended ??= closeAll()
      return ended
    },
  }
}

/** Without query and fragment; of a request target in absolute form its path (RFC 9112 §3.2.2). */
function pathOf(url: string): string {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

/**
 * Tells browsers that come over TLS to do so from now on, where the host's certificate allows that promise: for no
 * longer than it lasts, whatever an operation promised by itself.
 */
async function announceTls(
  exchange: Exchange,
  strictTransport: (host: string) => Promise<string | null>,
): Promise<void> {
  const host = hostName(exchange.headers.host)
  // An answer without the promise is better than none.
  const promise = host === undefined ? null : await strictTransport(host).catch(() => null)
  if (promise !== null) exchange.setHeader('strict-transport-security', promise)
}
