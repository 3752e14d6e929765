/**
 * The steps of one request, the same for every operation:
 *
 * 1. refuse a foreign page's change, and over plain HTTP what carries secrets, where all should use https (403; links
 *    that a browser opens are redirected)
 * 2. authenticate (401), check the address allowlist and the role (403), act as a subaccount (rights/auth.ts)
 * 3. the operation's own checks that need no body (404, 403)
 * 4. take from the rate limit (429)
 * 5. read query and body (400, 413; a large one when there is memory for it, 503); a small body has arrived before
 *    all this (arrival.ts). Names that the operation does not know are put into the answer, or refused (400)
 * 6. once per Idempotency-Key: write the row of a change into the audit log (503, 507), run the handler, note its outcome
 * 7. answer (answer/reply.ts), and note the call for the log of its key (rights/request-log.ts)
 *
 * Errors on the way become answers by the table in `errors.ts`. Spooled files are discarded on failure, and after
 * success unless the handler kept them.
 */

import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { ByteBudget, Release } from '../../base/flow/byte-budget.ts'
import { isPending, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { Forbidden, Unavailable } from '../../base/process/errors.ts'
import type { Shape } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Tracing } from '../traces/tracing.ts'
import { answerTo } from './answer/errors.ts'
import { type AnsweringParts, createAnswering } from './answer/reply.ts'
import type { Exchange } from './exchange.ts'
import {
  type Idempotency,
  type IdempotencyRecord,
  idempotencyKey,
  requestDigest,
} from './limits/idempotency.ts'
import { type Limiter, limitExceeded, rateLimitHeaders } from './limits/rate-limit.ts'
import type { Arrival } from './listening/arrival.ts'
import {
  acceptsFiles,
  type Context,
  type Operation,
  type RecordedCall,
  recordedCall,
  unknownNames,
  unknownParameters,
} from './operation.ts'
import {
  type BodyLimit,
  DEFAULT_BODY_LIMIT,
  memoryOfBody,
  PUBLIC_BODY_LIMIT,
  readBody,
} from './request/body.ts'
import { readInputs } from './request/inputs.ts'
import type { RemoteAddresses } from './request/origin.ts'
import { Fields, Params, parseUrlencoded, readDocument } from './request/params.ts'
import type { FileSpool, Uploads } from './request/uploads.ts'
import { type AuditLog, entryOf, outcomeOf } from './rights/audit.ts'
import { type AuthenticationParts, type Caller, checkOperator, createAuthentication } from './rights/auth.ts'
import { notedCall, type RequestLog } from './rights/request-log.ts'

export interface DispatchParts extends AuthenticationParts, HandlingParts, AnsweringParts {
  limiter: Limiter
  spool: FileSpool
  /** Aborts when the server closes. */
  closing: AbortSignal
  /** Address that callers from other machines must use, if they have to use https. */
  httpsOnly: string | null
  /** Memory for bodies that are not small. */
  largeBodies: ByteBudget
  /** Undefined: nothing is traced. */
  tracing: Tracing | undefined
  /** Whether the account has calls with unknown parameters refused. */
  isStrict(accountId: string): MaybePromise<boolean>
  requestLog: RequestLog
}

export type Dispatch = (spec: Operation, exchange: Exchange) => Promise<void>

