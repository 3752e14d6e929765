/**
 * The HTTP listener: routes made of operations, the machine description, health, the dashboard's files, and
 * what holds for every answer. Nothing here knows a resource; what the parts need is handed in.
 */
import { setMaxListeners } from 'node:events'
import { createServer as createHttpsServer, type Server as HttpsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { BadRequest, MethodNotAllowed, NotFound, Unavailable } from '../base/errors.ts'
import type { Authenticator } from './auth.ts'
import { createDispatch, discardBody } from './dispatch.ts'
import { answerTo } from './errors.ts'
import type { FailedAttempts } from './failed-attempts.ts'
import type { Idempotency } from './idempotency.ts'
import {
  API_HEADERS,
  answerUnparsable,
  closed,
  createFastify,
  type Deadlines,
  everySweep,
  JSON_TYPE,
  limitConnections,
  listening,
  serverLimits,
} from './listener.ts'
import { describeApi } from './openapi.ts'
import type { JsonSchema, Operation } from './operation.ts'
import { createOriginPolicy, hostName, type OriginPolicy } from './origin.ts'
import { ownOperations } from './own-operations.ts'
import { type Page, sendPage } from './pages.ts'
import { PathTable } from './path-table.ts'
import type { RateLimiter } from './rate-limit.ts'
import { createRemoteAddresses, type RemoteAddresses } from './remote-address.ts'
import type { FileSpool } from './uploads.ts'

/** Parameters may come in the query string, yet a long one belongs into the body. */
const URL_MAX_LENGTH = 16 * 1024
/** A client that has not finished its handshake by then is no client; Node's default is two minutes. */
const TLS_HANDSHAKE_MS = 10_000
/** Time for running requests to end once the server closes. */
const CLOSE_GRACE_MS = 10_000

export interface HttpServerOptions {
  host: string
  /** 0: any free one. */
  port: number
  /** A second listener with TLS for the same routes. */
  tls?: { port: number; options: ServerOptions }
  logger: FastifyBaseLogger
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
  /** Addresses and networks whose X-Forwarded-For and -Proto count. */
  trustedProxies?: readonly string[]
  authenticator: Authenticator
  limiter: RateLimiter
  /** Shared with other ways in, so that attempts count together. Default: its own. */
  failedAttempts?: FailedAttempts
  spool: FileSpool
  /** Answers to POSTs repeated under an Idempotency-Key; without it the header has no meaning. */
  idempotency?: Idempotency
  /** The dashboard, from `readPages`. */
  pages?: ReadonlyMap<string, Page>
  /** GET of these paths and of all below them answers with the dashboard's index: its own routes, such as `/app`. */
  pagesPrefixes?: readonly string[]
  /** Strict-Transport-Security for a request over TLS to this host name (RFC 6797); null: none. */
  strictTransport?: (host: string) => Promise<string | null>
  /** Whether the service can do its work now; `reason` goes into the answer of `/health/ready`. */
  isReady?: () => Promise<{ ready: boolean; reason?: string }>
  /** Called once per answered request, for metrics. */
  observe?: (answered: Answered) => void
  deadlines?: Deadlines
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
  fastify: FastifyInstance
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { clock, baseUrl, headerPrefix = 'X-Service-', deadlines = {} } = options
  const closing = new AbortController()
  setMaxListeners(0, closing.signal) // every open stream listens
  const operations: Operation[] = []
  const schemas: Record<string, JsonSchema> = {}
  const paths = new PathTable()
  const fastify = createFastify(options)
  const origin = createOriginPolicy({
    baseUrls: [baseUrl, ...(options.otherBaseUrls ?? [])],
    corsOrigins: options.corsOrigins ?? [],
  })
  const remote = createRemoteAddresses(options.trustedProxies ?? [])
  const dispatch = createDispatch({
    clock,
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
  })
  const operationOf = new WeakMap<FastifyRequest, string>()
  let description: JsonSchema | undefined
  let tlsServer: HttpsServer | undefined

  const describe = () => describeApi(operations, { baseUrl, headerPrefix, schemas })

  if (options.strictTransport) announceTls(fastify, remote, options.strictTransport)
  installDefaults(fastify, { options, headerPrefix, origin, paths, operationOf, closing: closing.signal })

  function register(added: readonly Operation[], addedSchemas: Readonly<Record<string, JsonSchema>> = {}) {
    Object.assign(schemas, addedSchemas)
    for (const spec of added) {
      operations.push(spec)
      for (const path of [spec.path, ...(spec.aliases ?? [])]) addRoute(spec, path)
    }
    description = undefined
  }

  function addRoute(spec: Operation, path: string): void {
    paths.add(spec.method, path)
    fastify.route({
      method: spec.method === 'GET' ? ['GET', 'HEAD'] : spec.method,
      url: path.replaceAll(/\{([^}]+)\}/g, ':$1'),
      handler: async (request, reply) => {
        operationOf.set(request, spec.id)
        await dispatch(spec, request, reply)
        return reply
      },
    })
  }

  for (const [path, page] of options.pages ?? []) {
    paths.add('GET', path)
    fastify.route({
      method: ['GET', 'HEAD'],
      url: path,
      handler: async (request, reply) => sendPage(page, request, reply),
    })
  }
  register(
    ownOperations({
      isReady: options.isReady ?? (async () => ({ ready: true })),
      describe: () => {
        description ??= describe()
        return description
      },
    }),
  )

  return {
    fastify,
    register,
    describe,
    async listen() {
      await fastify.listen({ host: options.host, port: options.port })
      limitConnections(fastify.server)
      const { port } = fastify.server.address() as AddressInfo
      if (options.tls === undefined) return { port }
      const { tls } = options
      tlsServer = createHttpsServer(
        { ...serverLimits(deadlines), handshakeTimeout: TLS_HANDSHAKE_MS, ...tls.options },
        fastify.routing,
      )
      tlsServer.on('clientError', answerUnparsable)
      limitConnections(tlsServer)
      await listening(tlsServer, tls.port, options.host)
      return { port, tlsPort: (tlsServer.address() as AddressInfo).port }
    },
    async close() {
      closing.abort()
      const servers = [fastify.server, ...(tlsServer === undefined ? [] : [tlsServer])]
      const cut = clock.setTimer(deadlines.closeGraceMs ?? CLOSE_GRACE_MS, () => {
        for (const server of servers) server.closeAllConnections()
      })
      const sweep = everySweep(clock, () => {
        for (const server of servers) server.closeIdleConnections()
      })
      await Promise.all([fastify.close(), closed(tlsServer)]).finally(() => {
        cut.cancel()
        sweep.cancel()
      })
    },
  }
}

