/** Requests as `node:http` gives them, taken as arrivals. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { AnswerBody, Arrival, ArrivedBody } from './arrival.ts'
import { splitPlainForm } from './small-form.ts'

/** A body up to this size is read as a whole, which costs less than reading it chunk by chunk. */
const SMALL_BODY_MAX_BYTES = 128 * 1024
/**
 * Of all bodies that are announced or here as a whole until their request is answered, whoever sends them; beyond it
 * they stay streams, which are read behind the login.
 */
const COLLECTED_MAX_BYTES = 32 * 1024 * 1024
/** After an early answer this much of an unread body is still taken in, so that the client, busy writing,
 *  gets to read the answer instead of a reset; then the connection goes. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024

const NO_BODY: ArrivedBody = { kind: 'none' }
const EMPTY = Buffer.alloc(0)

/** For `createServer`: calls `take` once the body is here, if it is a small one. A client that goes before that asked nothing. */
export function takeDirectly(
  take: (arrival: DirectArrival) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  let collected = 0
  return (request, response) => {
    const { headers } = request
    if (!hasBody(headers)) {
      take(new DirectArrival(request, response, NO_BODY))
      return
    }
    const length = lengthOf(headers)
    if (!(length <= SMALL_BODY_MAX_BYTES && collected + length <= COLLECTED_MAX_BYTES)) {
      take(new DirectArrival(request, response, { kind: 'stream', stream: request }))
      return
    }
    collected += length
    let isHeld = true
    const release = () => {
      if (isHeld) collected -= length
      isHeld = false
    }
    response.once('close', release)
    readWhole(request, length, release, (bytes) =>
      take(new DirectArrival(request, response, bodyOf(bytes, headers), release)),
    )
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

/** `length` bytes, of which Node's parser lets through neither more nor less. `cut`: the client went before that. */
function readWhole(
  request: IncomingMessage,
  length: number,
  cut: () => void,
  done: (bytes: Buffer) => void,
): void {
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
  request.on('end', () => done(bytes))
  request.on('error', cut)
}

function bodyOf(bytes: Buffer, headers: IncomingHttpHeaders): ArrivedBody {
  const fields = splitPlainForm(bytes, headers['content-type'] ?? '')
  return fields === null ? { kind: 'whole', bytes } : { kind: 'form', fields }
}

export class DirectArrival implements Arrival {
  readonly body: ArrivedBody
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #release: (() => void) | null

  /** @param release to be called when the body is not needed any more */
  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    body: ArrivedBody,
    release: (() => void) | null = null,
  ) {
    this.#request = request
    this.#response = response
    this.body = body
    this.#release = release
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
    return this.#response.destroyed
  }

  get isCut(): boolean {
    return this.#request.destroyed && !this.#request.complete
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
    this.#release?.()
    this.#discardBody()
    if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) response.end(body)
    else {
      pipeline(body, response, (error) => {
        if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') broken(error)
      })
    }
  }

  abandon(): void {
    this.#release?.()
    this.#response.destroy()
  }

  onAnswered(run: () => void): void {
    this.#response.once('finish', run)
  }

  onEnd(run: () => void): void {
    if (this.#response.destroyed) run()
    else this.#response.once('close', run)
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
