/**
 * A request that waits for its answer, wherever its connection is: on this thread (direct-arrival.ts) or on the
 * listening thread (threaded-listener.ts).
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** A small body is present as a whole, a plain form split into fields; larger ones are read as streams. */
export type ArrivedBody =
  | { readonly kind: 'none' }
  /** Names and values in order (`splitPlainForm`). */
  | { readonly kind: 'form'; readonly fields: readonly (readonly [name: string, value: string])[] }
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  /** Ends with an error when the client leaves before all of it was read. */
  | { readonly kind: 'stream'; readonly stream: Readable }

export const NO_BODY: ArrivedBody = { kind: 'none' }

export type AnswerBody = string | Buffer | Readable | undefined

export interface Arrival {
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The connection's peer, which may be a proxy; behind a balancer the client that its PROXY header names. */
  readonly remoteAddress: string
  /** It came through the socket in the data folder, which only the service's own user and root can open. */
  readonly isLocal: boolean
  /** The connection itself speaks TLS, to us or to the balancer whose PROXY header says so. */
  readonly isEncrypted: boolean
  readonly body: ArrivedBody
  /** No answer is awaited any more: it was given, or the client has gone. */
  readonly isGone: boolean
  /** The client left before all of its body was read. */
  readonly isCut: boolean
  /**
   * Once, unless it throws: then nothing was sent. The unread rest of the request's body is discarded, up to a limit. A
   * stream that breaks ends the connection: a shorter body would look like a whole one.
   * @param onBroken called when such a stream breaks
   * @throws for a header field that cannot be sent
   */
  answer(
    status: number,
    headers: OutgoingHttpHeaders,
    body: AnswerBody,
    onBroken: (error: Error) => void,
  ): void
  /** Ends the connection without an answer. */
  abandon(): void
  /** Runs `run` once the whole answer was given, sent or not. Not if the client leaves before that. */
  onAnswered(run: () => void): void
  /** Runs `run` once the whole answer was given or the client has gone; at once if that is so already. */
  onEnd(run: () => void): void
}
