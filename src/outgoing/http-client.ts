/**
 * The one client for every HTTP request that leaves the service because a user said so: webhooks, archive,
 * routes, notices. The addresses come from users, so each request is treated as an attempt to reach what only
 * this machine can reach.
 *
 * 1. `readUrl`: http or https, a host, no credentials. The URL parser has turned decimal, octal and
 *    hexadecimal hosts into plain addresses by then.
 * 2. The host is resolved by `resolve`; addresses that are not public are left out, unless a network of
 *    `allow` holds them. None left: refused, nothing is sent.
 * 3. The socket connects to exactly those addresses (no second resolution, so a name that changes its answer
 *    gains nothing), and where it arrived is looked at once more.
 * 4. Redirects are answers like any other. Certificates must verify. Proxy settings of the environment are
 *    not read: a proxy would connect in our place, unchecked.
 * 5. Time, size of the answer and requests at a time are bounded. What happens is a value, never a throw.
 *
 * Connections are kept for a few seconds and used again; a kept one leads to an address that was checked.
 */
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { Clock, Timer } from '../base/clock.ts'
import { anyCidrContains, type Cidr, isPublicAddress, parseIp } from '../base/ip.ts'

export interface HttpRequest {
  url: string
  /** Default POST. */
  method?: 'GET' | 'POST'
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
  /** Time in all, for bodies that take longer than a webhook's; default TOTAL_MAX_MS. */
  totalMs?: number
}

export type HttpOutcome =
  | {
      kind: 'answered'
      status: number
      /** The reason phrase as the server wrote it. */
      reason: string
      /** At most RESPONSE_MAX_BYTES; the rest is not read. */
      body: Buffer
      durationMs: number
    }
  /** No connection was made: the URL, or every address of its host, is not allowed. */
  | { kind: 'refused'; why: string; durationMs: number }
  /** No whole answer: name not found, no connection, TLS, time over, broken off. */
  | { kind: 'failed'; why: string; durationMs: number }

export interface HttpClient {
  /** Never rejects. */
  send(request: HttpRequest): Promise<HttpOutcome>
  /** Whether the URL could be called now: null, or why not (`invalid URL scheme`, `host not found`, ...). */
  fault(url: string): Promise<string | null>
  /** Ends all connections; requests that run end as failed. */
  close(): void
}

export interface HttpClientOptions {
  /** All addresses of a host name, IPv4 and IPv6; empty: there are none now. */
  resolve(host: string): Promise<readonly string[]>
  /** Networks that may be reached although they are not public. */
  allow: readonly Cidr[]
  clock: Clock
  userAgent?: string
  /** Further authorities to trust, PEM; default the system's own. */
  ca?: readonly string[]
  requestsMax?: number
}