export function createDispatch(parts: DispatchParts): Dispatch {
  const { limiter, spool, origin, remote, httpsOnly, largeBodies, tracing, clock, requestLog } = parts
  const { authenticate, isStillAllowed, onBehalfOf } = createAuthentication(parts)
  const handle = createHandling(parts)
  const { sendResult, sendError } = createAnswering(parts, isStillAllowed)
  const contextParts = { remote, onBehalfOf, closing: parts.closing }
  const ignoredName = `${parts.headerPrefix}Ignored`.toLowerCase()

  /** @param read undefined: the parameters were not read */
  function note(spec: Operation, exchange: Exchange, caller: Caller | null, read: Params | undefined): void {
    const { presented, arrival, status } = exchange
    if (presented === undefined || arrival.isCut || !requestLog.wants(presented, status >= 400)) return
    try {
      const who = { presented, caller, remoteAddress: remote.address(arrival) }
      requestLog.note(notedCall(spec, exchange, read, who))
    } catch (error) {
      exchange.log.error({ err: error }, 'a call is missing in the log of its key')
    }
  }

  return async function dispatch(spec, exchange) {
    const { path, headers } = exchange
    let uploads: Uploads | null = null
    let memory: Release | undefined
    let caller: Caller | null = null
    let params: Params | undefined
    try {
      if (spec.crossSite !== true && origin.refuses(exchange.method, headers))
        throw new Forbidden(undefined, { why: 'a page of another site has sent this' })
      if (httpsOnly !== null && isConfidential(spec) && remote.isExposed(exchange.arrival)) {
        if (spec.opensByLink !== true)
          throw new Forbidden(`Call ${httpsOnly} instead: over plain http others can read keys and passwords`)
        redirect(exchange, `${httpsOnly}${exchange.url.startsWith('/') ? exchange.url : '/'}`)
        return
      }
      caller = spec.auth === 'public' ? null : await authenticate(spec.auth, spec, exchange)
      if (tracing !== undefined && caller !== null) traceRequest(tracing, spec, exchange, caller, clock)
      spec.clientLimit?.take(remote.address(exchange.arrival))
      const finding = spec.beforeBody?.({ path, caller })
      const found = isPending(finding) ? await finding : finding
      const taking = caller === null ? undefined : takeFromLimit(limiter, caller, spec, exchange)
      if (isPending(taking)) await taking
      const limit = spec.bodyLimit ?? (caller === null ? PUBLIC_BODY_LIMIT : DEFAULT_BODY_LIMIT)
      if (limit.bytes > PUBLIC_BODY_LIMIT.bytes && exchange.arrival.body.kind === 'stream')
        memory = await memoryFor(exchange.arrival, limit, largeBodies)
      const body = hasBody(spec, exchange.arrival)
        ? await readBody(exchange.arrival, {
            limit,
            spool: acceptsFiles(spec) ? spool : null,
            multipartOnly: spec.multipartOnly === true,
            bytesOf: spec.bytesOf,
            packed: caller !== null,
            digest: headers['idempotency-key'] !== undefined,
          })
        : NO_CONTENT
      uploads = body.uploads
      const query = queryOf(exchange.url)
      params =
        body === NO_CONTENT && query === NO_FIELDS
          ? NO_PARAMS
          : new Params({
              query,
              body: body.fields,
              document: body.document,
              files: uploads?.files ?? NONE,
              fileDigests: uploads?.digests ?? NONE,
            })
      // Pages and links for everybody have no account, and get names from whatever decorates links.
      const ignored = caller === null || params === NO_PARAMS ? NONE : unknownNames(spec, params)
      if (caller !== null && ignored.length > 0) {
        if (await parts.isStrict(caller.accountId)) throw unknownParameters(spec, ignored)
        exchange.setHeader(ignoredName, ignored.join(', '))
      }
      const context = new RequestContext(spec, params, caller, found, ignored, exchange, contextParts)
      if (body.bytes !== undefined) context.bytes = body.bytes
      const result = await handle(context, spec, exchange)
      if (uploads !== null) await uploads.discardUnkept()
      uploads = null
      sendResult(result, context, spec, exchange)
    } catch (error) {
      await uploads?.discardAll()
      sendError(error, spec, exchange)
    } finally {
      memory?.()
      note(spec, exchange, caller, params)
    }
  }
}

const NONE: readonly never[] = []

/** Needs credentials, or takes some, as signing in does. Without credentials it is refused too: they would come next. */
const isConfidential = ({ auth, method, crossSite, opensByLink }: Operation): boolean =>
  auth !== 'public' || opensByLink === true || (method !== 'GET' && crossSite !== true)

/** Others may have read the link: the visitor uses it up at once, so that they cannot. Browsers do not keep a 307. */
function redirect(exchange: Exchange, location: string): void {
  exchange.status = 307
  exchange.setHeader('location', location)
  exchange.send(undefined)
}

