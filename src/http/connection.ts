/**
 * Bounds what one connection can make the service hold. A client may send requests one behind the other and read none
 * of the answers. So of each connection it is known how many bytes of answers wait for the client:
 *
 * 1. above a limit its next request is not served, and its socket is not read;
 * 2. above a limit for all connections of the listener those that have not moved for longest are ended;
 * 3. a connection that has bytes to send and sends none for a while is ended.
 *
 * Streamed answers wait for the client by themselves, so they count as a small answer until they end.
 */
import type { Socket } from 'node:net'
import { Beside } from '../base/beside.ts'
import { PassingSet } from '../base/passing.ts'

/** Of answers to one connection that the client has not taken; above it no request is served. */
const UNREAD_MAX_BYTES = 1024 * 1024
/** Of all connections of one listener. A process has two listeners at most, which makes 256 MB. */
const UNREAD_TOTAL_MAX_BYTES = 128 * 1024 * 1024
/** What an answer counts for until its size is known: four pipelined requests are served at a time, ... */
const EXPECTED_MIN_BYTES = UNREAD_MAX_BYTES / 4
/** ... and so many in all connections of a listener beside the first of each: their answers are made before they are counted. */
const BESIDE_MAX = 16
/**
 * Requests under way on one connection. Only a client that pipelines has more than one; one piece read from a socket
 * may hold some 2,000.
 */
const UNDER_WAY_MAX = 100
/** Pipelined requests that wait for their turn, in all connections of a listener: some 50 MB. */
const WAITING_TOTAL_MAX = 10_000
/** After the last answer of a connection so many more requests are dropped, then the connection is. */
const DROPPED_MAX = 100
/**
 * The system asks for more bytes when a third of its own buffer is free. That is 30 KB on a slow link, so a reader of
 * 1 KB/s makes progress within this time.
 */
const STALLED_MS = 60_000
const LOOKS_PER_STALL = 12

/** A request as its connection sees it. */
export interface UnderWay {
  /** What it counts for in `UNREAD_MAX_BYTES`: an estimate, then the size of the answer. */
  weightBytes: number
  /** The part of the answer that takes memory of its own. */
  heldBytes: number
  /** It is served, and was begun beside another one of its connection. */
  isBeside: boolean
  /** Its answer has been written, at least in part. */
  readonly isBegun: boolean
  /** Answered, or the connection is gone. */
  end(): void
}

/** All connections of a listener. */
export class Connections<R extends UnderWay> {
  readonly #known = new Beside<Socket, Connection<R>>()
  readonly #open = new PassingSet<Connection<R>>()
  readonly #serve: (request: R) => void
  readonly #stalledMs: number
  #sweep: NodeJS.Timeout | null = null
  #heldBytes = 0
  #waiting = 0
  #beside = 0

  /** @param serve begins to work on a request, once its turn has come */
  constructor(serve: (request: R) => void, stalledMs = STALLED_MS) {
    this.#serve = serve
    this.#stalledMs = stalledMs
  }

  of(socket: Socket): Connection<R> {
    return this.#known.get(socket) ?? this.#add(socket)
  }

  /** Of a socket from which a request has come. */
  known(socket: Socket): Connection<R> | undefined {
    return this.#known.get(socket)
  }