/** webhooks.md rule 24. */
export const CONNECT_MAX_MS = 5_000
export const TOTAL_MAX_MS = 10_000
export const RESPONSE_MAX_BYTES = 64 * 1024
/** Longer ones are cut off by servers and browsers too. */
export const URL_LENGTH_MAX = 2048
/** A socket each; a tenth of the file descriptors that service managers commonly allow. */
const REQUESTS_MAX = 1000
/** Requests that wait for one of those; callers bound themselves well below. */
const WAITING_MAX = 10_000
/** Idle connections per host: what one endpoint's queue uses at a time. */
const IDLE_SOCKETS_MAX = 10
/** Most servers keep idle connections for 5 s or longer. */
const IDLE_MS = 4_000

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { clock, allow } = options
  const kept = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX, timeout: IDLE_MS }
  const agents = {
    http: new HttpAgent(kept),
    https: new HttpsAgent({ ...kept, rejectUnauthorized: true, ...(options.ca && { ca: [...options.ca] }) }),
  }
  const turn = createTurnstile(options.requestsMax ?? REQUESTS_MAX)
  let closed = false

  const allowed = (address: string) => isPublicAddress(address) || anyCidrContains(allow, address)

  /** The addresses that may be connected to, or why there are none. */
  async function target(url: URL): Promise<readonly string[] | string> {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const found = isIP(host) ? [host] : await options.resolve(host.replace(/\.$/, '')).catch(() => [])
    if (found.length === 0) return 'host not found'
    const reachable = found.filter(allowed)
    return reachable.length > 0 ? reachable : 'address not allowed'
  }

  async function send(request: HttpRequest): Promise<HttpOutcome> {
    const url = readUrl(request.url)
    if (typeof url === 'string') return { kind: 'refused', why: url, durationMs: 0 }
    if (closed) return { kind: 'failed', why: 'the service is stopping', durationMs: 0 }
    if (!(await turn.enter())) return { kind: 'failed', why: 'too many requests are waiting', durationMs: 0 }
    const startedAt = clock.monotonic()
    const durationMs = () => Math.round(clock.monotonic() - startedAt)
    const limits = createLimits(clock, request.totalMs)
    try {
      const addresses = await Promise.race([target(url), limits.over])
      if (typeof addresses === 'string') {
        const kind = addresses === 'address not allowed' ? 'refused' : 'failed'
        return { kind, why: addresses, durationMs: durationMs() }
      }
      const answer = await exchange(url, request, addresses, limits)
      return { ...answer, durationMs: durationMs() }
    } catch (error) {
      return { kind: 'failed', why: wordsOf(error), durationMs: durationMs() }
    } finally {
      limits.end()
      turn.leave()
    }
  }

  /** A kept connection that the server closed meanwhile says nothing about the server: once more, on a new one. */
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
        ...(body && { 'content-length': String(body.byteLength) }),
      },
    })
    const broken = new Promise<never>((_resolve, reject) => {
      outgoing.on('error', (error) => reject(outgoing.reusedSocket ? new StaleConnection(error) : error))
      outgoing.on('socket', (socket: Socket) => watch(socket, isTls, limits, (why) => outgoing.destroy(why)))
    })
    broken.catch(() => {}) // may come after the answer
    let complete = false
    try {
      const answered = new Promise<IncomingMessage>((resolve) => outgoing.once('response', resolve))
      outgoing.end(body)
      const response = await Promise.race([answered, broken, limits.over])
      const bytes = await Promise.race([readBody(response), limits.over])
      complete = response.complete
      return {
        kind: 'answered' as const,
        status: response.statusCode ?? 0,
        reason: response.statusMessage ?? '',
        body: bytes,
      }
    } finally {
      if (!complete) outgoing.destroy()
    }
  }

  /** Every new connection ends at an address that was allowed; an IP literal is one that `target` saw. */
  function watch(socket: Socket, isTls: boolean, limits: Limits, refuse: (why: Error) => void): void {
    if (!socket.connecting) {
      limits.connected()
      return
    }
    socket.setNoDelay(true)
    socket.once('connect', () => {
      if (!allowed(socket.remoteAddress ?? '')) refuse(new Error('address not allowed'))
    })
    socket.once(isTls ? 'secureConnect' : 'connect', () => limits.connected())
  }

  return {
    send,
    async fault(text) {
      const url = readUrl(text)
      if (typeof url === 'string') return url
      const limits = createLimits(clock)
      try {
        const addresses = await Promise.race([target(url), limits.over])
        return typeof addresses === 'string' ? addresses : null
      } catch {
        return 'host not found'
      } finally {
        limits.end()
      }
    },
    close() {
      closed = true
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** The URL of a request that may be made, or what is wrong with it. */
export function readUrl(text: string): URL | string {
  if (text.length > URL_LENGTH_MAX) return 'URL too long'
  // The parser would drop line ends and tabs, and a text that we store and show should be what is called.
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return 'invalid URL'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'invalid URL scheme'
  if (url.username !== '' || url.password !== '') return 'credentials are not allowed'
  if (url.hostname === '') return 'invalid URL'
  return url
}

/** Answers the socket's question for addresses with those that were checked, whatever name it asks for. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: parseIp(address)?.family === 4 ? 4 : 6 }))
  return (_host, { all: wantsAll }, callback) => {
    const [first] = all
    if (!first) callback(new Error('host not found'), '')
    else if (wantsAll) callback(null, all)
    else callback(null, first.address, first.family)
  }
}

/** The body up to its limit; a longer one ends the connection. */
async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size >= RESPONSE_MAX_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, RESPONSE_MAX_BYTES)
}

interface Limits {
  /** Rejects when the time to connect, or the time in all, is over. */
  over: Promise<never>
  connected(): void
  passed(): boolean
  end(): void
}

function createLimits(clock: Clock, totalMs = TOTAL_MAX_MS): Limits {
  const over = Promise.withResolvers<never>()
  over.promise.catch(() => {}) // nobody may be waiting when it comes
  let passed = false
  const after = (ms: number, why: string): Timer =>
    clock.setTimer(ms, () => {
      passed = true
      over.reject(new Error(why))
    })
  const connect = after(CONNECT_MAX_MS, `no connection within ${CONNECT_MAX_MS / 1000} s`)
  const total = after(totalMs, `no answer within ${totalMs / 1000} s`)
  return {
    over: over.promise,
    connected: () => connect.cancel(),
    passed: () => passed,
    end() {
      connect.cancel()
      total.cancel()
    },
  }
}

/** Lets so many through at a time; the others wait in order. */
function createTurnstile(max: number) {
  let inside = 0
  const waiting: (() => void)[] = []
  return {
    /** False when too many wait already. */
    async enter(): Promise<boolean> {
      if (inside < max) {
        inside++
        return true
      }
      if (waiting.length >= WAITING_MAX) return false
      await new Promise<void>((resolve) => waiting.push(resolve))
      return true
    },
    leave(): void {
      const next = waiting.shift()
      if (next) next()
      else inside--
    },
  }
}

/** A connection from an earlier request broke before the answer came. */
class StaleConnection extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause })
  }
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection broken',
  EPIPE: 'connection broken',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'network not reachable',
  HPE_HEADER_OVERFLOW: 'answer with too long headers',
}

/** A failure in words that tell the owner of the URL what to mend, and nothing about this machine. */
function wordsOf(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  // Several addresses were tried: the last one's reason stands for all.
  if (error instanceof AggregateError) return wordsOf(error.errors.at(-1))
  if (error instanceof StaleConnection) return wordsOf(error.cause)
  if (WORDS[code]) return WORDS[code]
  if (code.startsWith('HPE_')) return 'not an HTTP answer'
  if (/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|ERR_OSSL|EPROTO)/.test(code)) {
    return `TLS failed: ${code.toLowerCase().replaceAll('_', ' ')}`
  }
  return code ? `connection failed: ${code}` : message
}
