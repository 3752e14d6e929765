/**
 * The client for all HTTP requests to URLs that users configure: webhooks, archive, routes, notices. Every request is
 * treated as a possible attempt at server-side request forgery (SSRF).
 *
 * 1. `readUrl`: http or https, a host, no credentials. The URL parser has already normalised decimal, octal and
 *    hexadecimal hosts to plain addresses.
 * 2. `resolve` resolves the host; addresses that are not public are dropped, unless they are in a network of `allow`. If
 *    none is left, the request is refused and nothing is sent.
 * 3. The socket connects to exactly these addresses. There is no second resolution, which defeats DNS rebinding; the
 *    remote address is checked once more after connecting.
 * 4. Redirects are not followed. Certificates must verify. Proxy settings of the environment are ignored: a proxy would
 *    connect for us, unchecked.
 * 5. Time, response size and concurrent requests are bounded. Failures are values, never exceptions.
 *
 * Connections are kept alive for a few seconds; a reused one leads to an address that was checked.
 */

import { readFileSync } from 'node:fs'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { anyCidrContains, type Cidr, isPublicAddress, parseIp } from '../../base/net/ip.ts'
import { Agent as HttpAgent, request as requestHttp } from '../../base/net/node-http.ts'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { HOUR_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { type Chunk, chunkSize, type LazyChunk } from '../../protocols/message/mime-message.ts'

export interface HttpRequest {
  url: string
  /** Default POST. */
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Readonly<Record<string, string>>
  /** A lazy one is read while it is sent, and again if a kept-alive connection turns out to be closed. */
  body?: Chunk
  /** Time limits, for larger bodies than a webhook's; default CONNECT_MAX_MS and TOTAL_MAX_MS. */
  connectMs?: number
  totalMs?: number
  /** Bytes of the response that are read; default RESPONSE_MAX_BYTES. */
  responseBytes?: number
  /** Ends the request when it aborts: the outcome is `failed`. */
  signal?: AbortSignal
}

export type HttpOutcome =
  | {
      kind: 'answered'
      status: number
      /** The reason phrase as sent by the server. */
      reason: string
      /** The media type as sent; empty without one. */
      contentType: string
      /** The field Retry-After as sent; empty without one. */
      retryAfter: string
      /** The field Location as sent; absent without one. */
      location?: string
      /** At most `responseBytes`; the rest is not read. */
      body: Buffer
      durationMs: number
    }
  /** Not sent: the URL, or every address of its host, is not allowed. */
  | { kind: 'refused'; why: string; durationMs: number }
  /** No complete response: name not found, no connection, TLS failure, timeout, connection lost. */
  | { kind: 'failed'; why: string; durationMs: number }

export type HttpClient = ReturnType<typeof createHttpClient>

const NOT_ALLOWED = 'address not allowed'

/**
 * A reason of `fault` as the caller is told it: with the setting that would allow the address. The operator sets it, and who
 * cannot has to use a public address.
 */
export const withAdvice = (fault: string): string =>
  fault === NOT_ALLOWED
    ? `${fault}: it is not public, and the setting SENDWRIGHT_ALLOW_NETWORKS does not contain it`
    : fault

/**
 * A field Retry-After (RFC 9110 §10.2.3: seconds, or a date) as milliseconds from now, from a second to an hour. Null: there is
 * none, or none that can be read.
 */
export function retryAfterMs(text: string, now: number): number | null {
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND_MS : Date.parse(text) - now
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, SECOND_MS), RETRY_AFTER_MAX_MS)
}

/**
 * Why no URL like this may be stored, to be called later; null: it may. A host that cannot be resolved now may be later, and
 * each call checks again.
 */
export async function storedUrlFault(client: Pick<HttpClient, 'fault'>, url: string): Promise<string | null> {
  const fault = await client.fault(url)
  return fault === 'host not found' ? null : fault
}

export interface HttpClientOptions {
  /** All addresses of a host name, IPv4 and IPv6; empty: none found. */
  resolve(host: string): Promise<readonly string[]>
  /** Networks that are allowed although they are not public. */
  allow: readonly Cidr[]
  clock: Clock
  userAgent?: string
  /** Trusted certificate authorities, PEM; default: Node's. */
  ca?: readonly string[]
  requestsMax?: number
}