  #add(socket: Socket): Connection<R> {
    const connection = this.#known.set(
      socket,
      new Connection(socket, {
        serve: this.#serve,
        held: (bytes) => this.#held(bytes, connection),
        waits: (change) => {
          this.#waiting += change
          return this.#waiting <= WAITING_TOTAL_MAX
        },
        beside: (change) => {
          this.#beside += change
          return this.#beside < BESIDE_MAX
        },
      }),
    )
    this.#open.add(connection)
    this.#sweep ??= setInterval(() => this.#look(), this.#stalledMs / LOOKS_PER_STALL).unref()
    // A response behind others is not told that the connection has gone.
    socket.once('close', () => {
      connection.end()
      this.#open.delete(connection)
      if (this.#open.size > 0) return
      clearInterval(this.#sweep ?? undefined)
      this.#sweep = null
    })
    return connection
  }

  /** An answer of `by` takes so much more memory, or less. */
  #held(bytes: number, by: Connection<R>): void {
    this.#heldBytes += bytes
    if (bytes < 0 || this.#heldBytes <= UNREAD_TOTAL_MAX_BYTES) return
    const slowestFirst = [...this.#open]
      .filter((connection) => connection !== by && connection.heldBytes > 0)
      .sort((a, b) => a.movedAt - b.movedAt)
    for (const connection of slowestFirst) {
      if (this.#heldBytes <= UNREAD_TOTAL_MAX_BYTES) return
      connection.destroy()
    }
  }

  #look(): void {
    const now = performance.now()
    for (const connection of [...this.#open]) {
      if (!connection.moves(now) && now - connection.movedAt >= this.#stalledMs) connection.destroy()
    }
  }
}

interface ConnectionParts<R> {
  serve(request: R): void
  held(bytes: number): void
  /** Whether there may be so many more requests that wait. */
  waits(change: number): boolean
  /** So many more are served beside others of their connections; whether there may be another one. */
  beside(change: number): boolean
}

export class Connection<R extends UnderWay> {
  /** Of answers in memory that the client has not taken. */
  heldBytes = 0
  /** When it last took bytes, or had none to take; by `performance.now()`. */
  movedAt = performance.now()
  readonly #socket: Socket
  readonly #parts: ConnectionParts<R>
  readonly #underWay = new PassingSet<R>()
  /** In their order; the others under way are being served. */
  #waiting: R[] = []
  #weightBytes = 0
  #expectedBytes = EXPECTED_MIN_BYTES
  #sentBytes = 0
  #dropped = 0
  #isLast = false
  #isGone = false

  constructor(socket: Socket, parts: ConnectionParts<R>) {
    this.#socket = socket
    this.#parts = parts
  }

  /** No further request is taken. */
  get isFull(): boolean {
    return this.#underWay.size >= UNDER_WAY_MAX
  }

  /** It was told that it ends: what follows is not for us (RFC 9112 §9.6). */
  get isEnding(): boolean {
    return this.#isLast
  }

  /** Bytes that are written now would end up in, or before, answers that are on their way. */
  get isAnswering(): boolean {
    return [...this.#underWay].some((request) => request.isBegun)
  }

  /** Ends with the answers under way and the one that is to be given. */
  endAfterThis(): void {
    this.#isLast = true
    this.#socket.pause()
  }

  /** A request that came behind the last one. */
  drop(): void {
    if (++this.#dropped > DROPPED_MAX) this.destroy()
  }

  /** Serves the request, now or when its turn has come. */
  add(request: R): void {
    this.#underWay.add(request)
    if (this.#waiting.length === 0 && this.#hasRoom()) this.#serve(request)
    else this.#wait(request)
  }

  /** The size of a whole answer is known. @param isShared it takes no memory of its own */
  answered(request: R, bytes: number, isShared: boolean): void {
    if (!this.#underWay.has(request)) return
    if (bytes > this.#expectedBytes) this.#expectedBytes = bytes
    this.#weigh(request, bytes)
    if (!isShared) this.#hold(request, bytes)
    if (this.#waiting.length > 0) this.#serveWaiting()
  }

  /** The client has its answer. */
  ended(request: R): void {
    if (!this.#underWay.delete(request)) return
    this.#weigh(request, 0)
    this.#hold(request, 0)
    if (this.#waiting.length > 0) this.#serveWaiting()
  }

  /** Whether it has nothing to send, or has sent some of it since the last look. */
  moves(now: number): boolean {
    const { writableLength } = this.#socket
    const sentBytes = this.#socket.bytesWritten - writableLength
    if (writableLength > 0 && sentBytes === this.#sentBytes) return false
    this.#sentBytes = sentBytes
    this.movedAt = now
    return true
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
    this.#parts.waits(-this.#waiting.length)
    this.#waiting = []
    for (const request of [...this.#underWay]) request.end()
  }

  #hasRoom(): boolean {
    if (this.#weightBytes === 0) return true
    return this.#weightBytes + this.#expectedBytes <= UNREAD_MAX_BYTES && this.#parts.beside(0)
  }

  #serve(request: R): void {
    const isBeside = this.#weightBytes > 0
    this.#weigh(request, this.#expectedBytes)
    if (isBeside) {
      request.isBeside = true
      this.#parts.beside(1)
    }
    this.#parts.serve(request)
  }

  #wait(request: R): void {
    this.#waiting.push(request)
    if (!this.#parts.waits(1)) this.destroy()
    // Further ones wait with the system. A body that is read may let the socket go on, which costs one piece more.
    else this.#socket.pause()
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      this.#parts.waits(-1)
      this.#serve(this.#waiting.shift() as R)
    }
    if (this.#waiting.length === 0 && !this.#isLast) this.#socket.resume()
  }

  #weigh(request: R, bytes: number): void {
    if (request.isBeside) {
      request.isBeside = false
      this.#parts.beside(-1)
    }
    this.#weightBytes += bytes - request.weightBytes
    request.weightBytes = bytes
  }

  #hold(request: R, bytes: number): void {
    const change = bytes - request.heldBytes
    if (change === 0) return
    if (this.heldBytes === 0) this.movedAt = performance.now()
    this.heldBytes += change
    request.heldBytes = bytes
    this.#parts.held(change)
  }
}
