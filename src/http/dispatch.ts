/**
 * The way of one request, the same for every operation:
 *
 * 1. refuse a foreign page's change (403)
 * 2. authenticate (401), check the address allowlist and the role (403), act as a subaccount
 * 3. the operation's own checks that need no body (404, 403)
 * 4. take from the rate limit (429)
 * 5. read query and body (400, 413; a large one when there is memory for it, 503); a small body is here before all
 *    this (arrival.ts)
 * 6. write the row of a change into the audit log (503, 507), run the handler, note its outcome, answer
 *
 * Whatever is thrown on the way becomes an answer by the table in `errors.ts`. Files that were spooled are
 * discarded on failure, and after success unless the handler kept them.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { ByteBudget, Release } from '../base/byte-budget.ts'
import type { MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import { Forbidden, Unauthenticated, Unavailable } from '../base/errors.ts'
import type { FaultLog } from '../base/fault-log.ts'
import { chunkSize } from '../base/mime-message.ts'
import type { Arrival } from './arrival.ts'
import { type AuditLog, entryOf, outcomeOf, type RecordedCall, recordedCall } from './audit.ts'
import { type Authenticator, authorize, type Caller, credentialsOf, type Requirement } from './auth.ts'
import {
  type BodyLimit,
  DEFAULT_BODY_LIMIT,
  mediaTypeOf,
  memoryOfBody,
  PUBLIC_BODY_LIMIT,
  readBody,
} from './body.ts'
import { answerTo } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { createFailedAttempts, type FailedAttempts } from './failed-attempts.ts'
import { sendFixed } from './fixed-answer.ts'
import { type Idempotency, type IdempotencyRecord, idempotencyKey, requestDigest } from './idempotency.ts'
import { acceptsFiles, type Context, type Operation } from './operation.ts'
import type { OriginPolicy } from './origin.ts'
import { Fields, Params, parseUrlencoded } from './params.ts'
import { limitExceeded, type RateLimiter, rateLimitHeaders } from './rate-limit.ts'
import type { RemoteAddresses } from './remote-address.ts'
import { eventFrames, Reply } from './reply.ts'
import type { FileSpool, Uploads } from './uploads.ts'

export interface DispatchParts {
  clock: Clock
  authenticator: Authenticator
  limiter: RateLimiter
  /** Shared with other ways in, so that attempts count together. Default: its own. */
  failedAttempts?: FailedAttempts | undefined
  /** Log of what was not the caller's doing. */
  faults: FaultLog
  spool: FileSpool
  origin: OriginPolicy
  remote: RemoteAddresses
  /** `X-Service-`; headers are written with it. */
  headerPrefix: string
  /** Read as well, never written. */
  headerPrefixAliases: readonly string[]
  authRealm: string
  /** Aborts when the server closes. */
  closing: AbortSignal
  /** Answers to repeated POSTs; undefined: the header has no meaning. */
  idempotency?: Idempotency | undefined
  /** Memory for bodies that are not small; undefined: without a limit. */
  largeBodies?: ByteBudget | undefined
  /** Undefined: changes are not recorded. */
  audit?: AuditLog | undefined
}

export type Dispatch = (spec: Operation, exchange: Exchange) => Promise<void>

