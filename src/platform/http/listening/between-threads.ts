/** Messages between the listening thread and the main thread, and the two ends of a body that is streamed between them. */
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Transferable } from 'node:worker_threads'

/** Names and values in turn. */
export type FlatHeaders = (string | string[])[]

/** In place of a body: its chunks follow, each on request. No text is `true`. */
export const STREAM = true

/** None, a form's names and values in turn, bytes, or a stream. */
export type SentBody = null | string[] | Uint8Array | typeof STREAM

/** Null, a text, bytes, or a stream. */
export type AnswerSent = null | string | Uint8Array | typeof STREAM

/** The part of a system error that a message can carry; an Error would lose its code. */
export interface SystemError {
  message: string
  code?: string
}

/** About the streamed body of the request with that number. */
type BodyMessage = ['chunk', id: number, bytes: Uint8Array] | ['end', id: number] | ['pull', id: number]

export type ToMain =
  | ['open', port: number]
  | ['not-open', error: SystemError]
  | [
      'arrived',
      id: number,
      method: string,
      url: string,
      remoteAddress: string,
      headers: FlatHeaders,
      body: SentBody,
    ]
  /** The client has left, or has the whole of a streamed answer. */
  | ['gone', id: number]
  /** An answer could not be sent. */
  | ['failed', error: Error]
  | ['closed']
  | BodyMessage

export type ToThread =
  | ['listen', port: number, host: string]
  | ['answer', id: number, status: number, headers: FlatHeaders, body: AnswerSent]
  /** Also in the middle of an answer. */
  | ['abandon', id: number]
  | ['close']
  | ['cut']
  | BodyMessage

export function flatHeaders(headers: IncomingHttpHeaders): FlatHeaders {
  const flat: FlatHeaders = []
  for (const name in headers) flat.push(name, headers[name] as string | string[])
  return flat
}

/** By name; a later one of a name wins. */
export function headersFrom(flat: FlatHeaders): Record<string, string | string[]> {
  const headers = Object.create(null) as Record<string, string | string[]>
  for (let at = 0; at < flat.length; at += 2) headers[flat[at] as string] = flat[at + 1] as string | string[]
  return headers
}

/** Posts to the other thread. Messages of one turn of the event loop are sent together: each send wakes the other side. */
export class Outbox<M> {
  readonly #port: { postMessage(messages: readonly M[], transfer: Transferable[]): void }
  #messages: M[] = []
  #transfer: Transferable[] = []

  constructor(port: { postMessage(messages: readonly M[], transfer: Transferable[]): void }) {
    this.#port = port
  }

  /** @param bytes part of the message, from `ownBytes`: transferred instead of copied */
  post(message: M, bytes?: Uint8Array<ArrayBuffer>): void {
    if (bytes !== undefined) this.#transfer.push(bytes.buffer)
    if (this.#messages.push(message) === 1) setImmediate(() => this.#flush())
  }

  #flush(): void {
    const messages = this.#messages
    const transfer = this.#transfer
    this.#messages = []
    this.#transfer = []
    this.#port.postMessage(messages, transfer)
  }
}

/** A copy in memory of its own: transferring a slice of a pool would transfer the whole pool. */
export const ownBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes)

export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The receiving end of a streamed body: requests a chunk when it has room. */
export class ReceivedStream extends Readable {
  readonly #pull: () => void

  constructor(pull: () => void) {
    super()
    this.#pull = pull
    // Readers get the error; there may be none.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#pull()
  }

  receive(bytes: Uint8Array): void {
    this.push(asBuffer(bytes))
  }

  finish(): void {
    this.push(null)
  }
}

/** The sending end: sends one chunk per request. */
export class SentStream {
  readonly #source: Readable
  readonly #to: { chunk(bytes: Uint8Array<ArrayBuffer>): void; end(): void }
  #pulls = 0
  #ended = false
  readonly #pass = () => {
    while (this.#pulls > 0) {
      const bytes = this.#source.read() as Buffer | null
      if (bytes === null) return
      this.#pulls--
      this.#to.chunk(ownBytes(bytes))
    }
  }
  readonly #end = () => {
    this.#ended = true
    this.#to.end()
  }

  constructor(source: Readable, to: { chunk(bytes: Uint8Array<ArrayBuffer>): void; end(): void }) {
    this.#source = source
    this.#to = to
    source.on('readable', this.#pass)
    source.once('end', this.#end)
  }

  get hasEnded(): boolean {
    return this.#ended
  }

  pull(): void {
    this.#pulls++
    this.#pass()
  }

  /** Detaches from the source, which may then be read in another way. */
  stop(): void {
    this.#source.off('readable', this.#pass)
    this.#source.off('end', this.#end)
  }
}