/** Every answer from here on carries the limit's headers. @throws TooManyRequests in the form of the limit */
function takeFromLimit(
  limiter: Limiter,
  caller: Caller,
  spec: Operation,
  exchange: Exchange,
): MaybePromise<void> {
  const name = spec.rateLimit ?? 'default'
  if (name === 'none') return undefined
  return whenKnown(limiter.take(name, name === 'default' ? caller.keyId : caller.accountId), (grant) => {
    if (grant === undefined) return
    exchange.setHeaders(rateLimitHeaders(grant))
    if (grant.allowed) return
    const domainName = typeof spec.auth === 'object' ? spec.auth.domain : undefined
    throw limitExceeded(name, grant.retrySeconds, exchange.path[domainName ?? ''] ?? '')
  })
}

/** A large body waits this long for memory: a refused client sends all of it again. */
const MEMORY_WAIT_MS = 30_000
const MEMORY_RETRY_SECONDS = 10

/** @throws Unavailable while other bodies have it */
async function memoryFor(
  arrival: Arrival,
  limit: BodyLimit,
  budget: ByteBudget,
): Promise<Release | undefined> {
  const bytes = memoryOfBody(arrival.headers, limit)
  if (bytes === 0) return undefined
  const release = await budget.take(bytes, MEMORY_WAIT_MS)
  if (release === null) throw new Unavailable(MEMORY_RETRY_SECONDS)
  return release
}

const NO_FIELDS = new Fields()
const NO_CONTENT = { fields: NO_FIELDS, document: undefined, uploads: null, bytes: undefined }
const NO_BYTES = Buffer.alloc(0)
/** Most calls that read one thing have none. */
const NO_PARAMS = new Params({ query: NO_FIELDS, body: NO_FIELDS })

/** Without one there is nothing to read, unless its form is prescribed. */
const hasBody = (spec: Operation, { body }: Arrival): boolean =>
  body.kind !== 'none' || spec.multipartOnly === true

function queryOf(url: string): Fields {
  const mark = url.indexOf('?')
  return mark < 0 ? NO_FIELDS : parseUrlencoded(url.slice(mark + 1))
}

/**
 * Begins the span of a request whose caller is known, so that strangers can neither fill the collector nor decide what is
 * sampled. It continues the caller's trace, began when the request's header had arrived, and ends with the answer.
 */
function traceRequest(
  tracing: Tracing,
  { method, path: route, id }: Operation,
  exchange: Exchange,
  caller: Caller,
  clock: Clock,
): void {
  const { arrival, headers } = exchange
  const span = tracing.begin({
    name: `${method} ${route}`,
    kind: 'server',
    parent: headers['traceparent'] as string | undefined,
    at: clock.now() - (performance.now() - exchange.startedAt),
  })
  exchange.span = span
  let isEnded = false
  const end = (status: number | undefined) => {
    if (isEnded) return
    isEnded = true
    const attributes = {
      'http.request.method': exchange.method,
      'http.route': route,
      'http.response.status_code': status,
      'sendwright.operation': id,
      'sendwright.request.id': exchange.id,
      'sendwright.account.id': caller.accountId,
    }
    span.end(clock.now(), attributes, status === undefined || status >= 500)
  }
  arrival.onAnswered(() => end(exchange.status))
  // Without an answer: the client has left.
  arrival.onEnd(() => end(undefined))
}

interface ContextParts {
  remote: RemoteAddresses
  onBehalfOf(headers: IncomingHttpHeaders): string | undefined
  /** Aborts when the server closes. */
  closing: AbortSignal
}

/** What a handler receives; values that few handlers read are computed on demand. */
class RequestContext implements Context<string, Caller | null> {
  readonly params: Params
  readonly path: Readonly<Record<string, string>>
  readonly caller: Caller | null
  readonly found: unknown
  readonly ignored: readonly string[]
  readonly requestId: string
  readonly remoteAddress: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  bytes: Buffer = NO_BYTES
  idempotency?: IdempotencyRecord
  readonly #spec: Operation
  readonly #exchange: Exchange
  readonly #parts: ContextParts
  #signal: AbortSignal | undefined

