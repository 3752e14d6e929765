/** Arrivals of a `node:http` server on this thread. */
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { isShared } from '../../../base/flow/shared-bytes.ts'
import { type AnswerBody, type Arrival, type ArrivedBody, JSON_TYPE, NO_BODY } from './arrival.ts'
import { type Connection, Connections, type InFlight } from './connection.ts'
import { framingFault } from './framing.ts'
import { splitPlainForm } from './small-form.ts'

/** A body up to this size is read as a whole, which costs less than reading it chunk by chunk. */
const SMALL_BODY_MAX_BYTES = 128 * 1024
/**
 * Of all bodies that are announced or held as a whole until the answer has left, on one listener; beyond it they stay
 * streams, which are read after the login.
 */
const COLLECTED_MAX_BYTES = 32 * 1024 * 1024
/** After an early answer this much of an unread body is still read, so that the client, busy writing, gets to read the
 *  answer instead of a reset; then the connection ends. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024

const EMPTY = Buffer.alloc(0)

/** A socket that is a file has no address; its clients are on this machine. */
const LOCAL_ADDRESS = '127.0.0.1'

/** A larger answer is written in pieces, so that a slow client can be distinguished from one that reads nothing. */
const PIECE_BYTES = 64 * 1024

const LAST_HEADERS = { 'content-type': JSON_TYPE, connection: 'close' }
const BUSY_HEADERS = { ...LAST_HEADERS, 'retry-after': '5' }

/** Where a server hands its requests in. */
export interface RequestIntake {
  add(request: IncomingMessage, response: ServerResponse): void
  /** For bytes that are no request: an answer to them may only be written on a free connection. */
  stateOf(socket: Socket): 'free' | 'answering' | 'ending'
}

/**
 * Calls `handle` for each request; for one with a small body when all of it has arrived. A client that leaves before
 * that has made no request.
 * @param stalledMs after this long without progress a client that does not read its answers is cut off
 * @param isLocal they come through the socket in the data folder
 */
export function createRequestIntake(
  handle: (arrival: DirectArrival) => void,
  stalledMs?: number,
  isLocal = false,
): RequestIntake {
  const connections = new Connections<DirectArrival>(serve, stalledMs)
  let collected = 0

  function serve(arrival: DirectArrival): void {
    const { request } = arrival
    const { headers } = request
    if (!hasBody(headers)) {
      handle(arrival)
      return
    }
    const length = lengthOf(headers)
    if (!(length <= SMALL_BODY_MAX_BYTES && collected + length <= COLLECTED_MAX_BYTES)) {
      arrival.body = { kind: 'stream', stream: request }
      handle(arrival)
      return
    }
    collected += length
    arrival.onEnd(() => {
      collected -= length
    })
    readWhole(request, length, (bytes) => {
      arrival.body = bodyOf(bytes, headers)
      handle(arrival)
    })
  }

  return {
    add(request, response) {
      const connection = connections.of(request.socket)
      if (connection.isEnding) {
        connection.drop()
        return
      }
      const arrival = new DirectArrival(request, response, connection, isLocal)
      const status = framingFault(request) ?? (connection.isFull ? 503 : null)
      if (status === null) connection.add(arrival)
      else refuse(arrival, connection, status)
    },
    stateOf(socket) {
      const connection = connections.known(socket)
      if (connection?.isEnding) return 'ending'
      return connection?.isAnswering ? 'answering' : 'free'
    },
  }
}

