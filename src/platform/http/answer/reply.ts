/**
 * Answers: what a handler returns when a plain object as JSON with status 200 is not enough, and the end of a request
 * (dispatch.ts), where the result, or what was thrown on the way, is sent.
 */
import { createHash } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { type CsvValue, csvBytes } from '../../../base/csv.ts'
import { sharedBytes } from '../../../base/flow/shared-bytes.ts'
import { ServiceError } from '../../../base/process/errors.ts'
import type { FaultLog } from '../../../base/process/fault-log.ts'
import type { Media, Nothing } from '../../../base/shape.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { isPlainObject } from '../../../base/values.ts'
import { type Chunk, chunkSize, inPieces } from '../../../protocols/message/mime-message.ts'
import type { Exchange } from '../exchange.ts'
import { JSON_TYPE } from '../listening/arrival.ts'
import { mediaTypeOf } from '../request/body.ts'
import type { Authentication, Guarded } from '../rights/auth.ts'
import { answerTo } from './errors.ts'

export interface ServerEvent {
  event?: string
  id?: string
  /** Sent as JSON in one line. */
  data: unknown
}

export type Content =
  | { kind: 'json'; body: unknown }
  | { kind: 'bytes'; chunk: Chunk; contentType: string }
  /** A body of unknown length; a break in it ends the connection. */
  | { kind: 'stream'; source: AsyncIterable<Uint8Array>; contentType: string }
  | { kind: 'events'; events: AsyncIterable<ServerEvent> }
  | { kind: 'fixed'; answer: FixedAnswer }
  | { kind: 'none' }

interface ReplyOptions {
  status?: number
  /** Further headers; they replace the standard ones, so a public page can set its own policy. */
  headers?: Readonly<Record<string, string | readonly string[]>>
}

declare const BODY: unique symbol

/** `B`: the type of the JSON body, or `Media`, or `Nothing`. */
// biome-ignore lint/suspicious/noExplicitAny: a reply whose body is not known fits every operation
export class Reply<B = any> {
  declare readonly [BODY]?: { is: B }
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly content: Content

  constructor(content: Content, options: ReplyOptions = {}) {
    this.status = options.status ?? 200
    this.headers = options.headers ?? {}
    this.content = content
  }
}

export const jsonReply = <const B>(body: B, options?: ReplyOptions) =>
  new Reply<B>({ kind: 'json', body }, options)

export const textReply = (text: string, options?: ReplyOptions) =>
  new Reply<Media>(
    { kind: 'bytes', chunk: Buffer.from(text), contentType: 'text/plain; charset=utf-8' },
    options,
  )

export const htmlReply = (html: string, options?: ReplyOptions) =>
  new Reply<Media>(
    { kind: 'bytes', chunk: Buffer.from(html), contentType: 'text/html; charset=utf-8' },
    options,
  )

/** Bytes as they are: a raw message, an attachment, a pixel. A lazy chunk is streamed. */
export const bytesReply = (chunk: Chunk, contentType: string, options?: ReplyOptions) =>
  new Reply<Media>({ kind: 'bytes', chunk, contentType }, options)

/** JSON that is text already. It is sent in pieces, so that it is not copied as a whole. */
export const jsonTextReply = (bytes: Uint8Array) =>
  new Reply({ kind: 'bytes', chunk: inPieces(bytes), contentType: JSON_TYPE })

/** The same, of unknown length. */
export const jsonStreamReply = (source: AsyncIterable<Uint8Array>) =>
  new Reply({ kind: 'stream', source, contentType: JSON_TYPE })

/** An answer that is the same for all clients, in the form that this one accepts, or 304. */
export const fixedReply = (answer: FixedAnswer) => new Reply({ kind: 'fixed', answer })

export const noContent = (options?: Omit<ReplyOptions, 'status'>) =>
  new Reply<Nothing>({ kind: 'none' }, { ...options, status: 204 })

export const redirectReply = (location: string, options?: ReplyOptions) =>
  new Reply<Nothing>(
    { kind: 'none' },
    { status: 302, ...options, headers: { location, ...options?.headers } },
  )

/** Server-sent events until `events` ends, the client leaves or the server closes: then `context.signal`
 *  aborts, and the source should end. */
export const eventStream = (events: AsyncIterable<ServerEvent>) =>
  new Reply<Media>({ kind: 'events', events }, { headers: { 'x-accel-buffering': 'no' } })

/** Comment lines keep proxies from closing a quiet stream; common idle limits start at 30 seconds. */
const HEARTBEAT_MS = 15_000

/**
 * The events in the text form of the HTML standard §9.2.6, with heartbeats in between. `isAllowed` is called once per
 * heartbeat interval; false ends the stream.
 */
