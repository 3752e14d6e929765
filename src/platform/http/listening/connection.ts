/**
 * Bounds what one connection can make the service hold (decision 49). A client may pipeline requests and read none of the
 * answers. So the bytes of answers that wait for the client are counted per connection:
 *
 * 1. above a limit its next request is not served, and its socket is not read;
 * 2. above a limit for all connections of the listener those without progress for longest are ended;
 * 3. a connection that has bytes to send and sends none for a while is ended.
 *
 * Streamed answers wait for the client by themselves, so they count as a small answer until they end.
 */
import type { Server, Socket } from 'node:net'
import { PassingSet } from '../../../base/flow/cache.ts'
import { networkOf } from '../../../base/net/ip.ts'
import { type HeaderFault, ProxyHeaders } from '../../../protocols/proxy/accepting.ts'
import { networkMatcher, plainAddress } from '../request/origin.ts'
import { JSON_TYPE } from './arrival.ts'

/** Answers of one connection that the client has not taken; above it no request is served. */
const UNREAD_MAX_BYTES = 1024 * 1024
/** The same for all connections of one listener. A process has two listeners for others at most, which makes 256 MB. */
const UNREAD_TOTAL_MAX_BYTES = 128 * 1024 * 1024
/** What an answer counts for until its size is known: four pipelined requests are served at a time, ... */
const EXPECTED_MIN_BYTES = UNREAD_MAX_BYTES / 4
/** ... and this many in all connections of a listener, the first of each not counted: they are served before their size is known. */
const CONCURRENT_MAX = 16
/**
 * Requests in flight on one connection. Only a client that pipelines has more than one; one read from a socket may hold
 * 2,000.
 */
const IN_FLIGHT_MAX = 100
/** Pipelined requests that wait to be served, in all connections of a listener: about 50 MB. */
const WAITING_TOTAL_MAX = 10_000
/** After the last answer of a connection this many more requests are dropped, then the connection is. */
const DROPPED_MAX = 100
/**
 * The system asks for more bytes when a third of its own buffer is free. That is 30 KB on a slow link, so a reader of
 * 1 KB/s makes progress within this time.
 */
const STALLED_MS = 60_000
const CHECKS_PER_STALL = 12

/** A request as its connection sees it. */
export interface InFlight {
  /** Its share of `UNREAD_MAX_BYTES`: an estimate, then the size of the answer. */
  weightBytes: number
  /** The part of the answer that takes memory of its own. */
  heldBytes: number
  /** It is served, and was begun while another one of its connection was. */
  isConcurrent: boolean
  /** Its answer has been written, at least in part. */
  readonly isBegun: boolean
  /** Answered, or the connection is gone. */
  end(): void
  /** The connection is gone before it was served. */
  endUnserved(): void
}

/** On a socket, and not in a `WeakMap`, whose values would lead back to their keys (decision 40). */
const CONNECTION = Symbol('connection')
type KnownSocket<R extends InFlight> = Socket & { [CONNECTION]?: Connection<R> }

/** All connections of a listener. */
export class Connections<R extends InFlight> {
  readonly #open = new PassingSet<Connection<R>>()
  readonly #serve: (request: R) => void
  readonly #stalledMs: number
  #sweep: NodeJS.Timeout | null = null
  #heldBytes = 0
  #waiting = 0
  #concurrent = 0

  /** @param serve begins to work on a request */
  constructor(serve: (request: R) => void, stalledMs = STALLED_MS) {
    this.#serve = serve
    this.#stalledMs = stalledMs
  }

  of(socket: KnownSocket<R>): Connection<R> {
    return socket[CONNECTION] ?? this.#add(socket)
  }

  /** Undefined for a socket that has sent no request yet. */
  known(socket: KnownSocket<R>): Connection<R> | undefined {
    return socket[CONNECTION]
  }

