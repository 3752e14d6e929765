/**
 * One request and its answer. The answer's header fields are collected until it is sent; a later value of a name replaces
 * the earlier one. Names are in lower case.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import { REASON_LENGTH_MAX } from '../../base/process/fault-log.ts'
import type { TraceSpan } from '../traces/tracing.ts'
import { type AnswerBody, type Arrival, JSON_TYPE } from './listening/arrival.ts'
import { hostName, type RemoteAddresses } from './request/origin.ts'

/** For every answer of the API; pages have their own. A body opened in a browser runs no script. */
const API_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

export interface ExchangeParts {
  logger: Logger
  /** The field of the answer that names the request; in lower case. */
  requestIdName: string
  remote: RemoteAddresses
  /** Strict-Transport-Security for a request over TLS to this host name (RFC 6797); null: none. */
  strictTransport(host: string): Promise<string | null>
  /** Called once per answered request, for metrics. */
  observe(answered: Answered): void
}

export interface Answered {
  /** operationId, or undefined for pages and unknown paths. */
  operation: string | undefined
  method: string
  status: number
  durationMs: number
}

/** Whom a key or session belongs to; a part of `Caller`. */
export interface Holder {
  accountId: string
  keyId: string
  kind: string
}

export class Exchange {
  readonly id: string
  readonly arrival: Arrival
  /** The variable parts of the path, decoded. */
  path: Readonly<Record<string, string>> = NO_PARTS
  /** operationId; undefined for pages and unknown paths. */
  operation: string | undefined = undefined
  status = 200
  /** Whose credentials it has, before it acts for another account; undefined: not known, or not looked at yet. */
  presented: Holder | undefined = undefined
  /** The error of the answer in words; undefined: it has none. */
  refusal: string | undefined = undefined
  /** Span of this request, once its caller is known; undefined: it is not traced. */
  span: TraceSpan | undefined = undefined
  /** By `performance.now()`. */
  readonly startedAt = performance.now()
  readonly #parts: ExchangeParts
  /** The end of the answer is observed. */
  #watched = false
  #headers: OutgoingHttpHeaders
  #sent = false

  constructor(id: string, arrival: Arrival, parts: ExchangeParts) {
    this.id = id
    this.arrival = arrival
    this.#parts = parts
    this.#headers = this.#firstHeaders()
  }

  #firstHeaders(): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = { ...API_HEADERS }
    headers[this.#parts.requestIdName] = this.id
    return headers
  }

  get method(): string {
    return this.arrival.method
  }

  get headers(): IncomingHttpHeaders {
    return this.arrival.headers
  }

  /** Path and query as sent. */
  get url(): string {
    return this.arrival.url
  }

  /** Its lines name the request. */
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
  send(body: AnswerBody): void {
    if (this.#sent) throw new Error('The request was answered twice')
    this.#sent = true
    if (!this.#watched) this.#watch()
    if (!this.#parts.remote.isSecure(this.arrival)) this.#write(body)
    else
      this.#announceTls()
        .then(() => this.#write(body))
        .catch((error) => this.fail(error))
  }

  /** Logs and observes the answer. Never the URL: paths carry tokens and addresses, queries carry anything. */
  #watch(): void {
    this.#watched = true
    const { logger, observe } = this.#parts
    this.arrival.onAnswered(() => {
      const { operation, method, status, startedAt } = this
      const answered = { operation, method, status, durationMs: performance.now() - startedAt }
      observe(answered)
      const level = status >= 400 ? 'info' : 'debug'
      // A logger of the request's own costs more than all else here.
      if (logger.isLevelEnabled(level)) this.log[level](answered, 'answered')
    })
  }

  /**
   * Makes browsers that use TLS keep to it, where the host's certificate allows that promise: for no longer than the
   * certificate lasts, whatever an operation promised by itself.
   */
  async #announceTls(): Promise<void> {
    const host = hostName(this.headers.host)
    // An answer without the promise is better than none.
    const promise = host === undefined ? null : await this.#parts.strictTransport(host).catch(() => null)
    if (promise !== null) this.setHeader('strict-transport-security', promise)
  }

  sendJson(body: unknown): void {
    const text = JSON.stringify(body)
    this.#headers['content-type'] = JSON_TYPE
    this.#headers['content-length'] = Buffer.byteLength(text)
    this.send(text)
  }

  #write(body: AnswerBody): void {
    const { arrival, status } = this
    const headers = this.#headers
    if (arrival.isGone) {
      if (body instanceof Readable) body.destroy()
      return
    }
    let content = body
    if (status === 204 || status === 304) {
      // Such an answer has no body and announces none (RFC 9110 §8.6).
      if (status === 204) delete headers['content-type']
      delete headers['content-length']
      content = undefined
    } else if (body === undefined) {
      if (this.method !== 'HEAD') headers['content-length'] = 0
    } else if (typeof body === 'string' || Buffer.isBuffer(body)) {
      headers['content-length'] ??= Buffer.byteLength(body)
    }
    try {
      arrival.answer(status, headers, content, (error) =>
        this.log.warn(
          { reason: (error as Error).message?.slice(0, REASON_LENGTH_MAX) },
          'an answer was cut off',
        ),
      )
    } catch (error) {
      this.#headers = this.#firstHeaders()
      this.#sent = false
      throw error
    }
  }

  /** For an error after which no answer can be given. */
  fail(error: unknown): void {
    this.log.error({ err: error }, 'an answer failed')
    this.abandon()
  }

  /** Ends the connection without an answer. */
  abandon(): void {
    this.#sent = true
    this.arrival.abandon()
  }
}

const NO_PARTS: Readonly<Record<string, string>> = Object.freeze({})
