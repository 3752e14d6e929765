/**
 * The HTTP listener: routes made of operations, the machine description, health, the dashboard's files, and
 * what holds for every answer. Nothing here knows a resource; what the parts need is handed in.
 *
 * Against slow and oversized requests: deadlines for headers and for the whole request, limits on URL,
 * headers and connections. Requests with both Content-Length and Transfer-Encoding, or other framing that
 * proxies read differently (RFC 9112 §6.3), never get past Node's parser.
 */
import { once } from 'node:events'
import { createServer as createHttpsServer, type Server as HttpsServer, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Clock } from '../base/clock.ts'
import { BadRequest, MethodNotAllowed, NotFound, Unavailable } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Authenticator } from './auth.ts'
import { createDispatch, discardBody } from './dispatch.ts'
import { answerTo } from './errors.ts'
import type { Idempotency } from './idempotency.ts'
import { describeApi } from './openapi.ts'
import type { JsonSchema, Operation } from './operation.ts'
import { createOriginPolicy } from './origin.ts'
import { ownOperations } from './own-operations.ts'
import { type Page, sendPage } from './pages.ts'
import { PathTable } from './path-table.ts'
import type { RateLimiter } from './rate-limit.ts'
import { createRemoteAddresses } from './remote-address.ts'
import type { FileSpool } from './uploads.ts'

/** A client that has not finished its headers by then is no client (slow header attack). */
const HEADERS_DEADLINE_MS = 10_000
/** The largest send request at about 1.5 Mbit/s. */
const REQUEST_DEADLINE_MS = 5 * 60_000
/** Longer than the idle limit of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_MS = 72_000
/** How often Node looks for connections past a deadline. */
const DEADLINE_CHECK_MS = 1_000
/** Headers of one request; paging tokens are at most 2 KiB, cookies small. */
const HEADERS_MAX_BYTES = 32 * 1024
/** Parameters may come in the query string, yet a long one belongs into the body. */
const URL_MAX_LENGTH = 16 * 1024
/** Percent-encoded paging tokens and addresses. */
const PATH_PART_MAX_LENGTH = 4 * 1024
/** Open connections; each costs some 10 KB. Above it the system's backlog waits. */
const CONNECTIONS_MAX = 10_000
/** Time for running requests to end once the server closes. */
const CLOSE_GRACE_MS = 10_000