  #add(socket: KnownSocket<R>): Connection<R> {
    const connection: Connection<R> = new Connection(socket, {
      serve: this.#serve,
      hold: (bytes) => this.#hold(bytes, connection),
      wait: (change) => {
        this.#waiting += change
        return this.#waiting <= WAITING_TOTAL_MAX
      },
      addConcurrent: (change) => {
        this.#concurrent += change
        return this.#concurrent < CONCURRENT_MAX
      },
    })
    socket[CONNECTION] = connection
    this.#open.add(connection)
    this.#sweep ??= setInterval(() => this.#endStalled(), this.#stalledMs / CHECKS_PER_STALL).unref()
    // A response that waits for an earlier one gets no 'close' when the connection ends. Before Node's own listener: that
    // destroys all requests, with an error whose stack is formatted unless the request is destroyed already.
    socket.prependOnceListener('close', () => {
      connection.end()
      this.#open.delete(connection)
      if (this.#open.size > 0) return
      clearInterval(this.#sweep ?? undefined)
      this.#sweep = null
    })
    return connection
  }

  /** An answer of `by` takes that much more memory, or less. */
  #hold(bytes: number, by: Connection<R>): void {
    this.#heldBytes += bytes
    if (bytes < 0 || this.#heldBytes <= UNREAD_TOTAL_MAX_BYTES) return
    const slowestFirst = [...this.#open]
      .filter((connection) => connection !== by && connection.heldBytes > 0)
      .sort((a, b) => a.progressAt - b.progressAt)
    for (const connection of slowestFirst) {
      if (this.#heldBytes <= UNREAD_TOTAL_MAX_BYTES) return
      connection.destroy()
    }
  }

  /** Counts checks, not time: while this process itself stood still nobody could take anything. */
  #endStalled(): void {
    const now = performance.now()
    for (const connection of [...this.#open]) {
      if (connection.checksWithoutProgress(now) > CHECKS_PER_STALL) connection.destroy()
    }
  }
}

interface ConnectionParts<R> {
  serve(request: R): void
  hold(bytes: number): void
  /** Counts requests that wait; returns whether there may be as many. */
  wait(change: number): boolean
  /** Counts requests that are served concurrently with others of their connections; returns whether there may be more. */
  addConcurrent(change: number): boolean
}

export class Connection<R extends InFlight> {
  /** Answers in memory that the client has not taken. */
  heldBytes = 0
  /** When it last took bytes, or had none to take; by `performance.now()`. */
  progressAt = performance.now()
  readonly #socket: Socket
  readonly #parts: ConnectionParts<R>
  readonly #inFlight = new PassingSet<R>()
  /** In their order; the others in flight are being served. */
  #waiting: R[] = []
  #weightBytes = 0
  #expectedBytes = EXPECTED_MIN_BYTES
  #sentBytes = 0
  #idleChecks = 0
  #dropped = 0
  #isLast = false
  #isGone = false

  constructor(socket: Socket, parts: ConnectionParts<R>) {
    this.#socket = socket
    this.#parts = parts
  }

  /** No further request is accepted. */
  get isFull(): boolean {
    return this.#inFlight.size >= IN_FLIGHT_MAX
  }

  /** Its last answer announced the end: what follows is not for us (RFC 9112 §9.6). */
  get isEnding(): boolean {
    return this.#isLast
  }

  /** Bytes that are written now would end up in, or before, pending answers. */
  get isAnswering(): boolean {
    return [...this.#inFlight].some((request) => request.isBegun)
  }

  /** Ends after the pending answers and the next one. */
  endAfterThis(): void {
    this.#isLast = true
    this.#socket.pause()
  }

  /** For a request after the last one. */
  drop(): void {
    if (++this.#dropped > DROPPED_MAX) this.destroy()
  }

  /** Serves the request, now or after earlier ones. */
  add(request: R): void {
    this.#inFlight.add(request)
    if (this.#waiting.length === 0 && this.#hasRoom()) this.#serve(request)
    else this.#wait(request)
  }

  /** The size of a whole answer is known. @param isShared it takes no memory of its own */
  answered(request: R, bytes: number, isShared: boolean): void {
    if (!this.#inFlight.has(request)) return
    if (bytes > this.#expectedBytes) this.#expectedBytes = bytes
    this.#weigh(request, bytes)
    if (!isShared) this.#hold(request, bytes)
    if (this.#waiting.length > 0) this.#serveWaiting()
  }

  /** The client has its answer. */
  ended(request: R): void {
    if (!this.#inFlight.delete(request)) return
    this.#weigh(request, 0)
    this.#hold(request, 0)
    if (this.#waiting.length > 0) this.#serveWaiting()
  }

  /** Checks in a row, with this one, at which it had bytes to send and had sent none since the check before. */
  checksWithoutProgress(now: number): number {
    const { writableLength } = this.#socket
    const sentBytes = this.#socket.bytesWritten - writableLength
    if (writableLength > 0 && sentBytes === this.#sentBytes) return ++this.#idleChecks
    this.#sentBytes = sentBytes
    this.progressAt = now
    this.#idleChecks = 0
    return 0
  }

  destroy(): void {
    this.#socket.destroy()
    this.end()
  }

  /** The connection has gone. */
  end(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#isLast = true
    this.#parts.wait(-this.#waiting.length)
    for (const request of this.#waiting.splice(0)) {
      this.#inFlight.delete(request)
      request.endUnserved()
    }
    for (const request of [...this.#inFlight]) request.end()
  }

  #hasRoom(): boolean {
    if (this.#weightBytes === 0) return true
    return this.#weightBytes + this.#expectedBytes <= UNREAD_MAX_BYTES && this.#parts.addConcurrent(0)
  }

  #serve(request: R): void {
    const isConcurrent = this.#weightBytes > 0
    this.#weigh(request, this.#expectedBytes)
    if (isConcurrent) {
      request.isConcurrent = true
      this.#parts.addConcurrent(1)
    }
    this.#parts.serve(request)
  }

  #wait(request: R): void {
    this.#waiting.push(request)
    if (!this.#parts.wait(1)) this.destroy()
    // Later ones wait in the system's buffer. Reading a body may resume the socket, which costs one chunk more.
    else this.#socket.pause()
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      this.#parts.wait(-1)
      this.#serve(this.#waiting.shift() as R)
    }
    if (this.#waiting.length === 0 && !this.#isLast) this.#socket.resume()
  }

  #weigh(request: R, bytes: number): void {
    if (request.isConcurrent) {
      request.isConcurrent = false
      this.#parts.addConcurrent(-1)
    }
    this.#weightBytes += bytes - request.weightBytes
    request.weightBytes = bytes
  }

  #hold(request: R, bytes: number): void {
    const change = bytes - request.heldBytes
    if (change === 0) return
    if (this.heldBytes === 0) this.progressAt = performance.now()
    this.heldBytes += change
    request.heldBytes = bytes
    this.#parts.hold(change)
  }
}

export interface ConnectionLimits {
  /** Connections of one client: an IPv4 address, or an IPv6 network of 64 bits. Default: any number. */
  perClientMax?: number | undefined
  /** Connections of all clients; default `HTTP_CONNECTIONS_MAX`. */
  max?: number
  /** Proxies, as addresses or CIDR networks: they bring the connections of many clients, so only `max` limits them. */
  proxies?: readonly string[]
  /** Balancers, likewise: each of their connections begins with a PROXY header, and counts for the client named there. */
  balancers?: readonly string[]
}

/** On a socket, as above: what a PROXY header says of the client. */
const CLIENT = Symbol('client')
type ClientSocket = Socket & { [CLIENT]?: Client }
interface Client {
  address: string
  isSecure: boolean
}

/** Where the connection comes from, in the system's form; '' once it has ended. */
export const clientAddress = (socket: ClientSocket): string =>
  socket[CLIENT]?.address ?? socket.remoteAddress ?? ''

/** The client speaks TLS, to us or to a balancer that says so. */
export const isEncrypted = (socket: ClientSocket & { encrypted?: unknown }): boolean =>
  socket.encrypted === true || socket[CLIENT]?.isSecure === true

/** Each costs about 10 KB. */
export const HTTP_CONNECTIONS_MAX = 10_000
/** Time for a refused client to read why. */
const LINGER_MS = 2_000
/** Refused connections that wait for that; beyond it the oldest, whose answer has been sent, is ended at once. */
const LINGERING_MAX = 500

const FROM_CLIENT = answerWith('Too many connections from this address')
const IN_ALL = answerWith('Too many connections')

export type Admission = ReturnType<typeof admitConnections>

/**
 * Limits the connections of a listener, per client and in all. A connection beyond a limit gets a fixed answer, without a
 * parser and without the main thread, so that a flood of them costs little.
 * @param isPlain without TLS: before a handshake there is no way to answer
 * @param onHeaderFault gets what is wrong with connections of balancers
 */
export function admitConnections(
  server: Server,
  limits: ConnectionLimits,
  isPlain: boolean,
  onHeaderFault: (fault: HeaderFault) => void = () => {},
) {
  const { perClientMax = Number.POSITIVE_INFINITY, max = HTTP_CONNECTIONS_MAX } = limits
  const isProxy = networkMatcher(limits.proxies ?? [])
  const { balancers = [] } = limits
  const headers =
    balancers.length > 0 ? new ProxyHeaders({ networks: balancers, onFault: onHeaderFault }) : null
  const perClient = new Map<string, number>()
  const lingering = new Set<Socket>()
  /** Admitted sockets, and over TLS both layers of each. */
  const open = new Set<Socket>()
  let count = 0

  function watch(socket: Socket): void {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }

  /** Null if the connection is admitted, else the answer. */
  function refusal(socket: Socket, address: string): string | null {
    if (count >= max) return IN_ALL
    const client = isProxy(address) ? null : networkOf(address)
    if (client !== null) {
      const known = perClient.get(client) ?? 0
      if (known >= perClientMax) return FROM_CLIENT
      perClient.set(client, known + 1)
    }
    count += 1
    watch(socket)
    socket.once('close', () => {
      count -= 1
      if (client !== null) release(client)
    })
    return null
  }

  function release(client: string): void {
    const others = (perClient.get(client) ?? 1) - 1
    if (others > 0) perClient.set(client, others)
    else perClient.delete(client)
  }

  function refuse(socket: Socket, answer: string): void {
    socket.on('error', () => {})
    if (!isPlain) {
      socket.destroy()
      return
    }
    socket.end(answer)
    // Its request is read and discarded: unread bytes would turn the answer into a reset.
    socket.resume()
    lingering.add(socket)
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(timer)
      lingering.delete(socket)
    })
    if (lingering.size > LINGERING_MAX) lingering.values().next().value?.destroy()
  }

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  const admit = (socket: Socket, address: string) => {
    const answer = refusal(socket, address)
    if (answer !== null) refuse(socket, answer)
    else for (const listener of listeners) listener.call(server, socket)
  }
  const nameClient = isPlain ? noteClient : createTlsClients(server)
  if (!isPlain) server.on('secureConnection', watch)
  server.on('connection', (socket: Socket) => {
    const peer = plainAddress(socket.remoteAddress ?? '')
    const isBalancers = headers?.take(socket, peer, (address, isSecure) => {
      nameClient(socket, { address, isSecure })
      admit(socket, address)
    })
    if (isBalancers !== true) admit(socket, peer)
  })
  return {
    /** Ends connections that have sent nothing yet, over TLS nothing since their handshake: Node takes them for busy ones. */
    endSilent(): void {
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    },
    /** Ends connections that were not admitted and are still open. */
    end(): void {
      headers?.end()
      for (const socket of lingering) socket.destroy()
    },
  }
}

function noteClient(socket: ClientSocket, client: Client): void {
  socket[CLIENT] = client
}

/** Requests see the socket of the TLS layer, which nothing but its two ends connects with the one below. */
function createTlsClients(server: Server): typeof noteClient {
  const clients = new Map<string, Client>()
  const endsOf = ({ remoteAddress, remotePort, localAddress }: Socket) =>
    `${remoteAddress} ${remotePort} ${localAddress}`
  server.prependListener('secureConnection', (socket: Socket) => {
    const client = clients.get(endsOf(socket))
    if (client !== undefined) noteClient(socket, client)
  })
  return (socket, client) => {
    const ends = endsOf(socket)
    clients.set(ends, client)
    socket.once('close', () => clients.delete(ends))
  }
}

function answerWith(message: string): string {
  const body = JSON.stringify({ message })
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${body.length}`,
    'Retry-After: 5',
    'Connection: close',
  ]
  return [...head, '', body].join('\r\n')
}
