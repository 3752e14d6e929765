/** Requests as `node:http` gives them, taken as arrivals. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { Beside } from '../base/beside.ts'
import { PassingSet } from '../base/passing.ts'
import { type AnswerBody, type Arrival, type ArrivedBody, JSON_TYPE, NO_BODY } from './arrival.ts'
import { splitPlainForm } from './small-form.ts'

/** A body up to this size is read as a whole, which costs less than reading it chunk by chunk. */
const SMALL_BODY_MAX_BYTES = 128 * 1024
/**
 * Of all bodies that are announced or here as a whole until the answer has left, whoever sends them; beyond it they stay
 * streams, which are read behind the login.
 */
const COLLECTED_MAX_BYTES = 32 * 1024 * 1024
/** After an early answer this much of an unread body is still taken in, so that the client, busy writing,
 *  gets to read the answer instead of a reset; then the connection goes. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024

const EMPTY = Buffer.alloc(0)

/**
 * Requests under way on one connection from which on more are refused: only who sends many at a time without waiting for
 * the answers gets there. Node itself reads such as long as no answers wait.
 */
const UNDER_WAY_MAX = 100
const TOO_MANY_HEADERS = { 'content-type': JSON_TYPE, 'retry-after': '5', connection: 'close' }
const TOO_MANY = JSON.stringify({ message: 'Service Unavailable' })

/**
 * For `createServer`: calls `take` once the body is here, if it is a small one. A client that goes before that asked
 * nothing.
 */
export function takeDirectly(
  take: (arrival: DirectArrival) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  const connections = new Beside<Socket, PassingSet<DirectArrival>>()
  let collected = 0

  function underWayOf(socket: Socket): PassingSet<DirectArrival> {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const underWay = connections.set(socket, new PassingSet())
    // A response behind others is not told that the connection has gone.
    socket.once('close', () => {
      for (const arrival of [...underWay]) arrival.end()
    })
    return underWay
  }

  return (request, response) => {
    const underWay = underWayOf(request.socket)
    const arrival = new DirectArrival(request, response)
    if (underWay.size >= UNDER_WAY_MAX) {
      arrival.answer(503, TOO_MANY_HEADERS, TOO_MANY, () => {})
      return
    }
    underWay.add(arrival)
    arrival.onEnd(() => underWay.delete(arrival))
    const { headers } = request
    if (!hasBody(headers)) {
      take(arrival)
      return
    }
    const length = lengthOf(headers)
    if (!(length <= SMALL_BODY_MAX_BYTES && collected + length <= COLLECTED_MAX_BYTES)) {
      arrival.body = { kind: 'stream', stream: request }
      take(arrival)
      return
    }
    collected += length
    arrival.onEnd(() => {
      collected -= length
    })
    readWhole(request, length, (bytes) => {
      arrival.body = bodyOf(bytes, headers)
      take(arrival)
    })
  }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** In bytes, as the client says; NaN where it does not, or where what is sent is not what is meant. */
function lengthOf(headers: IncomingHttpHeaders): number {
  const isPlain = headers['content-encoding'] === undefined && headers['transfer-encoding'] === undefined
  return isPlain ? Number(headers['content-length'] ?? Number.NaN) : Number.NaN
}

/** `length` bytes, of which Node's parser lets through neither more nor less. */
function readWhole(request: IncomingMessage, length: number, done: (bytes: Buffer) => void): void {
  let bytes: Buffer = EMPTY
  let at = 0
  request.on('data', (chunk: Buffer) => {
    if (chunk.byteLength === length) bytes = chunk
    else {
      // Copied as it comes: a client that sends byte by byte would fill memory with the pieces.
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

export class DirectArrival implements Arrival {
  /** Until it is answered. */
  body: ArrivedBody = NO_BODY
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  /** Of a streamed answer. */
  #source: Readable | null = null
  #ended = false
  #onEnd: (() => void)[] = []

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request
    this.#response = response
    response.once('close', () => this.end())
  }

  get method(): string {
    return this.#request.method as string
  }

  get url(): string {
    return this.#request.url as string
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers
  }

  get remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? ''
  }

  get isEncrypted(): boolean {
    return (this.#request.socket as Partial<TLSSocket>).encrypted === true
  }

  get isGone(): boolean {
    return this.#ended || this.#response.destroyed
  }

  get isCut(): boolean {
    return this.isGone && this.body.kind === 'stream' && !this.#request.readableEnded
  }

  answer(
    status: number,
    headers: OutgoingHttpHeaders,
    body: AnswerBody,
    broken: (error: Error) => void,
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
    if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) response.end(body)
    else {
      this.#source = body
      pipeline(body, response, (error) => {
        if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') broken(error)
      })
    }
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
    this.#source?.destroy()
    for (const run of this.#onEnd) run()
    this.#onEnd = []
  }

  /** The request's own deadline ends a slow one. */
  #discardBody(): void {
    const request = this.#request
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
