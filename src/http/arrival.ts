/**
 * A request that has come and waits for its answer, wherever its connection is: on this thread (direct-arrival.ts) or
 * on the one that speaks HTTP (threaded-listener.ts).
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** What came with it. A small body is here as a whole, and a plain form split; larger ones are still on their way. */
export type ArrivedBody =
  | { readonly kind: 'none' }
  /** Names and values in order (small-form.ts). */
  | { readonly kind: 'form'; readonly fields: readonly (readonly [name: string, value: string])[] }
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  /** Ends with an error when the client goes away before all of it was read. */
  | { readonly kind: 'stream'; readonly stream: Readable }

export const NO_BODY: ArrivedBody = { kind: 'none' }

export type AnswerBody = string | Buffer | Readable | undefined

export interface Arrival {
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Of the connection; a proxy's, if one is in front. */
  readonly remoteAddress: string
  /** The connection itself speaks TLS. */
  readonly isEncrypted: boolean
  readonly body: ArrivedBody
  /** Nobody waits for an answer any more: it was given, or the client has gone. */
  readonly isGone: boolean
  /** The client went away before all of its body was read. */
  readonly isCut: boolean
  /**
   * Once, unless it throws: then nothing was sent. What is still to come of the request's body is let go of, up to a
   * limit. A stream that breaks ends the connection: a shorter body would look like a whole one.
   * @param broken is told of such a stream
   * @throws for a header field that cannot be sent
   */
  answer(status: number, headers: OutgoingHttpHeaders, body: AnswerBody, broken: (error: Error) => void): void
  /** Ends the connection without an answer. */
  abandon(): void
  /** `run`: the whole answer is given; it may still be on its way. Not if the client goes before that. */
  onAnswered(run: () => void): void
  /** `run`: the whole answer is given, or the client is gone, now or already. */
  onEnd(run: () => void): void
}