export interface Deadlines {
  headersMs?: number
  requestMs?: number
  keepAliveMs?: number
  closeGraceMs?: number
}

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
  spool: FileSpool
  /** Answers to POSTs repeated under an Idempotency-Key; without it the header has no meaning. */
  idempotency?: Idempotency
  /** The dashboard, from `readPages`. */
  pages?: ReadonlyMap<string, Page>
  /** GET under this prefix answers with the dashboard's index: its own routes, such as `/app/`. */
  pagesPrefix?: string
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
  const operations: Operation[] = []
  const schemas: Record<string, JsonSchema> = {}
  const paths = new PathTable()
  const fastify = createFastify(options)
  const origin = createOriginPolicy({
    baseUrls: [baseUrl, ...(options.otherBaseUrls ?? [])],
    corsOrigins: options.corsOrigins ?? [],
  })
  const dispatch = createDispatch({
    clock,
    authenticator: options.authenticator,
    limiter: options.limiter,
    spool: options.spool,
    origin,
    remote: createRemoteAddresses(options.trustedProxies ?? []),
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

  function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const answer = answerTo(error, clock.now())
    if (answer.ourFault && !(error instanceof Unavailable))
      request.log.error({ err: error }, 'request failed')
    discardBody(request)
    reply.code(answer.status).headers(answer.headers).type(JSON_TYPE).send(JSON.stringify(answer.body))
  }

  fastify.addHook('onRequest', (request, reply, done) => {
    const headers = { ...API_HEADERS, [`${headerPrefix}Request-Id`]: request.id }
    reply.headers({ ...headers, ...origin.corsHeaders(request.headers) })
    // The body is read by its first byte: a Content-Type that the framework cannot parse counts as none.
    if (request.mediaType === undefined) delete request.raw.headers['content-type']
    if (closing.signal.aborted) {
      reply.header('connection', 'close')
      refuse(new Unavailable(), request, reply)
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
  fastify.setErrorHandler((error, request, reply) => refuse(frameworkError(error), request, reply))
  fastify.setNotFoundHandler((request, reply) => {
    const path = (request.raw.url as string).split('?', 1)[0] as string
    const preflight = request.method === 'OPTIONS' ? origin.preflightHeaders(request.headers) : undefined
    if (preflight !== undefined) return reply.code(204).headers(preflight).send()
    const index = options.pages?.get('/')
    const isPageRoute = options.pagesPrefix !== undefined && path.startsWith(options.pagesPrefix)
    if (index !== undefined && isPageRoute && request.method === 'GET') return sendPage(index, request, reply)
    const allowed = paths.methodsOf(path)
    refuse(allowed.length === 0 ? new NotFound() : new MethodNotAllowed(allowed), request, reply)
    return reply
  })

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
      tlsServer = createHttpsServer({ ...serverLimits(deadlines), ...tls.options }, fastify.routing)
      tlsServer.on('clientError', answerUnparsable)
      limitConnections(tlsServer)
      await listening(tlsServer, tls.port, options.host)
      return { port, tlsPort: (tlsServer.address() as AddressInfo).port }
    },
    async close() {
      closing.abort()
      const servers = [fastify.server, ...(tlsServer === undefined ? [] : [tlsServer])]
      const cut = () => {
        for (const server of servers) server.closeAllConnections()
      }
      const timer = clock.setTimer(deadlines.closeGraceMs ?? CLOSE_GRACE_MS, cut)
      const tlsClosed = closed(tlsServer)
      await Promise.all([fastify.close(), tlsClosed]).finally(() => timer.cancel())
    },
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** For every answer of the API; pages bring their own. A body opened in a browser runs no script. */
const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

function createFastify(options: HttpServerOptions): FastifyInstance {
  const { deadlines = {} } = options
  const fastify = Fastify({
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    genReqId: () => newId(options.clock.now()),
    requestIdHeader: false,
    return503OnClosing: false, // the onRequest hook answers in the contract's form
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    http: serverLimits(deadlines),
    requestTimeout: deadlines.requestMs ?? REQUEST_DEADLINE_MS,
    keepAliveTimeout: deadlines.keepAliveMs ?? KEEP_ALIVE_MS,
    clientErrorHandler: (error, socket) => answerUnparsable(error, socket),
    frameworkErrors: (error, _request, genericReply) => {
      const reply = genericReply as unknown as FastifyReply
      const tooLong = error.code === 'FST_ERR_MAX_PARAM_LENGTH' || error.statusCode === 414
      const body = JSON.stringify({ message: tooLong ? 'URI Too Long' : 'Bad Request' })
      reply
        .code(tooLong ? 414 : 400)
        .headers(API_HEADERS)
        .type(JSON_TYPE)
        .send(body)
    },
    routerOptions: { maxParamLength: PATH_PART_MAX_LENGTH, querystringParser: () => ({}) },
  })
  // `dispatch` reads bodies itself: streaming, by their first byte, after authentication.
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  return fastify as unknown as FastifyInstance
}

function serverLimits(deadlines: Deadlines) {
  return {
    headersTimeout: deadlines.headersMs ?? HEADERS_DEADLINE_MS,
    requestTimeout: deadlines.requestMs ?? REQUEST_DEADLINE_MS,
    keepAliveTimeout: deadlines.keepAliveMs ?? KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(DEADLINE_CHECK_MS, deadlines.headersMs ?? DEADLINE_CHECK_MS),
    maxHeaderSize: HEADERS_MAX_BYTES,
    insecureHTTPParser: false,
  }
}

function limitConnections(server: { maxConnections: number }): void {
  server.maxConnections = CONNECTIONS_MAX
}

/** What Node's parser refuses: bad framing, too large headers, a missed deadline. */
function answerUnparsable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const answers: Record<string, string> = {
    HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
    ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  }
  const status = answers[error.code ?? ''] ?? '400 Bad Request'
  const body = JSON.stringify({ message: status.slice(4) })
  const head = [`HTTP/1.1 ${status}`, `Content-Type: ${JSON_TYPE}`, `Content-Length: ${body.length}`]
  socket.end([...head, 'Connection: close', '', body].join('\r\n'))
}

/** Errors that the framework raises by itself before a handler runs; all are about an unusable request. */
function frameworkError(error: unknown): unknown {
  const isFramework = error instanceof Error && 'code' in error && String(error.code).startsWith('FST_ERR_')
  const status = isFramework && 'statusCode' in error ? Number(error.statusCode) : 500
  return status >= 400 && status < 500 ? new BadRequest('Bad Request', { cause: error }) : error
}

async function listening(server: HttpsServer, port: number, host: string): Promise<void> {
  const opened = once(server, 'listening') // rejects on 'error'
  server.listen({ port, host })
  await opened
}

async function closed(server: HttpsServer | undefined): Promise<void> {
  if (server === undefined) return
  const ended = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  await ended
}