/** webhooks.md rule 24. */
export const CONNECT_MAX_MS = 5_000
export const TOTAL_MAX_MS = 10_000
export const RESPONSE_MAX_BYTES = 64 * 1024
const RETRY_AFTER_MAX_MS = HOUR_MS
/** Servers and browsers do not accept much longer ones either. */
export const URL_LENGTH_MAX = 2048
/** One socket each; a tenth of the file descriptors that service managers commonly allow. */
const REQUESTS_MAX = 1000
/** Requests waiting for one of these; callers stay well below. */
const WAITING_MAX = 10_000
/** Idle connections per host: what one lane of the queue uses at a time. */
const IDLE_SOCKETS_MAX = 10
/** Most servers keep idle connections for 5 s or longer. */
const IDLE_MS = 4_000

export function createHttpClient(options: HttpClientOptions) {
  const { clock, allow } = options
  const agentOptions = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX, timeout: IDLE_MS }
  const agents = {
    http: new HttpAgent(agentOptions),
    https: new HttpsAgent({
      ...agentOptions,
      rejectUnauthorized: true,
      ...(options.ca && { ca: [...options.ca] }),
    }),
  }
  const slots = createSemaphore(options.requestsMax ?? REQUESTS_MAX)
  let closed = false

  const allowed = (address: string) => isPublicAddress(address) || anyCidrContains(allow, address)

  /** Never rejects. */
  async function send(request: HttpRequest): Promise<HttpOutcome> {
    const url = readUrl(request.url)
    if (typeof url === 'string') return { kind: 'refused', why: url, durationMs: 0 }
    if (closed) return { kind: 'failed', why: 'the service is stopping', durationMs: 0 }
    if (!(await slots.acquire()))
      return { kind: 'failed', why: 'too many requests are waiting', durationMs: 0 }
    const startedAt = clock.monotonic()
    const durationMs = () => Math.round(clock.monotonic() - startedAt)
    const limits = createLimits(clock, request)
    try {
      const addresses = await Promise.race([targetOf(url, options.resolve, allowed), limits.over])
      if (typeof addresses === 'string') {
        const kind = addresses === NOT_ALLOWED ? 'refused' : 'failed'
        return { kind, why: addresses, durationMs: durationMs() }
      }
      const answer = await exchange(url, request, addresses, limits)
      return { ...answer, durationMs: durationMs() }
    } catch (error) {
      return { kind: 'failed', why: describeFailure(error), durationMs: durationMs() }
    } finally {
      limits.end()
      slots.release()
    }
  }

  /** Retries once on a new connection if the server had closed a kept-alive one. */
  async function exchange(url: URL, request: HttpRequest, addresses: readonly string[], limits: Limits) {
    try {
      return await attempt(url, request, addresses, limits)
    } catch (error) {
      if (!(error instanceof StaleConnection) || limits.passed()) throw error
      return attempt(url, request, addresses, limits)
    }
  }

  async function attempt(url: URL, request: HttpRequest, addresses: readonly string[], limits: Limits) {
    const isTls = url.protocol === 'https:'
    const { body, method = 'POST' } = request
    const outgoing = (isTls ? requestHttps : requestHttp)(url, {
      agent: isTls ? agents.https : agents.http,
      method,
      lookup: pinned(addresses),
      headers: {
        'user-agent': options.userAgent ?? 'Sendwright',
        ...request.headers,
        ...(body && { 'content-length': String(chunkSize(body)) }),
      },
    })
    const broken = new Promise<never>((_resolve, reject) => {
      outgoing.on('error', (error) => reject(outgoing.reusedSocket ? new StaleConnection(error) : error))
      outgoing.on('socket', (socket: Socket) =>
        watch(socket, isTls, limits, allowed, (error) => outgoing.destroy(error)),
      )
    })
    broken.catch(() => {}) // may reject after the response
    let complete = false
    try {
      const answered = new Promise<IncomingMessage>((resolve) => outgoing.once('response', resolve))
      if (body === undefined || body instanceof Uint8Array) outgoing.end(body)
      else void sendPieces(body, outgoing)
      const response = await Promise.race([answered, broken, limits.over])
      const bytes = await Promise.race([readBody(response, request.responseBytes), limits.over])
      // The response may come before all of the request is sent; the connection cannot be used again then.
      complete = response.complete && outgoing.writableEnded
      return {
        kind: 'answered' as const,
        status: response.statusCode ?? 0,
        reason: response.statusMessage ?? '',
        contentType: response.headers['content-type'] ?? '',
        retryAfter: response.headers['retry-after'] ?? '',
        ...(response.headers.location !== undefined && { location: response.headers.location }),
        body: bytes,
      }
    } finally {
      if (!complete) outgoing.destroy()
    }
  }

  return {
    send,
    /** Null if the URL can be called now, else the reason (`invalid URL scheme`, `host not found`, ...). */
    async fault(text: string): Promise<string | null> {
      const url = readUrl(text)
      if (typeof url === 'string') return url
      const limits = createLimits(clock)
      try {
        const addresses = await Promise.race([targetOf(url, options.resolve, allowed), limits.over])
        return typeof addresses === 'string' ? addresses : null
      } catch {
        return 'host not found'
      } finally {
        limits.end()
      }
    },
    /** Closes all connections; requests in flight fail. */
    close(): void {
      closed = true
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** The addresses to connect to, or why there are none. */
async function targetOf(
  url: URL,
  resolve: HttpClientOptions['resolve'],
  allowed: (address: string) => boolean,
): Promise<readonly string[] | string> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const found = isIP(host) ? [host] : await resolve(host.replace(/\.$/, '')).catch(() => [])
  if (found.length === 0) return 'host not found'
  const reachable = found.filter(allowed)
  return reachable.length > 0 ? reachable : NOT_ALLOWED
}

/** Checks the remote address of every new connection, and ends the connect timeout. */
function watch(
  socket: Socket,
  isTls: boolean,
  limits: Limits,
  allowed: (address: string) => boolean,
  refuse: (error: Error) => void,
): void {
  if (!socket.connecting) {
    limits.connected()
    return
  }
  socket.setNoDelay(true)
  socket.once('connect', () => {
    if (!allowed(socket.remoteAddress ?? '')) refuse(new Error(NOT_ALLOWED))
  })
  socket.once(isTls ? 'secureConnect' : 'connect', () => limits.connected())
}

/** Parses the URL, or returns what is wrong with it. */
export function readUrl(text: string): URL | string {
  if (text.length > URL_LENGTH_MAX) return 'URL too long'
  // The parser would remove line ends and tabs, but the URL that we store and show must be the one that is called.
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return 'invalid URL'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid URL scheme'
  if (url.username !== '' || url.password !== '') return 'credentials are not allowed'
  if (url.hostname === '') return 'invalid URL'
  return url
}

/**
 * A lookup function that returns the checked addresses for any name. In a later tick: a connection that fails at once, to a network
 * without a route, would else break before its request listens for errors, and end the process.
 */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: parseIp(address)?.family === 4 ? 4 : 6 }))
  return (_host, { all: wantsAll }, callback) => {
    const [first] = all
    if (!first) process.nextTick(callback, new Error('host not found'), '')
    else if (wantsAll) process.nextTick(callback, null, all)
    else process.nextTick(callback, null, first.address, first.family)
  }
}