  constructor(
    spec: Operation,
    params: Params,
    caller: Caller | null,
    found: unknown,
    ignored: readonly string[],
    exchange: Exchange,
    parts: ContextParts,
  ) {
    this.params = params
    this.path = exchange.path
    this.caller = caller
    this.found = found
    this.ignored = ignored
    this.requestId = exchange.id
    this.remoteAddress = parts.remote.address(exchange.arrival)
    this.method = exchange.method
    this.headers = exchange.headers
    this.#spec = spec
    this.#exchange = exchange
    this.#parts = parts
  }

  get input(): () => unknown {
    return () => readInputs(this.#spec.inputs, this.params)
  }

  get document(): () => unknown {
    return () => readDocument(this.#spec.body as Shape<unknown>, this.params.json())
  }

  /** What the audit log keeps of any request. */
  get facts() {
    const { params, path, remoteAddress, requestId } = this
    return { params, path, remoteAddress, requestId }
  }

  get isSecure(): boolean {
    return this.#parts.remote.isSecure(this.#exchange.arrival)
  }

  get isLocal(): boolean {
    return this.#exchange.arrival.isLocal
  }

  get onBehalfOf(): string | undefined {
    return this.#parts.onBehalfOf(this.headers)
  }

  get traceparent(): string | undefined {
    return this.#exchange.span?.traceparent
  }

  get log(): Logger {
    return this.#exchange.log
  }

  get signal(): AbortSignal {
    this.#signal ??= endSignal(this.#exchange.arrival, this.#parts.closing)
    return this.#signal
  }
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

interface HandlingParts {
  clock: Clock
  /** Answers to repeated POSTs. */
  idempotency: Idempotency
  audit: AuditLog
  /** The operator's. */
  firstAccountId: string
  /** Resolves when other processes have applied the changes that were made here. */
  applied(): Promise<void>
}

/** Step 6: runs the handler, or repeats the answer of the first call under the same Idempotency-Key. */
type Handle = (context: RequestContext, spec: Operation, exchange: Exchange) => Promise<object>

function createHandling({ clock, idempotency, audit, applied, firstAccountId }: HandlingParts): Handle {
  /** Checks here whom the operation is for, so that a refused attempt is in the audit log. */
  async function run(context: RequestContext, spec: Operation): Promise<object> {
    const isOperators = spec.auth !== 'public' && spec.auth.only === 'first'
    if (context.caller !== null && isOperators) checkOperator(context.caller, firstAccountId)
    return spec.handler(context)
  }

  function perform(context: RequestContext, spec: Operation): Promise<object> {
    const { caller } = context
    const call = recordedCall(spec)
    return caller === null || call === null
      ? run(context, spec)
      : performRecorded(context, spec, call, audit.open(entryOf(spec, call, { ...context.facts, caller })))
  }

  /**
   * A change has its row in the audit log before it begins, so that neither a crash nor a full disk leaves a change
   * without one; its outcome is noted before the answer. The answer waits for the other processes too, so that a change
   * is in force everywhere when it is answered.
   */
  async function performRecorded(
    context: RequestContext,
    spec: Operation,
    call: RecordedCall,
    opened: ReturnType<AuditLog['open']>,
  ): Promise<object> {
    const settle = await opened
    try {
      const result = await run(context, spec)
      await settle(outcomeOf(call, result))
      await applied()
      return result
    } catch (error) {
      await settle({ status: answerTo(error, clock.now()).status, made: {} })
      throw error
    }
  }

  return function handle(context, spec, { method, headers, url }) {
    const given = method === 'POST' ? headers['idempotency-key'] : undefined
    if (given === undefined || context.caller === null) return perform(context, spec)
    const key = idempotencyKey(given)
    const { accountId, kind, userId, keyId } = context.caller
    const path = url.split('?', 1)[0] as string
    const joins = spec.joinsIdempotency === true
    // Answers may hold secrets, which are for who asked for them. Those to sends hold none, and a repetition with
    // another key must not send twice.
    const owner = joins ? null : kind === 'session' ? (userId ?? keyId) : keyId
    return context.params.digest().then((digest) => {
      const call = { accountId, owner, key, digest: requestDigest(method, path, digest), joins }
      return idempotency.run(call, (record) => {
        context.idempotency = record
        return perform(context, spec)
      })
    })
  }
}
