/**
 * One request and its answer. The answer's header fields are collected until it is sent, the later one of a name
 * winning; names are written in lower case.
 */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import type { Logger } from 'pino'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** For every answer of the API; pages bring their own. A body opened in a browser runs no script. */
const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** After an early answer this much of an unread body is still taken in, so that the client, busy writing,
 *  gets to read the answer instead of a reset; then the connection goes. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024

export interface ExchangeParts {
  logger: Logger
  /** The field of the answer that names the request; in lower case. */
  requestIdName: string
  /** Called before the answer leaves; it may add header fields. A promise holds the answer back. */
  beforeSend?: (exchange: Exchange) => Promise<void> | undefined
}

export class Exchange {
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The variable parts of the path, decoded. */
  path: Readonly<Record<string, string>> = NO_PARTS
  /** operationId of what answers; undefined for pages and unknown paths. */
  operation: string | undefined = undefined
  status = 200
  /** By `performance.now()`. */
  readonly startedAt = performance.now()
  /** Somebody waits for the answer's end. */
  watched = false
  readonly #parts: ExchangeParts
  #headers: OutgoingHttpHeaders
  #sent = false

  constructor(id: string, request: IncomingMessage, response: ServerResponse, parts: ExchangeParts) {
    this.id = id
    this.request = request
    this.response = response
    this.#parts = parts
    this.#headers = this.#firstHeaders()
  }

  #firstHeaders(): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = { ...API_HEADERS }
    headers[this.#parts.requestIdName] = this.id
    return headers
  }

  get method(): string {
    return this.request.method as string
  }

  get headers(): IncomingHttpHeaders {
    return this.request.headers
  }

  /** Path and query as they came. */
  get url(): string {
    return this.request.url as string
  }

  /** Lines of it name the request. */
  get log(): Logger {
    return this.#parts.logger.child({ requestId: this.id })
  }

  /** A field of the answer; `name` in lower case. */
  setHeader(name: string, value: string | number | readonly string[]): void {
    this.#headers[name] = value as OutgoingHttpHeaders[string]
  }

  setHeaders(headers: Readonly<Record<string, string | readonly string[]>>): void {
    for (const name in headers) this.setHeader(name.toLowerCase(), headers[name] as string)
  }

  /**
   * Text, bytes, a stream, or undefined for none. Once, unless it throws: then nothing was sent, the answer's header
   * fields are forgotten, and another answer may be sent.
   * @throws for a header field that cannot be sent
   */
  send(body: string | Buffer | Readable | undefined): void {
    if (this.#sent) throw new Error('The request was answered twice')
    this.#sent = true
    const held = this.#parts.beforeSend?.(this)
    if (held === undefined) this.#write(body)
    else held.then(() => this.#write(body)).catch((error) => this.fail(error))
  }

  sendJson(body: unknown): void {
    const text = JSON.stringify(body)
    this.#headers['content-type'] = JSON_TYPE
    this.#headers['content-length'] = Buffer.byteLength(text)
    this.send(text)
  }

  #write(body: string | Buffer | Readable | undefined): void {
    const { response, status } = this
    const headers = this.#headers
    if (response.destroyed) {
      if (body instanceof Readable) body.destroy()
      return
    }
    if (status === 204 || status === 304) {
      // Such an answer has no body, and says nothing of one (RFC 9110 §8.6).
      if (status === 204) delete headers['content-type']
      delete headers['content-length']
    } else if (body === undefined) {
      if (this.method !== 'HEAD') headers['content-length'] = 0
    } else if (typeof body === 'string' || Buffer.isBuffer(body)) {
      headers['content-length'] ??= Buffer.byteLength(body)
    }
    try {
      response.writeHead(status, headers)
    } catch (error) {
      this.#headers = this.#firstHeaders()
      response.statusMessage = ''
      this.#sent = false
      throw error
    }
    if (body === undefined || status === 204 || status === 304) response.end()
    else if (typeof body === 'string' || Buffer.isBuffer(body)) response.end(body)
    else {
      // A source that breaks takes the connection with it: a shorter body would look like a whole one.
      pipeline(body, response, (error) => {
        if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE')
          this.log.warn({ err: error }, 'an answer was cut off')
      })
    }
  }

  /** There is no answer to give any more. */
  fail(error: unknown): void {
    this.log.error({ err: error }, 'an answer failed')
    this.abandon()
  }

  /** Ends the connection without an answer: the client has gone away. */
  abandon(): void {
    this.#sent = true
    this.response.destroy()
  }

  /** Lets go of what the client is still sending, up to a limit; the request's own deadline ends a slow one. */
  discardBody(): void {
    const { request } = this
    if (request.complete || request.readableEnded) return
    let discarded = 0
    request.on('data', (chunk: Buffer) => {
      discarded += chunk.byteLength
      if (discarded > DISCARDED_BODY_MAX_BYTES) request.destroy()
    })
    request.on('error', () => {})
    request.resume()
  }
}

const NO_PARTS: Readonly<Record<string, string>> = Object.freeze({})
