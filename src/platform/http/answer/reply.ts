/** What a handler returns when a plain object as JSON with status 200 is not enough. */
import { Readable } from 'node:stream'
import type { Media, Nothing } from '../../../base/shape.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { type Chunk, inPieces } from '../../../protocols/message/mime-message.ts'
import { JSON_TYPE } from '../listening/arrival.ts'
import type { FixedAnswer } from './fixed-answer.ts'

export interface ServerEvent {
  event?: string
  id?: string
  /** Sent as JSON in one line. */
  data: unknown
}

export type Content =
  | { kind: 'json'; body: unknown }
  | { kind: 'bytes'; chunk: Chunk; contentType: string }
  /** Of unknown length; a break in it ends the connection. */
  | { kind: 'stream'; source: AsyncIterable<Uint8Array>; contentType: string }
  | { kind: 'events'; events: AsyncIterable<ServerEvent> }
  | { kind: 'fixed'; answer: FixedAnswer }
  | { kind: 'none' }

export interface ReplyOptions {
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
export function eventFrames(
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