export function createDispatch(parts: DispatchParts): Dispatch {
  const { clock, authenticator, limiter, spool, origin, remote, closing } = parts
  const failedAttempts = parts.failedAttempts ?? createFailedAttempts(clock)
  const keyIdName = `${parts.headerPrefix}Key-Id`.toLowerCase()
  const onBehalfOfNames = [parts.headerPrefix, ...parts.headerPrefixAliases].map((prefix) =>
    `${prefix}On-Behalf-Of`.toLowerCase(),
  )

  async function authenticate(
    requirement: Requirement,
    spec: Operation,
    exchange: Exchange,
  ): Promise<Caller> {
    const address = remote.address(exchange.arrival)
    const found = callerOf(exchange, address)
    const presented = found instanceof Promise ? await found : found
    if (presented === null) {
      await failedAttempts.delay(address)
      throw new Unauthenticated()
    }
    exchange.setHeader(keyIdName, presented.keyId)
    const allowed = authenticator.addressAllowed(presented, address)
    if ((allowed instanceof Promise ? await allowed : allowed) !== true) {
      throw spec.plainText401 === true ? new Unauthenticated('Forbidden') : new Forbidden()
    }
    authorize(presented, requirement, exchange.path)
    const subaccountId = spec.onBehalfOf === 'argument' ? undefined : onBehalfOf(exchange.headers)
    if (subaccountId === undefined || subaccountId === presented.accountId) return presented
    return actingAs(presented, subaccountId)
  }

  /** Null: nothing, or nothing that is right. A wrong key counts as a guess, a session that has ended does not. */
  function callerOf({ headers }: Exchange, address: string): MaybePromise<Caller | null> {
    const credentials = credentialsOf(headers)
    if (credentials === 'none') return null
    const attempted = (caller: Caller | null) => {
      if (caller === null) failedAttempts.wrongKey(address)
      return caller
    }
    if (credentials === 'wrong') return attempted(null)
    if (credentials.kind === 'session') {
      if (!origin.knowsHost(headers)) throw new Forbidden()
      return authenticator.session(credentials.cookie)
    }
    const found = authenticator.key(credentials.secret)
    return found instanceof Promise ? found.then(attempted) : attempted(found)
  }

  /** Asked again during a long answer: keys are deleted meanwhile, sessions end. */
  async function isStillAllowed({ auth }: Operation, { headers, path }: Exchange): Promise<boolean> {
    if (auth === 'public') return true
    const credentials = credentialsOf(headers)
    if (typeof credentials === 'string') return false
    try {
      const caller = await (credentials.kind === 'key'
        ? authenticator.key(credentials.secret)
        : authenticator.session(credentials.cookie))
      if (caller !== null) authorize(caller, auth, path)
      return caller !== null
    } catch {
      return false
    }
  }

  async function actingAs(caller: Caller, subaccountId: string): Promise<Caller> {
    if (caller.kind === 'domain' || caller.kind === 'public') throw new Forbidden()
    const acting = await authenticator.subaccount(caller, subaccountId)
    if (acting === null) throw new Forbidden()
    return acting
  }

  function onBehalfOf(headers: IncomingHttpHeaders): string | undefined {
    for (const name of onBehalfOfNames) if (headers[name]) return String(headers[name])
    return undefined
  }

  /** @throws TooManyRequests in the form of the limit. Every answer from here on carries its headers. */
  function takeFromLimit(caller: Caller, spec: Operation, exchange: Exchange): void {
    const name = spec.rateLimit ?? 'default'
    if (name === 'none') return
    const grant = limiter.take(name, name === 'default' ? caller.keyId : caller.accountId)
    if (grant === undefined) return
    exchange.setHeaders(rateLimitHeaders(grant))
    if (grant.allowed) return
    const domainName = typeof spec.auth === 'object' ? spec.auth.domain : undefined
    throw limitExceeded(name, grant.retrySeconds, exchange.path[domainName ?? ''] ?? '')
  }

  function sendError(error: unknown, spec: Operation, exchange: Exchange): void {
    if (exchange.arrival.isCut) {
      exchange.log.debug({ operation: spec.id }, 'client went away during its request')
      exchange.abandon()
      return
    }
    const answer = answerTo(error, clock.now())
    if (answer.ourFault) {
      const facts = { operation: spec.id, status: answer.status }
      parts.faults.log(exchange.log, error, facts, 'request failed')
    }
    exchange.status = answer.status
    exchange.setHeaders(answer.headers)
    if (answer.status === 401 && mayChallenge(exchange.headers)) {
      exchange.setHeader('www-authenticate', `Basic realm="${parts.authRealm}"`)
    }
    if (answer.status === 401 && spec.plainText401 === true) {
      exchange.setHeader('content-type', 'text/plain; charset=utf-8')
      exchange.send('Forbidden')
    } else {
      exchange.sendJson(answer.body)
    }
  }

  function send(result: Reply | object, context: RequestContext, spec: Operation, exchange: Exchange): void {
    if (!(result instanceof Reply)) {
      exchange.sendJson(result)
      return
    }
    exchange.status = result.status
    exchange.setHeaders(result.headers)
    const { content } = result
    const isHead = exchange.method === 'HEAD'
    if (content.kind === 'json') exchange.sendJson(content.body)
    else if (content.kind === 'none') exchange.send(undefined)
    else if (content.kind === 'fixed') sendFixed(content.answer, exchange)
    else if (content.kind === 'bytes') {
      const { chunk } = content
      exchange.setHeader('content-type', sendableType(content.contentType))
      exchange.setHeader('content-length', chunkSize(chunk))
      if (chunk instanceof Uint8Array) exchange.send(Buffer.from(chunk))
      else if (isHead) exchange.send('')
      // Opened, a file would stay open for a client that has gone.
      else if (exchange.arrival.isGone) exchange.abandon()
      else exchange.send(streamOf(chunk.open()))
    } else {
      exchange.setHeader('content-type', 'text/event-stream; charset=utf-8')
      const isAllowed = () => isStillAllowed(spec, exchange)
      exchange.send(isHead ? '' : eventFrames(content.events, context.signal, clock, isAllowed))
    }
  }

  /** Runs the handler, or repeats the answer of the first call under the same Idempotency-Key. */
  function act(context: RequestContext, spec: Operation, exchange: Exchange): Promise<object> {
    const { idempotency } = parts
    const { method } = exchange
    const key =
      idempotency && method === 'POST' ? idempotencyKey(exchange.headers['idempotency-key']) : undefined
    if (idempotency === undefined || key === undefined || context.caller === null)
      return perform(context, spec)
    const { accountId } = context.caller
    const path = exchange.url.split('?', 1)[0] as string
    const joins = spec.joinsIdempotency === true
    return context.params.digest().then((digest) =>
      idempotency.run({ accountId, key, digest: requestDigest(method, path, digest), joins }, (record) => {
        context.idempotency = record
        return perform(context, spec)
      }),
    )
  }

  /**
   * Runs the handler. A change has its row in the audit log before it begins, so that neither a crash nor a full disk
   * leaves a change without one; what came of it is noted before the answer.
   */
  function perform(context: RequestContext, spec: Operation): Promise<object> {
    const { audit } = parts
    const { caller } = context
    const call = recordedCall(spec)
    if (audit === undefined || caller === null || call === null) return spec.handler(context)
    return performRecorded(context, spec, call, audit.open(entryOf(spec, call, { ...context.facts, caller })))
  }

  async function performRecorded(
    context: RequestContext,
    spec: Operation,
    call: RecordedCall,
    opened: ReturnType<AuditLog['open']>,
  ): Promise<object> {
    const settle = await opened
    try {
      const result = await spec.handler(context)
      await settle(outcomeOf(call, result))
      return result
    } catch (error) {
      await settle({ status: answerTo(error, clock.now()).status, made: {} })
      throw error
    }
  }

  /** @throws Unavailable while others have it */
  async function memoryFor(arrival: Arrival, limit: BodyLimit): Promise<Release | undefined> {
    const { largeBodies } = parts
    const bytes = memoryOfBody(arrival.headers, limit)
    if (largeBodies === undefined || bytes === 0) return undefined
    const release = await largeBodies.take(bytes, MEMORY_WAIT_MS)
    if (release === null) throw new Unavailable(MEMORY_RETRY_SECONDS)
    return release
  }

  return async function dispatch(spec, exchange) {
    const { path, headers } = exchange
    let uploads: Uploads | null = null
    let memory: Release | undefined
    try {
      if (spec.crossSite !== true && origin.refuses(exchange.method, headers)) throw new Forbidden()
      const caller = spec.auth === 'public' ? null : await authenticate(spec.auth, spec, exchange)
      const checked = spec.beforeBody?.({ path, caller })
      if (checked instanceof Promise) await checked
      if (caller !== null) takeFromLimit(caller, spec, exchange)
      const limit = spec.bodyLimit ?? (caller === null ? PUBLIC_BODY_LIMIT : DEFAULT_BODY_LIMIT)
      if (caller !== null && exchange.arrival.body.kind === 'stream')
        memory = await memoryFor(exchange.arrival, limit)
      const body = await readBody(exchange.arrival, {
        limit,
        spool: acceptsFiles(spec) ? spool : null,
        multipartOnly: spec.multipartOnly === true,
        packed: caller !== null,
        digest: headers['idempotency-key'] !== undefined,
      })
      uploads = body.uploads
      const params = new Params({
        query: queryOf(exchange.url),
        body: body.fields,
        document: body.document,
        files: uploads?.files ?? NONE,
        fileDigests: uploads?.digests ?? NONE,
      })
      const context = new RequestContext(params, caller, exchange, { remote, onBehalfOf, closing })
      const result = await act(context, spec, exchange)
      if (uploads !== null) await uploads.discardUnkept()
      uploads = null
      send(result, context, spec, exchange)
    } catch (error) {
      await uploads?.discardAll()
      sendError(error, spec, exchange)
    } finally {
      memory?.()
    }
  }
}

