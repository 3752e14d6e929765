/**
 * The way of one request, the same for every operation:
 *
 * 1. refuse a foreign page's change (403) and paths that cannot exist (404)
 * 2. authenticate (401), check the address allowlist and the role (403), act as a subaccount
 * 3. the operation's own checks that need no body (404, 403)
 * 4. take from the rate limit (429)
 * 5. read query and body (400, 413)
 * 6. run the handler, answer
 *
 * Whatever is thrown on the way becomes an answer by the table in `errors.ts`. Files that were spooled are
 * discarded on failure, and after success unless the handler kept them.
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { Forbidden, NotFound, Unauthenticated } from '../base/errors.ts'
import { chunkSize } from '../base/mime-message.ts'
import { type Authenticator, authorize, type Caller, credentialsOf, type Requirement } from './auth.ts'
import { DEFAULT_BODY_LIMIT, readBody } from './body.ts'
import { answerTo } from './errors.ts'
import { createFailedAttempts, type FailedAttempts } from './failed-attempts.ts'
import { type Idempotency, idempotencyKey, requestDigest } from './idempotency.ts'
import { acceptsFiles, type Context, type Operation } from './operation.ts'
import type { OriginPolicy } from './origin.ts'
import { Params, parseUrlencoded } from './params.ts'
import { isReservedHead } from './path-table.ts'
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
}

type Outgoing = { request: FastifyRequest; reply: FastifyReply; spec: Operation }

/** After an early answer this much of an unread body is still taken in, so that the client, busy writing,
 *  gets to read the answer instead of a reset; then the connection goes. */
const DISCARDED_BODY_MAX_BYTES = 64 * 1024 * 1024

export type Dispatch = (spec: Operation, request: FastifyRequest, reply: FastifyReply) => Promise<void>

