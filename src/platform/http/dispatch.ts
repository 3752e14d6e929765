/**
 * The steps of one request, the same for every operation:
 *
 * 1. refuse a foreign page's change, and over plain HTTP what carries secrets, where all should use https (403; links
 *    that a browser opens are redirected)
 * 2. authenticate (401), check the address allowlist and the role (403), act as a subaccount (authentication.ts)
 * 3. the operation's own checks that need no body (404, 403)
 * 4. take from the rate limit (429)
 * 5. read query and body (400, 413; a large one when there is memory for it, 503); a small body has arrived before
 *    all this (arrival.ts). Names that the operation does not know are put into the answer, or refused (400,
 *    unknown-names.ts)
 * 6. write the row of a change into the audit log (503, 507), run the handler, note its outcome (handling.ts)
 * 7. answer (answering.ts)
 *
 * Errors on the way become answers by the table in `errors.ts`. Spooled files are discarded on failure, and after
 * success unless the handler kept them.
 */
import type { ByteBudget, Release } from '../../base/flow/byte-budget.ts'
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { Forbidden, Unavailable } from '../../base/process/errors.ts'
import type { Tracing } from '../traces/tracing.ts'
import { type AnsweringParts, createAnswering } from './answer/answering.ts'
import { traceRequest } from './answer/traced-request.ts'
import type { Exchange } from './exchange.ts'
import { createHandling, type HandlingParts } from './handling.ts'
import { type Limiter, limitExceeded, rateLimitHeaders } from './limits/rate-limit.ts'
import type { Arrival } from './listening/arrival.ts'
import { acceptsFiles, type Operation } from './operation.ts'
import {
  type BodyLimit,
  DEFAULT_BODY_LIMIT,
  memoryOfBody,
  PUBLIC_BODY_LIMIT,
  readBody,
} from './request/body.ts'
import { Fields, Params, parseUrlencoded } from './request/params.ts'
import { RequestContext } from './request/request-context.ts'
import { unknownNames, unknownParameters } from './request/unknown-names.ts'
import type { FileSpool, Uploads } from './request/uploads.ts'
import type { Caller } from './rights/auth.ts'
import { type AuthenticationParts, createAuthentication } from './rights/authentication.ts'

export interface DispatchParts extends AuthenticationParts, HandlingParts, AnsweringParts {
  limiter: Limiter
  spool: FileSpool
  /** Aborts when the server closes. */
  closing: AbortSignal
  /** Address that callers from other machines must use, if they have to use https. */
  httpsOnly?: string | undefined
  /** Memory for bodies that are not small; undefined: without a limit. */
  largeBodies?: ByteBudget | undefined
  tracing?: Tracing | undefined
  /** Whether the account has calls with unknown parameters refused. Default: no account. */
  isStrict?: ((accountId: string) => MaybePromise<boolean>) | undefined
}

export type Dispatch = (spec: Operation, exchange: Exchange) => Promise<void>

export function createDispatch(parts: DispatchParts): Dispatch {
  const { limiter, spool, origin, remote, httpsOnly, largeBodies, tracing, clock } = parts
  const { authenticate, isStillAllowed, onBehalfOf } = createAuthentication(parts)
  const handle = createHandling(parts)
  const { sendResult, sendError } = createAnswering(parts, isStillAllowed)
  const contextParts = { remote: parts.remote, onBehalfOf, closing: parts.closing }
  const ignoredName = `${parts.headerPrefix}Ignored`.toLowerCase()

  return async function dispatch(spec, exchange) {
    const { path, headers } = exchange
    let uploads: Uploads | null = null
    let memory: Release | undefined
    try {
      if (spec.crossSite !== true && origin.refuses(exchange.method, headers)) throw new Forbidden()
      if (httpsOnly !== undefined && isConfidential(spec) && remote.isExposed(exchange.arrival)) {
        if (spec.opensByLink !== true)
          throw new Forbidden(`Call ${httpsOnly} instead: over plain http others can read keys and passwords`)
        redirect(exchange, `${httpsOnly}${exchange.url.startsWith('/') ? exchange.url : '/'}`)
        return
      }
      const caller = spec.auth === 'public' ? null : await authenticate(spec.auth, spec, exchange)
      if (tracing !== undefined && caller !== null) traceRequest(tracing, spec, exchange, caller, clock)
      const finding = spec.beforeBody?.({ path, caller })
      const found = finding instanceof Promise ? await finding : finding
      const taking = caller === null ? undefined : takeFromLimit(limiter, caller, spec, exchange)
      if (taking instanceof Promise) await taking
      const limit = spec.bodyLimit ?? (caller === null ? PUBLIC_BODY_LIMIT : DEFAULT_BODY_LIMIT)
      if (caller !== null && exchange.arrival.body.kind === 'stream')
        memory = await memoryFor(exchange.arrival, limit, largeBodies)
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
      // Pages and links for everybody have no account, and get names from whatever decorates links.
      const ignored = caller === null ? NONE : unknownNames(spec, params)
      if (caller !== null && ignored.length > 0) {
        if ((await parts.isStrict?.(caller.accountId)) === true) throw unknownParameters(spec, ignored)
        exchange.setHeader(ignoredName, ignored.join(', '))
      }
      const context = new RequestContext(spec, params, caller, found, ignored, exchange, contextParts)
      const result = await handle(context, spec, exchange)
      if (uploads !== null) await uploads.discardUnkept()
      uploads = null
      sendResult(result, context, spec, exchange)
    } catch (error) {
      await uploads?.discardAll()
      sendError(error, spec, exchange)
    } finally {
      memory?.()
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
  budget: ByteBudget | undefined,
): Promise<Release | undefined> {
  const bytes = memoryOfBody(arrival.headers, limit)
  if (budget === undefined || bytes === 0) return undefined
  const release = await budget.take(bytes, MEMORY_WAIT_MS)
  if (release === null) throw new Unavailable(MEMORY_RETRY_SECONDS)
  return release
}

const NO_QUERY = new Fields()

function queryOf(url: string): Fields {
  const mark = url.indexOf('?')
  return mark < 0 ? NO_QUERY : parseUrlencoded(url.slice(mark + 1))
}