/** The answer is the connection's last one. */
function refuse(arrival: DirectArrival, connection: Connection<DirectArrival>, status: number): void {
  connection.endAfterThis()
  const body = JSON.stringify({ message: STATUS_CODES[status] })
  const headers = { ...(status === 503 ? BUSY_HEADERS : LAST_HEADERS), 'content-length': body.length }
  arrival.answer(status, headers, body, () => {})
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** The announced length in bytes; NaN where there is none, or where the body is encoded. */
function lengthOf(headers: IncomingHttpHeaders): number {
  const isPlain = headers['content-encoding'] === undefined && headers['transfer-encoding'] === undefined
  return isPlain ? Number(headers['content-length'] ?? Number.NaN) : Number.NaN
}

/** Reads `length` bytes; Node's parser passes on neither more nor fewer. */
function readWhole(request: IncomingMessage, length: number, done: (bytes: Buffer) => void): void {
  let bytes: Buffer = EMPTY
  let at = 0
  request.on('data', (chunk: Buffer) => {
    if (chunk.byteLength === length) bytes = chunk
    else {
      // Copied at once: a client that sends byte by byte would fill memory with the pieces.
      if (at === 0) bytes = Buffer.allocUnsafeSlow(length)
      bytes.set(chunk, at)
    }
    at += chunk.byteLength
  })
  request.on('end', () => {
    const whole = bytes
    // The request lives until its answer has left, which may be long after the body was needed.
    bytes = EMPTY
    done(whole)
  })
  request.on('error', () => {})
}

function bodyOf(bytes: Buffer, headers: IncomingHttpHeaders): ArrivedBody {
  const fields = splitPlainForm(bytes, headers['content-type'] ?? '')
  return fields === null ? { kind: 'whole', bytes } : { kind: 'form', fields }
}

export class DirectArrival implements Arrival, InFlight {
  /** Until it is answered. */
  body: ArrivedBody = NO_BODY
  weightBytes = 0
  heldBytes = 0
  isConcurrent = false
  readonly request: IncomingMessage
  readonly isLocal: boolean
  readonly #response: ServerResponse
  readonly #connection: Connection<DirectArrival>
  /** Of a streamed answer. */
  #source: Readable | null = null
  #ended = false
  #onEnd: (() => void)[] = []

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection<DirectArrival>,
    isLocal: boolean,
  ) {
    this.isLocal = isLocal
    this.request = request
    this.#response = response
    this.#connection = connection
    response.once('close', () => this.end())
  }

  get method(): string {
    return this.request.method as string
  }

  get url(): string {
    return this.request.url as string
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers
  }

  get remoteAddress(): string {
    return this.isLocal ? LOCAL_ADDRESS : (this.request.socket.remoteAddress ?? '')
  }

  get isEncrypted(): boolean {
    return (this.request.socket as Partial<TLSSocket>).encrypted === true
  }

  get isBegun(): boolean {
    return this.#response.headersSent
  }

  get isGone(): boolean {
    return this.#ended || this.#response.destroyed
  }

  get isCut(): boolean {
    return this.isGone && this.body.kind === 'stream' && !this.request.readableEnded
  }

  answer(
    status: number,
    headers: OutgoingHttpHeaders,
    body: AnswerBody,
    onBroken: (error: Error) => void,
  ): void {
    const response = this.#response
    try {
      response.writeHead(status, headers)
    } catch (error) {
      response.statusMessage = ''
      throw error
    }
    this.#discardBody()
    this.body = NO_BODY
    if (body instanceof Readable) {
      this.#stream(body, onBroken)
      return
    }
    const bytes = body?.length ?? 0
    this.#connection.answered(this, bytes, Buffer.isBuffer(body) && isShared(body))
    if (body === undefined || bytes <= PIECE_BYTES || this.method === 'HEAD') response.end(body)
    else this.#stream(piecesOf(body), onBroken)
  }

  #stream(source: Readable, onBroken: (error: Error) => void): void {
    this.#source = source
    pipeline(source, this.#response, (error) => {
      if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') onBroken(error)
    })
  }

  abandon(): void {
    this.#response.destroy()
    this.end()
  }

  onAnswered(run: () => void): void {
    this.#response.once('finish', run)
  }

  onEnd(run: () => void): void {
    if (this.isGone) run()
    else this.#onEnd.push(run)
  }

  /** Answered, or the connection is gone. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#connection.ended(this)
    this.#source?.destroy()
    for (const run of this.#onEnd) run()
    this.#onEnd = []
  }

  endUnserved(): void {
    this.request.destroy()
    this.end()
  }

  /** The request's own deadline ends a slow one. */
  #discardBody(): void {
    const request = this.request
    if (this.body.kind !== 'stream' || request.complete || request.readableEnded) return
    let discarded = 0
    request.on('data', (chunk: Buffer) => {
      discarded += chunk.byteLength
      if (discarded > DISCARDED_BODY_MAX_BYTES) request.destroy()
    })
    request.on('error', () => {})
    request.resume()
  }
}

function piecesOf(body: string | Buffer): Readable {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const pieces = function* () {
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
  }
  return Readable.from(pieces(), { objectMode: false })
}
