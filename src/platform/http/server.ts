/**
 * The HTTP server: listeners, routes made of operations, the machine description, health, the dashboard's files, and
 * what holds for every answer. Nothing here knows a resource; what the parts need is handed in.
 */
import { setMaxListeners } from 'node:events'
import type { ByteBudget } from '../../base/flow/byte-budget.ts'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { newId } from '../../base/ids.ts'
import { createFaultLog } from '../../base/process/fault-log.ts'
import type { Tracing } from '../traces/tracing.ts'
import type { FixedAnswer } from './answer/fixed-answer.ts'
import { createDispatch } from './dispatch.ts'
import { Exchange, type ExchangeParts } from './exchange.ts'
import { createFailedAttempts, type FailedAttempts } from './limits/failed-attempts.ts'
import type { Idempotency } from './limits/idempotency.ts'
import type { Limiter } from './limits/rate-limit.ts'
import { createListeners, type ListenersOptions } from './listening/listeners.ts'
import { describeApi, descriptionAnswer } from './openapi.ts'
import type { JsonSchema, Operation } from './operation.ts'
import { ownOperations } from './own-operations.ts'
import { createOriginPolicy, hostName } from './request/origin.ts'
import { createRemoteAddresses, type RemoteAddresses } from './request/remote-address.ts'
import type { FileSpool } from './request/uploads.ts'
import type { AuditLog } from './rights/audit.ts'
import type { Authenticator } from './rights/auth.ts'
import { createRouter } from './router.ts'

export interface HttpServerOptions extends ListenersOptions {
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
  authenticator: Authenticator
  limiter: Limiter
  /** Shared with SMTP, so that attempts count together. Default: its own. */
  failedAttempts?: FailedAttempts
  spool: FileSpool
  /** Answers to POSTs repeated under an Idempotency-Key; without it the header has no meaning. */
  idempotency?: Idempotency
  /** Memory for bodies that are not small; default: without a limit. */
  largeBodies?: ByteBudget
  /** Where changes are recorded; without it they are not. */
  audit?: AuditLog
  /** Resolves when other processes have applied the changes that were made here. */
  applied?: () => Promise<void>
  /** The dashboard, from `readPages`. */
  pages?: ReadonlyMap<string, FixedAnswer>
  /** GET of these paths and of all below them answers with the dashboard's index: its own routes, such as `/app`. */
  pagesPrefixes?: readonly string[]
  /** Strict-Transport-Security for a request over TLS to this host name (RFC 6797); null: none. */
  strictTransport?: (host: string) => Promise<string | null>
  /** The origin that visitors of a page at this host are sent to from plain HTTP; null: none. */
  httpsOrigin?: (host: string) => string | null
  /** Calls from other machines that carry secrets must be made over https, to `baseUrl`. */
  httpsOnly?: boolean
  /** Whether the service can do its work now; `reason` goes into the answer of `/health/ready`. */
  isReady?: () => Promise<{ ready: boolean; reason?: string }>
  /** Called once per answered request, for metrics. */
  observe?: (answered: Answered) => void
  /** Requests of known callers become spans. */
  tracing?: Tracing | undefined
  /** Whether the account has calls with unknown parameters refused. Default: no account. */
  isStrict?: (accountId: string) => MaybePromise<boolean>
}

export interface Answered {
  /** operationId, or undefined for pages and unknown paths. */
  operation: string | undefined
  method: string
  status: number
  durationMs: number
}

