/** Arrivals of a `node:http` server on this thread. */

import { isAscii } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { ownText, remember } from '../../../base/flow/cache.ts'
import { isShared } from '../../../base/flow/shared-bytes.ts'
import { STATUS_CODES } from '../../../base/net/node-http.ts'
import { type AnswerBody, type Arrival, type ArrivedBody, JSON_TYPE, NO_BODY } from './arrival.ts'
import { type Connection, Connections, clientAddress, type InFlight, isEncrypted } from './connection.ts'

/** A body up to this size is read as a whole, which costs less than reading it chunk by chunk. */
const SMALL_BODY_MAX_BYTES = 128 * 1024
/**
 * Bytes of all bodies that are announced or held as a whole until the answer has left, on one listener; beyond it they stay
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
export type RequestIntake = ReturnType<typeof createRequestIntake>

/**
 * Calls `handle` for each request; for one with a small body when all of it has arrived. A client that leaves before
 * that has made no request.
 * @param stalledMs after this long without progress a client that does not read its answers is cut off
 * @param isLocal they come through the socket in the data folder
 * @param collects small bodies are read as a whole; else all bodies are streams
 */
export function createRequestIntake(
  handle: (arrival: DirectArrival) => void,
  stalledMs?: number,
  isLocal = false,
  collects = true,
) {
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
    if (!(collects && length <= SMALL_BODY_MAX_BYTES && collected + length <= COLLECTED_MAX_BYTES)) {
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
    add(request: IncomingMessage, response: ServerResponse): void {
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
    /** For bytes that are no request: an answer to them may only be written on a free connection. */
    stateOf(socket: Socket): 'free' | 'answering' | 'ending' {
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
  /** Source of a streamed answer. */
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
    return this.isLocal ? LOCAL_ADDRESS : clientAddress(this.request.socket)
  }

  get isEncrypted(): boolean {
    return isEncrypted(this.request.socket)
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

const CHUNKED_LAST = /(?:^|,\s*)chunked$/i

type FramingFault = 400 | 501 | 505

/** A proxy may join two Host fields, or unfold one. */
const SEVERAL_HOSTS = /[,\s]/

/**
 * Requests that servers in front of us may read differently than Node's parser does. The parser refuses most of them;
 * these it passes. Where two servers disagree on where a request ends or for which host it is, one of them can
 * be made to take a part of one client's request for another's (request smuggling).
 *
 * The status that refuses the request; null: its framing is plain. The connection must end with the answer, and bytes
 * that follow on it must not be read as requests.
 */
export function framingFault({ httpVersion, headers, rawHeaders }: RequestHead): FramingFault | null {
  // Node's parser also takes 0.9 and 2.0, and treats them as 1.1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 505
  const { host, 'transfer-encoding': coding } = headers
  if (coding !== undefined) {
    // RFC 9112 §6.1: HTTP/1.0 does not define it, so a proxy of that version may pass it on unseen.
    if (httpVersion === '1.0') return 400
    // RFC 9112 §6.3: without chunked as the last coding nobody knows where the body ends.
    if (!CHUNKED_LAST.test(coding)) return 400
    // RFC 9112 §6.1: a coding that is not understood, such as `gzip, chunked`.
    if (coding.length !== 'chunked'.length) return 501
  }
  // RFC 9112 §3.2.
  return host !== undefined && (SEVERAL_HOSTS.test(host) || countHosts(rawHeaders) > 1) ? 400 : null
}

type RequestHead = Pick<IncomingMessage, 'httpVersion' | 'headers' | 'rawHeaders'>

/** `headers` has the first one only. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

/** ASCII without quotes and escapes, so that the name needs no decoding. */
const PLAIN_HEADER = /^Content-Disposition: form-data; name="([\x20\x21\x23\x24\x26-\x5b\x5d-\x7e]*)"$/i
/** RFC 2046 §5.1.1, without the characters that need quoting. */
const PLAIN_BOUNDARY = /^multipart\/form-data; ?boundary=(?:"([\w'()+,./:=?-]{1,70})"|([\w'+.-]{1,70}))$/i

const HEADER_MAX_BYTES = 300

/** Names by their header lines: clients use few, and a text seen before has its hash computed already. */
const names = new Map<string, string>()
const NAMES_MAX = 500

/**
 * A value that is a quarter of the body or more may share its memory. Smaller ones, which may be kept for long (an
 * address, its domain), would keep a body many times their size alive.
 */
const SHARED_PART = 1 / 4
const SHARED_MIN = 1024

/**
 * multipart/form-data that has arrived as a whole and is as plain as clients write it: every part is one text field with
 * one header line. In the profile of accepting and delivering 10 KB the streaming parser had 8 % of the main thread, this
 * has 2 %. Any other form is left to that parser.
 *
 * Names and values in order; null: for the streaming parser.
 */
export function splitPlainForm(body: Buffer, contentType: string): [name: string, value: string][] | null {
  const match = PLAIN_BOUNDARY.exec(contentType)
  const boundary = match?.[1] ?? match?.[2]
  if (boundary === undefined) return null
  // A character for each byte: searching text takes a third of the calls out of JavaScript.
  const text = body.toString('latin1')
  const ascii = isAscii(body)
  const sharedMin = Math.max(SHARED_MIN, text.length * SHARED_PART)
  const delimiter = `\r\n--${boundary}`
  // The first delimiter has no line end before it.
  if (!text.startsWith(delimiter.slice(2))) return null
  const fields: [string, string][] = []
  let at = delimiter.length - 2
  while (text.startsWith('\r\n', at)) {
    const headerEnd = text.indexOf('\r\n\r\n', at)
    if (headerEnd < 0 || headerEnd - at > HEADER_MAX_BYTES) return null
    const name = nameIn(text.slice(at + 2, headerEnd))
    const start = headerEnd + 4
    const end = text.indexOf(delimiter, headerEnd + 2)
    if (name === undefined || end < start) return null
    const shared = ascii && end - start >= sharedMin
    fields.push([name, shared ? text.slice(start, end) : body.toString('utf8', start, end)])
    at = end + delimiter.length
  }
  const rest = text.slice(at)
  return rest === '--' || rest === '--\r\n' ? fields : null
}

/** The field's name in its header line; undefined if that is not a plain one. */
function nameIn(header: string): string | undefined {
  const known = names.get(header)
  if (known !== undefined) return known
  const own = ownText(header)
  const name = PLAIN_HEADER.exec(own)?.[1]
  return name === undefined ? undefined : remember(names, NAMES_MAX, own, name)
}