/**
 * Tells browsers that come over TLS to do so from now on, where the host's certificate allows that promise: for no
 * longer than it lasts, whatever an operation promised by itself.
 */
function announceTls(
  fastify: FastifyInstance,
  remote: RemoteAddresses,
  strictTransport: (host: string) => Promise<string | null>,
): void {
  fastify.addHook('onSend', async (request, reply) => {
    const host = remote.isSecure(request.raw) ? hostName(request.headers.host) : undefined
    // An answer without the promise is better than none.
    const promise = host === undefined ? null : await strictTransport(host).catch(() => null)
    if (promise !== null) reply.header('strict-transport-security', promise)
  })
}

interface Defaults {
  options: HttpServerOptions
  headerPrefix: string
  origin: OriginPolicy
  paths: PathTable
  operationOf: WeakMap<FastifyRequest, string>
  closing: AbortSignal
}

/** What holds for every request, whether an operation answers it or nobody does. */
function installDefaults(fastify: FastifyInstance, parts: Defaults): void {
  const { options, headerPrefix, origin, operationOf, closing } = parts
  const { clock } = options
  fastify.addHook('onRequest', (request, reply, done) => {
    const headers = { ...API_HEADERS, [`${headerPrefix}Request-Id`]: request.id }
    reply.headers({ ...headers, ...origin.corsHeaders(request.headers) })
    // The body is read by its first byte: a Content-Type that the framework cannot parse counts as none.
    if (request.mediaType === undefined) delete request.raw.headers['content-type']
    if (closing.aborted) {
      reply.header('connection', 'close')
      refuse(new Unavailable(), request, reply, clock.now())
    } else if ((request.raw.url as string).length > URL_MAX_LENGTH) {
      discardBody(request)
      reply
        .code(414)
        .type(JSON_TYPE)
        .send(JSON.stringify({ message: 'URI Too Long' }))
    } else {
      done()
    }
  })
  fastify.addHook('onResponse', (request, reply, done) => {
    const answered = {
      operation: operationOf.get(request),
      method: request.method,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
    }
    options.observe?.(answered)
    // Never the URL: paths carry tokens and addresses, queries carry anything.
    const level = reply.statusCode >= 400 ? 'info' : 'debug'
    request.log[level](answered, 'answered')
    done()
  })
  fastify.setErrorHandler((error, request, reply) => {
    refuse(frameworkError(error), request, reply, clock.now())
  })
  fastify.setNotFoundHandler((request, reply) => answerUnrouted(request, reply, parts))
}

/** Neither operation nor page: a preflight, a route of the dashboard itself, 405 or 404. */
function answerUnrouted(request: FastifyRequest, reply: FastifyReply, parts: Defaults): FastifyReply {
  const { options, origin, paths } = parts
  const path = (request.raw.url as string).split('?', 1)[0] as string
  const preflight = request.method === 'OPTIONS' ? origin.preflightHeaders(request.headers) : undefined
  if (preflight !== undefined) return reply.code(204).headers(preflight).send()
  const index = options.pages?.get('/')
  const isPageRoute = options.pagesPrefixes?.some(
    (prefix) => path === prefix || path.startsWith(`${prefix}/`),
  )
  if (index !== undefined && isPageRoute && request.method === 'GET') return sendPage(index, request, reply)
  const allowed = paths.methodsOf(path)
  const error = allowed.length === 0 ? new NotFound() : new MethodNotAllowed(allowed)
  refuse(error, request, reply, options.clock.now())
  return reply
}

function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, nowMs: number): void {
  const answer = answerTo(error, nowMs)
  if (answer.ourFault && !(error instanceof Unavailable)) request.log.error({ err: error }, 'request failed')
  discardBody(request)
  reply.code(answer.status).headers(answer.headers).type(JSON_TYPE).send(JSON.stringify(answer.body))
}

/** Errors that the framework raises by itself before a handler runs; all are about an unusable request. */
function frameworkError(error: unknown): unknown {
  const isFramework = error instanceof Error && 'code' in error && String(error.code).startsWith('FST_ERR_')
  const status = isFramework && 'statusCode' in error ? Number(error.statusCode) : 500
  return status >= 400 && status < 500 ? new BadRequest('Bad Request', { cause: error }) : error
}