export interface HttpServer {
  /** Adds operations. Before `listen`. */
  register(operations: readonly Operation[]): void
  /** Resolves with the ports once every listener is open. */
  listen(): Promise<{ port: number; tlsPort?: number }>
  /** Refuses new requests, ends event streams, waits for running requests, then cuts the rest. */
  close(): Promise<void>
  /** The machine description of the operations so far. */
  describe(): JsonSchema
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { clock, logger, baseUrl, headerPrefix = 'X-Service-' } = options
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every open stream listens
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
    failedAttempts: options.failedAttempts ?? createFailedAttempts(clock),
    spool: options.spool,
    origin,
    remote,
    headerPrefix,
    headerPrefixAliases: options.headerPrefixAliases ?? ['X-Mailgun-'],
    authRealm: options.authRealm ?? 'API',
    closing: closing.signal,
    httpsOnly: options.httpsOnly === true ? baseUrl : undefined,
    idempotency: options.idempotency,
    largeBodies: options.largeBodies,
    tracing: options.tracing,
    audit: options.audit,
    applied: options.applied,
    isStrict: options.isStrict,
  })
  const router = createRouter({
    clock,
    faults,
    origin,
    pages: options.pages ?? new Map(),
    pagesPrefixes: options.pagesPrefixes ?? [],
    closing: closing.signal,
    secureAddress: createSecureAddress(options, remote),
  })
  const exchangeParts = {
    logger,
    requestIdName: `${headerPrefix}Request-Id`.toLowerCase(),
    beforeSend: createBeforeSend(options, remote),
  }
  const listeners = createListeners(options, (arrival) =>
    router.answer(new Exchange(newId(clock.now()), arrival, exchangeParts)),
  )
  const operations: Operation[] = []
  let description: Promise<FixedAnswer> | undefined
  let ended: Promise<void> | undefined

  const describe = () => describeApi(operations, { baseUrl, headerPrefix })

  function register(added: readonly Operation[]) {
    for (const spec of added) {
      operations.push(spec)
      for (const path of [spec.path, ...(spec.aliases ?? [])]) {
        router.add(spec.method, path, (exchange) => {
          exchange.operation = spec.id
          dispatch(spec, exchange).catch((error) => exchange.fail(error))
        })
      }
    }
    description = undefined
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

  return {
    register,
    describe,
    listen: listeners.listen,
    close() {
      closing.abort()
      ended ??= listeners.close()
      return ended
    },
  }
}

/**
 * Null where the visitor speaks TLS already, and for what a proxy passes on: it may terminate TLS itself without saying so,
 * and a redirect would lead the visitor in a circle.
 */
function createSecureAddress(
  { httpsOrigin }: HttpServerOptions,
  remote: RemoteAddresses,
): (exchange: Exchange) => string | null {
  return ({ arrival, headers, url }) => {
    if (httpsOrigin === undefined || remote.isSecure(arrival)) return null
    if (PROXY_FIELDS.some((name) => headers[name] !== undefined)) return null
    const host = hostName(headers.host)
    const origin = host === undefined ? null : httpsOrigin(host)
    return origin === null ? null : `${origin}${url.startsWith('/') ? url : '/'}`
  }
}

/** Fields that proxies add (RFC 9110 §7.6.3, RFC 7239). */
const PROXY_FIELDS = ['via', 'forwarded', 'x-forwarded-for', 'x-forwarded-proto'] as const

/** Logs and observes each answer, and adds Strict-Transport-Security. */
function createBeforeSend(
  { logger, observe, strictTransport }: HttpServerOptions,
  remote: RemoteAddresses,
): NonNullable<ExchangeParts['beforeSend']> {
  return (exchange) => {
    // Never the URL: paths carry tokens and addresses, queries carry anything.
    const level = () => (exchange.status >= 400 ? 'info' : 'debug')
    if (!exchange.watched && (observe || logger.isLevelEnabled(level()))) {
      exchange.watched = true
      exchange.arrival.onAnswered(() => {
        const { operation, method, status, startedAt } = exchange
        const answered = { operation, method, status, durationMs: performance.now() - startedAt }
        observe?.(answered)
        // A logger of the request's own costs more than all else here.
        if (logger.isLevelEnabled(level())) exchange.log[level()](answered, 'answered')
      })
    }
    return strictTransport && remote.isSecure(exchange.arrival)
      ? announceTls(exchange, strictTransport)
      : undefined
  }
}

/**
 * Makes browsers that use TLS keep to it, where the host's certificate allows that promise: for no longer than the
 * certificate lasts, whatever an operation promised by itself.
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
