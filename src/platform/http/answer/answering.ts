/** The end of a request (dispatch.ts): what the handler returned, or what was thrown on the way, becomes the answer. */
import { channel } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FaultLog } from '../../../base/process/fault-log.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { chunkSize } from '../../../protocols/message/mime-message.ts'
import type { Exchange } from '../exchange.ts'
import { JSON_TYPE } from '../listening/arrival.ts'
import type { Operation } from '../operation.ts'
import { mediaTypeOf } from '../request/body.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Authentication } from '../rights/authentication.ts'
import { answerTo } from './errors.ts'
import { sendFixed } from './fixed-answer.ts'
import { type Content, eventFrames, Reply } from './reply.ts'

export interface AnsweringParts {
  clock: Clock
  /** Log of what was not the caller's doing. */
  faults: FaultLog
  authRealm: string
}

export interface Answering {
  sendResult(result: Reply | object, context: RequestContext, spec: Operation, exchange: Exchange): void
  sendError(error: unknown, spec: Operation, exchange: Exchange): void
}

/** What the tests compare with the declaration of the operation. */
export interface AnsweredCall {
  spec: Operation
  status: number
  /** Empty: no body. */
  contentType: string
  /** The value to be sent as JSON, or bytes; undefined: bytes that are not at hand. */
  body: unknown
}

/** Costs nothing as long as nobody listens. */
const answers = channel('sendwright.answer')

function publish(spec: Operation, status: number, content: Content): void {
  const call = (contentType: string, body?: unknown): AnsweredCall => ({ spec, status, contentType, body })
  if (content.kind === 'json') answers.publish(call(JSON_TYPE, content.body))
  else if (content.kind === 'none') answers.publish(call(''))
  else if (content.kind === 'events') answers.publish(call('text/event-stream'))
  else if (content.kind === 'fixed')
    return // one of our pages, made before
  else if (content.kind === 'stream') answers.publish(call(content.contentType))
  else
    answers.publish(
      call(content.contentType, content.chunk instanceof Uint8Array ? Buffer.from(content.chunk) : undefined),
    )
}

/** @param isStillAllowed checked during event streams */
export function createAnswering(
  { clock, faults, authRealm }: AnsweringParts,
  isStillAllowed: Authentication['isStillAllowed'],
): Answering {
  function sendBytes({ chunk, contentType }: Content & { kind: 'bytes' }, exchange: Exchange): void {
    exchange.setHeader('content-type', sendableType(contentType))
    exchange.setHeader('content-length', chunkSize(chunk))
    if (chunk instanceof Uint8Array) exchange.send(Buffer.from(chunk))
    else if (exchange.method === 'HEAD') exchange.send('')
    // Opened, a file would stay open for a client that has gone.
    else if (exchange.arrival.isGone) exchange.abandon()
    else exchange.send(streamOf(chunk.open()))
  }

  function sendStream({ source, contentType }: Content & { kind: 'stream' }, exchange: Exchange): void {
    exchange.setHeader('content-type', contentType)
    exchange.send(exchange.method === 'HEAD' ? '' : streamOf(source))
  }

  return {
    sendResult(result, context, spec, exchange) {
      if (!(result instanceof Reply)) {
        if (answers.hasSubscribers) publish(spec, exchange.status, { kind: 'json', body: result })
        exchange.sendJson(result)
        return
      }
      exchange.status = result.status
      exchange.setHeaders(result.headers)
      const { content } = result
      if (answers.hasSubscribers) publish(spec, result.status, content)
      if (content.kind === 'json') exchange.sendJson(content.body)
      else if (content.kind === 'none') exchange.send(undefined)
      else if (content.kind === 'fixed') sendFixed(content.answer, exchange)
      else if (content.kind === 'bytes') sendBytes(content, exchange)
      else if (content.kind === 'stream') sendStream(content, exchange)
      else {
        exchange.setHeader('content-type', 'text/event-stream; charset=utf-8')
        const isAllowed = () => isStillAllowed(spec, exchange)
        const isHead = exchange.method === 'HEAD'
        exchange.send(isHead ? '' : eventFrames(content.events, context.signal, clock, isAllowed))
      }
    },
    sendError(error, spec, exchange) {
      if (exchange.arrival.isCut) {
        exchange.log.debug({ operation: spec.id }, 'client went away during its request')
        exchange.abandon()
        return
      }
      const answer = answerTo(error, clock.now())
      if (answer.ourFault) {
        const facts = { operation: spec.id, status: answer.status }
        faults.log(exchange.log, error, facts, 'request failed')
      }
      exchange.status = answer.status
      exchange.setHeaders(answer.headers)
      if (answer.status === 401 && mayChallenge(exchange.headers)) {
        exchange.setHeader('www-authenticate', `Basic realm="${authRealm}"`)
      }
      if (answer.status === 401 && spec.plainText401 === true) {
        exchange.setHeader('content-type', 'text/plain; charset=utf-8')
        exchange.send('Forbidden')
      } else {
        if (answers.hasSubscribers) publish(spec, answer.status, { kind: 'json', body: answer.body })
        exchange.sendJson(answer.body)
      }
    },
  }
}

/** The senders of attachments choose their types. */
function sendableType(contentType: string): string {
  const isSendable = /^[\t\x20-\x7e]*$/.test(contentType) && mediaTypeOf(contentType) !== ''
  return isSendable ? contentType : 'application/octet-stream'
}

/** A stream as it is, so that what ends it closes what it reads from. */
const streamOf = (source: AsyncIterable<Uint8Array>): Readable =>
  source instanceof Readable ? source : Readable.from(source, { objectMode: false })

/**
 * Every 401 carries the challenge, except to a script of our own pages: there the browser would open its
 * password window and remember the credentials, which the dashboard must never cause.
 */
function mayChallenge(headers: IncomingHttpHeaders): boolean {
  return !(headers['sec-fetch-site'] === 'same-origin' && headers['sec-fetch-mode'] !== 'navigate')
}