function eventFrames(
  events: AsyncIterable<ServerEvent>,
  signal: AbortSignal,
  clock: Clock,
  isAllowed: () => Promise<boolean>,
): Readable {
  return Readable.from(frames(events[Symbol.asyncIterator](), signal, clock, isAllowed), {
    objectMode: false,
  })
}

async function* frames(
  source: AsyncIterator<ServerEvent>,
  signal: AbortSignal,
  clock: Clock,
  isAllowed: () => Promise<boolean>,
) {
  const stopped = new Promise<'stopped'>((resolve) => {
    if (signal.aborted) resolve('stopped')
    signal.addEventListener('abort', () => resolve('stopped'), { once: true })
  })
  yield ': open\n\n'
  let checkedAtMs = clock.monotonic()
  let next = source.next()
  try {
    for (;;) {
      const beat = heartbeat(clock)
      const winner = await Promise.race([next, beat.due, stopped]).finally(beat.cancel)
      if (winner === 'stopped') return
      if (clock.monotonic() - checkedAtMs >= HEARTBEAT_MS) {
        if (!(await isAllowed())) return
        checkedAtMs = clock.monotonic()
      }
      if (winner === 'due') {
        yield ': still here\n\n'
        continue
      }
      if (winner.done) return
      yield frame(winner.value)
      next = source.next()
    }
  } finally {
    next.catch(() => {}) // its result is not read any more
    void source.return?.().catch(() => {})
  }
}

function heartbeat(clock: Clock): { due: Promise<'due'>; cancel: () => void } {
  const { promise, resolve } = Promise.withResolvers<'due'>()
  const timer = clock.setTimer(HEARTBEAT_MS, () => resolve('due'))
  return { due: promise, cancel: () => timer.cancel() }
}

/** A line end within a field would end it: names and ids are ours, data is JSON and has none. */
function frame({ event, id, data }: ServerEvent): string {
  const oneLine = (text: string) => text.replace(/[\r\n\0]/g, ' ')
  const head = event === undefined ? '' : `event: ${oneLine(event)}\n`
  return `${head}${id === undefined ? '' : `id: ${oneLine(id)}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** RFC 7111 §4. */
const CSV_TYPE = 'text/csv; charset=utf-8; header=present'

/**
 * Lists as CSV files, for clients that prefer them to JSON.
 *
 * A CSV file that is written while the client takes it.
 * @param filename printable ASCII without quotes
 * @param records closed when the client leaves
 */
export const csvReply = (
  filename: string,
  header: readonly string[],
  records: AsyncIterable<readonly CsvValue[]> | Iterable<readonly CsvValue[]>,
) =>
  new Reply(
    { kind: 'stream', source: csvBytes(header, records), contentType: CSV_TYPE },
    { headers: { 'content-disposition': `attachment; filename="${filename}"` } },
  )

/**
 * Whether an Accept field names CSV, with at least the weight of JSON (RFC 9110 §12.5.1). Ranges such as `*` alone mean
 * JSON.
 */
export function prefersCsv(accept: string | undefined): boolean {
  const csv = weightOf('text/csv', accept ?? '')
  return csv > 0 && csv >= weightOf('application/json', accept ?? '')
}

/** 0: not named. */
function weightOf(type: string, accept: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...params] = range.split(';').map((part) => part.trim())
    if (name !== type) continue
    const weight = params.find((param) => param.startsWith('q='))
    return weight === undefined ? 1 : Number(weight.slice(2)) || 0
  }
  return 0
}

/**
 * Answers that are the same for all clients as long as the process runs. Their bytes, plain and compressed, are made once
 * and shared with the listening thread, so that a thousand of them in flight take no more memory than one.
 */
export interface FixedAnswer {
  headers: Readonly<Record<string, string>>
  /** In order of preference; the plain one is the last. */
  forms: readonly Form[]
}

interface Form {
  coding: Coding
  etag: string
  bytes(): Buffer
}

type Coding = 'br' | 'gzip' | 'identity'

/** The compressed forms that exist. A function is called at most once, for the first answer in that form. */
export interface Compressed {
  br?: Uint8Array | (() => Uint8Array)
  gzip?: Uint8Array | (() => Uint8Array)
}

export function fixedAnswer(
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
  { br, gzip }: Compressed = {},
): FixedAnswer {
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  const forms: Form[] = []
  if (br) forms.push({ coding: 'br', etag: `"${digest}-br"`, bytes: shared(br) })
  if (gzip) forms.push({ coding: 'gzip', etag: `"${digest}-gzip"`, bytes: shared(gzip) })
  // A strong validator names one sequence of bytes, so that each form has its own (RFC 9110 §8.8.1).
  forms.push({ coding: 'identity', etag: `"${digest}"`, bytes: shared(bytes) })
  return { headers: { ...headers, vary: 'Accept-Encoding' }, forms }
}