/** Never rejects: a body that cannot be read breaks the connection. */
async function sendPieces(body: LazyChunk, outgoing: ClientRequest): Promise<void> {
  try {
    for await (const bytes of body.open()) {
      if (outgoing.destroyed) return
      if (!outgoing.write(bytes)) await writableAgain(outgoing)
    }
    outgoing.end()
  } catch {
    outgoing.destroy(new Error('the body cannot be read'))
  }
}

/** Resolves when more may be written, or the connection has gone. */
function writableAgain(outgoing: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('drain', done)
      outgoing.off('close', done)
      resolve()
    }
    outgoing.on('drain', done)
    outgoing.on('close', done)
    if (outgoing.destroyed) done()
  })
}

/** Reads the body up to its limit; the connection of a longer one is closed. */
async function readBody(response: IncomingMessage, most = RESPONSE_MAX_BYTES): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size >= most) break
  }
  return Buffer.concat(chunks).subarray(0, most)
}

interface Limits {
  /** Rejects on a connect or total timeout. */
  over: Promise<never>
  connected(): void
  passed(): boolean
  end(): void
}

function createLimits(
  clock: Clock,
  {
    connectMs = CONNECT_MAX_MS,
    totalMs = TOTAL_MAX_MS,
    signal,
  }: Pick<HttpRequest, 'connectMs' | 'totalMs' | 'signal'> = {},
): Limits {
  const over = Promise.withResolvers<never>()
  over.promise.catch(() => {}) // may reject with no waiter
  let passed = false
  const stop = (message: string) => {
    passed = true
    over.reject(new Error(message))
  }
  const after = (ms: number, message: string): Timer => clock.setTimer(ms, () => stop(message))
  const abort = () => stop('the request was given up')
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  const connect = after(connectMs, `no connection within ${connectMs / 1000} s`)
  const total = after(totalMs, `no answer within ${totalMs / 1000} s`)
  return {
    over: over.promise,
    connected: () => connect.cancel(),
    passed: () => passed,
    end() {
      connect.cancel()
      total.cancel()
      signal?.removeEventListener('abort', abort)
    },
  }
}