export function createDispatch(parts: DispatchParts): Dispatch {
  const { clock, authenticator, limiter, spool, origin, remote, closing } = parts
  const failedAttempts = parts.failedAttempts ?? createFailedAttempts(clock)
  const onBehalfOfNames = [parts.headerPrefix, ...parts.headerPrefixAliases].map((prefix) =>
    `${prefix}On-Behalf-Of`.toLowerCase(),
  )

  async function authenticate(requirement: Requirement, outgoing: Outgoing): Promise<Caller> {
    const { request, reply, spec } = outgoing
    const address = remote.address(request.raw)
    const presented = await callerOf(request, address)
    if (presented === null) {
      await failedAttempts.delay(address)
      throw new Unauthenticated()
    }
    reply.header(`${parts.headerPrefix}Key-Id`, presented.keyId)
    if (!(await authenticator.addressAllowed(presented, address))) {
      throw spec.plainText401 === true ? new Unauthenticated('Forbidden') : new Forbidden()
    }
    authorize(presented, requirement, request.params as Record<string, string>)
    return spec.onBehalfOf === 'argument' ? presented : await actingAs(presented, request)
  }

  async function callerOf(request: FastifyRequest, address: string): Promise<Caller | null> {
    const credentials = credentialsOf(request.headers)
    if (credentials === 'none') return null
    let caller: Caller | null = null
    if (credentials !== 'wrong') {
      if (credentials.kind === 'key') caller = await authenticator.key(credentials.secret)
      else if (origin.knowsHost(request.headers)) caller = await authenticator.session(credentials.cookie)
      else throw new Forbidden()
    }
    if (caller === null) failedAttempts.failed(address)
    return caller
  }

  async function actingAs(caller: Caller, request: FastifyRequest): Promise<Caller> {
    const subaccountId = onBehalfOf(request)
    if (subaccountId === undefined || subaccountId === caller.accountId) return caller
    if (caller.kind === 'domain' || caller.kind === 'public') throw new Forbidden()
    const acting = await authenticator.subaccount(caller, subaccountId)
    if (acting === null) throw new Forbidden()
    return acting
  }

  function onBehalfOf(request: FastifyRequest): string | undefined {
    const name = onBehalfOfNames.find((candidate) => request.headers[candidate])
    return name === undefined ? undefined : String(request.headers[name])
  }

  /** @throws TooManyRequests in the form of the limit. Every answer from here on carries its headers. */
  function takeFromLimit(caller: Caller, { request, reply, spec }: Outgoing): void {
    const name = spec.rateLimit ?? 'default'
    if (name === 'none') return
    const grant = limiter.take(name, name === 'default' ? caller.keyId : caller.accountId)
    if (grant === undefined) return
    reply.headers(rateLimitHeaders(grant))
    if (grant.allowed) return
    const domainName = typeof spec.auth === 'object' ? spec.auth.domain : undefined
    const path = request.params as Record<string, string>
    throw limitExceeded(name, grant.retrySeconds, path[domainName ?? ''] ?? '')
  }

  function contextOf(
    params: Params,
    caller: Caller | null,
    outgoing: Outgoing,
  ): Context<string, Caller | null> {
    const { request, reply } = outgoing
    let signal: AbortSignal | undefined
    return {
      params,
      path: request.params as Record<string, string>,
      caller,
      requestId: request.id,
      remoteAddress: remote.address(request.raw),
      isSecure: remote.isSecure(request.raw),
      method: request.method,
      headers: request.headers,
      onBehalfOf: onBehalfOf(request),
      log: request.log,
      get signal() {
        signal ??= endSignal(reply, closing)
        return signal
      },
    }
  }

  function sendError(error: unknown, { request, reply, spec }: Outgoing): void {
    if (request.raw.destroyed && !request.raw.complete) {
      request.log.debug({ operation: spec.id }, 'client went away during its request')
      reply.hijack()
      reply.raw.destroy()
      return
    }
    const answer = answerTo(error, clock.now())
    if (answer.ourFault) request.log.error({ err: error, operation: spec.id }, 'request failed')
    reply.code(answer.status).headers(answer.headers)
    if (answer.status === 401 && mayChallenge(request)) {
      reply.header('www-authenticate', `Basic realm="${parts.authRealm}"`)
    }
    discardBody(request)
    if (answer.status === 401 && spec.plainText401 === true) {
      reply.type('text/plain; charset=utf-8').send('Forbidden')
    } else {
      sendJson(reply, answer.body)
    }
  }

  function send(result: Reply | object, context: Context<string, Caller | null>, reply: FastifyReply): void {
    if (!(result instanceof Reply)) {
      sendJson(reply, result)
      return
    }
    reply.code(result.status).headers(result.headers as Record<string, string | string[]>)
    const { content } = result
    if (content.kind === 'json') sendJson(reply, content.body)
    else if (content.kind === 'none') reply.send()
    else if (content.kind === 'bytes') {
      reply.type(content.contentType).header('content-length', chunkSize(content.chunk))
      if (content.chunk instanceof Uint8Array) reply.send(Buffer.from(content.chunk))
      else
        reply.send(
          context.method === 'HEAD' ? '' : Readable.from(content.chunk.open(), { objectMode: false }),
        )
    } else {
      reply.type('text/event-stream; charset=utf-8')
      reply.send(context.method === 'HEAD' ? '' : eventFrames(content.events, context.signal, clock))
    }
  }

  /** Runs the handler, or repeats the answer of the first call under the same Idempotency-Key. */
  async function act(context: Context<string, Caller | null>, { request, spec }: Outgoing): Promise<object> {
    const { idempotency } = parts
    const key =
      idempotency && request.method === 'POST'
        ? idempotencyKey(request.headers['idempotency-key'])
        : undefined
    if (idempotency === undefined || key === undefined || context.caller === null)
      return spec.handler(context)
    const path = (request.raw.url as string).split('?', 1)[0] as string
    const call = {
      accountId: context.caller.accountId,
      key,
      digest: requestDigest(request.method, path, context.params.digest()),
      joins: spec.joinsIdempotency === true,
    }
    return idempotency.run(call, (record) =>
      spec.handler(Object.defineProperty(context, 'idempotency', { value: record, configurable: true })),
    )
  }

  return async function dispatch(spec, request, reply) {
    const outgoing = { request, reply, spec }
    let uploads: Uploads | null = null
    try {
      checkPath(spec, request)
      if (spec.crossSite !== true && origin.refuses(request.method, request.headers)) throw new Forbidden()
      const caller = spec.auth === 'public' ? null : await authenticate(spec.auth, outgoing)
      await spec.beforeBody?.({ path: request.params as Record<string, string>, caller })
      if (caller !== null) takeFromLimit(caller, outgoing)
      const body = await readBody(request.raw, {
        limit: spec.bodyLimit ?? DEFAULT_BODY_LIMIT,
        spool: acceptsFiles(spec) ? spool : null,
        multipartOnly: spec.multipartOnly === true,
        digest: request.headers['idempotency-key'] !== undefined,
      })
      uploads = body.uploads
      const params = new Params({
        query: parseUrlencoded(queryOf(request)),
        body: body.fields,
        document: body.document,
        files: uploads?.files ?? [],
        fileDigests: uploads?.digests ?? [],
      })
      const context = contextOf(params, caller, outgoing)
      const result = await act(context, outgoing)
      await uploads?.discardUnkept()
      uploads = null
      send(result, context, reply)
    } catch (error) {
      await uploads?.discardAll()
      sendError(error, outgoing)
    }
  }
}

/** An empty part would make `/v3/example.com/bounces/` mean one bounce without an address. */
function checkPath(spec: Operation, request: FastifyRequest): void {
  const values = Object.values(request.params as Record<string, string>)
  if (values.includes('') || isReservedHead(spec.path, values[0])) throw new NotFound()
}

function queryOf(request: FastifyRequest): string {
  const url = request.raw.url as string
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

/**
 * Every 401 carries the challenge, except to a script of our own pages: there the browser would open its
 * password window and remember the credentials, which the dashboard must never cause.
 */
function mayChallenge(request: FastifyRequest): boolean {
  const { headers } = request
  return !(headers['sec-fetch-site'] === 'same-origin' && headers['sec-fetch-mode'] !== 'navigate')
}

function sendJson(reply: FastifyReply, body: unknown): void {
  reply.type('application/json; charset=utf-8').send(JSON.stringify(body))
}

/** Lets go of what the client is still sending, up to a limit; the request's own deadline ends a slow one. */
export function discardBody(request: FastifyRequest): void {
  const { raw } = request
  if (raw.complete || raw.readableEnded) return
  let discarded = 0
  raw.on('data', (chunk: Buffer) => {
    discarded += chunk.byteLength
    if (discarded > DISCARDED_BODY_MAX_BYTES) raw.destroy()
  })
  raw.on('error', () => {})
  raw.resume()
}

/** Aborts once the answer is out, the client is gone or the server closes. */
function endSignal(reply: FastifyReply, closing: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const end = () => {
    closing.removeEventListener('abort', end)
    controller.abort()
  }
  reply.raw.once('close', end)
  closing.addEventListener('abort', end)
  if (reply.raw.destroyed || closing.aborted) end()
  return controller.signal
}