function shared(source: Uint8Array | (() => Uint8Array)): () => Buffer {
  if (typeof source !== 'function') {
    const bytes = sharedBytes(source)
    return () => bytes
  }
  let made: Buffer | undefined
  return () => {
    made ??= sharedBytes(source())
    return made
  }
}

/** Answers in the best form that the client accepts, or with 304 if it has any of them. */
export function sendFixed({ headers, forms }: FixedAnswer, exchange: Exchange): void {
  const acceptable = codingsOf(String(exchange.headers['accept-encoding'] ?? ''))
  const form = forms.find(({ coding }) => coding === 'identity' || acceptable(coding)) as Form
  exchange.setHeaders(headers)
  exchange.setHeader('etag', form.etag)
  const known = exchange.headers['if-none-match']
  if (known !== undefined && forms.some(({ etag }) => includesTag(known, etag))) {
    exchange.status = 304
    exchange.send(undefined)
    return
  }
  if (form.coding !== 'identity') exchange.setHeader('content-encoding', form.coding)
  exchange.send(form.bytes())
}

/** RFC 9110 §12.5.3. Without a weight for it, or for `*`, a coding is not acceptable. */
function codingsOf(acceptEncoding: string): (coding: Coding) => boolean {
  const weights = new Map<string, number>()
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [coding = '', weight] = item.split(';', 2)
    const value = /^\s*q\s*=\s*([\d.]+)\s*$/.exec(weight ?? 'q=1')?.[1]
    weights.set(coding.trim(), Number(value ?? 0))
  }
  return (coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}

/** Whether an Accept-Encoding field names the coding with a weight. */
export const accepts = (coding: Coding, acceptEncoding: string | string[] | undefined): boolean =>
  codingsOf(String(acceptEncoding ?? ''))(coding)

/** `If-None-Match` with the weak comparison, RFC 9110 §13.1.2. No etag of ours holds a comma. */
function includesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((item) => {
    const one = item.trim()
    return one === '*' || one === etag || one === `W/${etag}`
  })
}

export interface AnsweringParts {
  clock: Clock
  /** Log of what was not the caller's doing. */
  faults: FaultLog
  authRealm: string
  /** `X-Service-`; headers are written with it. */
  headerPrefix: string
}

/** What an operation says about its answers (operation.ts). */
interface AnsweredOperation extends Guarded {
  id: string
}

/** What the tests compare with the declaration of the operation. */
export interface AnsweredCall {
  /** The operation itself. */
  spec: AnsweredOperation
  status: number
  /** Empty: no body. */
  contentType: string
  /** The value to be sent as JSON, or bytes; undefined: bytes that are not at hand. */
  body: unknown
}

/** Costs nothing as long as nobody listens. */
const answers = channel('sendwright.answer')

function publish(spec: AnsweredOperation, status: number, content: Content): void {
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
  { clock, faults, authRealm, headerPrefix }: AnsweringParts,
  isStillAllowed: Authentication['isStillAllowed'],
) {
  const refusedName = `${headerPrefix}Refused`.toLowerCase()

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
    /** @param context its `signal` ends an event stream */
    sendResult(
      result: Reply | object,
      context: { readonly signal: AbortSignal },
      spec: AnsweredOperation,
      exchange: Exchange,
    ): void {
      if (!(result instanceof Reply)) {
        if (answers.hasSubscribers) publish(spec, exchange.status, { kind: 'json', body: result })
        exchange.sendJson(result)
        return
      }
      exchange.status = result.status
      exchange.setHeaders(result.headers)
      const { content } = result
      if (answers.hasSubscribers) publish(spec, result.status, content)
      if (result.status >= 400) exchange.refusal = messageOf(content)
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
    sendError(error: unknown, spec: AnsweredOperation, exchange: Exchange): void {
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
      exchange.refusal = wordsOf(error)
      exchange.setHeaders(answer.headers)
      if (error instanceof ServiceError && error.why !== undefined)
        exchange.setHeader(refusedName, asciiOf(error.why))
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

/** The text of an error that an operation has answered itself. */
const messageOf = (content: Content): string | undefined => {
  const message = content.kind === 'json' && isPlainObject(content.body) ? content.body['message'] : undefined
  return typeof message === 'string' ? message : undefined
}

/** The text of the answer, with its reason where the contract's text does not say it. */
const wordsOf = (error: unknown): string =>
  !(error instanceof ServiceError)
    ? 'Internal Server Error'
    : error.why === undefined
      ? error.message
      : `${error.message}: ${error.why}`

/** What a caller gave may be quoted in it. */
const asciiOf = (why: string) => why.slice(0, WHY_LENGTH_MAX).replace(/[^\x20-\x7e]/g, '?')
const WHY_LENGTH_MAX = 300

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