/** So long a large body waits for its turn: a client that is refused sends all of it again. */
const MEMORY_WAIT_MS = 30_000
const MEMORY_RETRY_SECONDS = 10

const NONE: readonly never[] = []

/** Types of attachments are their senders' words. */
function sendableType(contentType: string): string {
  const isSendable = /^[\t\x20-\x7e]*$/.test(contentType) && mediaTypeOf(contentType) !== ''
  return isSendable ? contentType : 'application/octet-stream'
}

/** A stream as it is, so that what ends it closes what it reads from. */
const streamOf = (source: AsyncIterable<Uint8Array>): Readable =>
  source instanceof Readable ? source : Readable.from(source, { objectMode: false })

/** What a handler gets; what it rarely asks for is made when it does. */
class RequestContext implements Context<string, Caller | null> {
  readonly params: Params
  readonly path: Readonly<Record<string, string>>
  readonly caller: Caller | null
  readonly requestId: string
  readonly remoteAddress: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  idempotency?: IdempotencyRecord
  readonly #exchange: Exchange
  readonly #parts: ContextParts
  #signal: AbortSignal | undefined

  constructor(params: Params, caller: Caller | null, exchange: Exchange, parts: ContextParts) {
    this.params = params
    this.path = exchange.path
    this.caller = caller
    this.requestId = exchange.id
    this.remoteAddress = parts.remote.address(exchange.arrival)
    this.method = exchange.method
    this.headers = exchange.headers
    this.#exchange = exchange
    this.#parts = parts
  }