/** Admits `max` holders at a time; the others wait in order. */
function createSemaphore(max: number) {
  let held = 0
  const waiting: (() => void)[] = []
  return {
    /** False if too many wait already. */
    async acquire(): Promise<boolean> {
      if (held < max) {
        held++
        return true
      }
      if (waiting.length >= WAITING_MAX) return false
      await new Promise<void>((resolve) => waiting.push(resolve))
      return true
    },
    release(): void {
      const next = waiting.shift()
      if (next) next()
      else held--
    },
  }
}

/** A kept-alive connection broke before the response. */
class StaleConnection extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection broken',
  EPIPE: 'connection broken',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'network not reachable',
  HPE_HEADER_OVERFLOW: 'answer with too long headers',
}

/** Describes a failure so that the URL's owner can fix it, without revealing anything about this machine. */
function describeFailure(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  // Several addresses were tried: the last one's failure is reported.
  if (error instanceof AggregateError) return describeFailure(error.errors.at(-1))
  if (error instanceof StaleConnection) return describeFailure(error.cause)
  if (FAILURES[code]) return FAILURES[code]
  if (code.startsWith('HPE_')) return 'not an HTTP answer'
  if (/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|ERR_OSSL|EPROTO)/.test(code)) {
    return `TLS failed: ${code.toLowerCase().replaceAll('_', ' ')}`
  }
  return code ? `connection failed: ${code}` : message
}

const HOSTS_FILE = '/etc/hosts'
/** How long the parsed hosts file is cached. */
const HOSTS_MS = 30_000

/**
 * Resolves host names for the outgoing HTTP client: the hosts file first, then our own resolver. Not the system's
 * `getaddrinfo`: it occupies a thread of libuv's pool, which signing and file access use too, so names with slow servers
 * could delay mail.
 *
 * All addresses of a name; empty if it has none or cannot be resolved now.
 */
export function createHostNames(
  resolver: Pick<Resolver, 'query'>,
  clock: Clock,
): (host: string) => Promise<string[]> {
  let hosts = new Map<string, string[]>()
  let readAt = Number.NEGATIVE_INFINITY
  return async (host) => {
    const name = host.toLowerCase()
    // RFC 6761 §6.3: never resolved through the network.
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1']
    if (clock.monotonic() - readAt > HOSTS_MS) {
      hosts = parseHosts(hostsText())
      readAt = clock.monotonic()
    }
    const local = hosts.get(name)
    if (local) return local
    const [four, six] = await Promise.all([resolver.query(name, 'A'), resolver.query(name, 'AAAA')])
    return [...four.records, ...six.records]
  }
}

function hostsText(): string {
  try {
    return readFileSync(HOSTS_FILE, 'utf8')
  } catch {
    return '' // not every system has one
  }
}

/** hosts(5): an address, then its names; `#` begins a comment. */
function parseHosts(text: string): Map<string, string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] as string).trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names.map((word) => word.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), address])
    }
  }
  return hosts
}