  /** What the audit log keeps of any request. */
  get facts() {
    const { params, path, remoteAddress, requestId } = this
    return { params, path, remoteAddress, requestId }
  }

  get isSecure(): boolean {
    return this.#parts.remote.isSecure(this.#exchange.arrival)
  }

  get onBehalfOf(): string | undefined {
    return this.#parts.onBehalfOf(this.headers)
  }

  get log(): Logger {
    return this.#exchange.log
  }

  get signal(): AbortSignal {
    this.#signal ??= endSignal(this.#exchange.arrival, this.#parts.closing)
    return this.#signal
  }
}

interface ContextParts {
  remote: RemoteAddresses
  onBehalfOf(headers: IncomingHttpHeaders): string | undefined
  closing: AbortSignal
}

const NO_QUERY = new Fields()

function queryOf(url: string): Fields {
  const mark = url.indexOf('?')
  return mark < 0 ? NO_QUERY : parseUrlencoded(url.slice(mark + 1))
}

/**
 * Every 401 carries the challenge, except to a script of our own pages: there the browser would open its
 * password window and remember the credentials, which the dashboard must never cause.
 */
function mayChallenge(headers: IncomingHttpHeaders): boolean {
  return !(headers['sec-fetch-site'] === 'same-origin' && headers['sec-fetch-mode'] !== 'navigate')
}

/** Aborts once the answer is out, the client is gone or the server closes. */
function endSignal(arrival: Arrival, closing: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const end = () => {
    closing.removeEventListener('abort', end)
    controller.abort()
  }
  closing.addEventListener('abort', end)
  arrival.onEnd(end)
  if (closing.aborted) end()
  return controller.signal
}
