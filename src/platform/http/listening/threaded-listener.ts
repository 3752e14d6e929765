/**
 * A listener on a thread of its own, seen from the main thread. README.md says what it buys and how it works.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { finished, Readable } from 'node:stream'
import { type Transferable, Worker } from 'node:worker_threads'
import { PassingMap } from '../../../base/flow/cache.ts'
import { isShared } from '../../../base/flow/shared-bytes.ts'
import { validateHeaderName, validateHeaderValue } from '../../../base/net/node-http.ts'
import { noteSpent } from '../../../base/process/spent-buffers.ts'
import type { HeaderFault } from '../../../protocols/proxy/accepting.ts'
import { type AnswerBody, type Arrival, type ArrivedBody, NO_BODY } from './arrival.ts'
import type { HeaderFaults, Listener, ListenerOptions } from './listener.ts'

/** Young generation of the thread; with 24 MB it is no quicker. */
const YOUNG_MB = 9

/** Between two starts of a thread because the last one has ended, or could not listen. */
const RESTART_MS = 1_000

/** Shorter texts are cheaper to copy than to encode and transfer. */
const LONG_TEXT = 64 * 1024

/** Time for the thread to end its connections itself. */
const CUT_MS = 2_000

/** @param onFailure called when an answer could not be sent, or the thread ended and is started again */
export function createThreadedListener(
  options: ListenerOptions & HeaderFaults & { onFailure: (error: Error) => void },
  handle: (arrival: Arrival) => void,
): Listener {
  const { onFailure, onHeaderFault = () => {}, ...listening } = options
  let thread: ListeningThread | null = null
  let closing = false
  /** By `performance.now()`. */
  let restartedAt = Number.NEGATIVE_INFINITY

  function start(port: number, host: string): Promise<number> {
    const started = new ListeningThread(listening, handle, onFailure, onHeaderFault)
    thread = started
    const opened = started.listen(port, host)
    opened.then(
      async (openedPort) => {
        const cause = await started.ended
        if (!closing) restart(openedPort, host, cause)
      },
      () => started.terminate(),
    )
    return opened
  }

  function restart(port: number, host: string, cause: Error): void {
    onFailure(cause)
    const waitMs = Math.max(0, restartedAt + RESTART_MS - performance.now())
    setTimeout(() => {
      if (closing) return
      restartedAt = performance.now()
      start(port, host).catch((error) => {
        if (!closing) restart(port, host, error)
      })
    }, waitMs)
  }

  return {
    listen: start,
    async close() {
      closing = true
      await thread?.close()
      await thread?.terminate()
    },
    cut: () => thread?.cut(),
  }
}

class ListeningThread {
  readonly #worker: Worker
  readonly #outbox: Outbox<ToThread>
  readonly #handle: (arrival: Arrival) => void
  readonly #onFailure: (error: Error) => void
  readonly #onHeaderFault: (fault: HeaderFault) => void
  readonly #arrivals = new PassingMap<number, ThreadArrival>()
  readonly #opened = Promise.withResolvers<number>()
  readonly #closed = Promise.withResolvers<void>()
  /** Never rejects. */
  readonly ended: Promise<Error>

  constructor(
    options: ListenerOptions,
    handle: (arrival: Arrival) => void,
    onFailure: (error: Error) => void,
    onHeaderFault: (fault: HeaderFault) => void,
  ) {
    this.#handle = handle
    this.#onFailure = onFailure
    this.#onHeaderFault = onHeaderFault
    this.#worker = new Worker(join(import.meta.dirname, 'listening-thread.ts'), {
      workerData: options,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    this.#outbox = new Outbox(this.#worker)
    this.#worker.on('message', (messages: readonly ToMain[]) => {
      for (const message of messages) this.#apply(message)
    })
    let cause = new Error('the listening thread ended')
    this.#worker.on('error', (error: Error) => {
      cause = error
    })
    // 'exit' follows the thread's last message.
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => resolve(cause))
    })
    void this.ended.then((error) => this.#end(error))
  }

  listen(port: number, host: string): Promise<number> {
    this.#outbox.post(['listen', port, host])
    return this.#opened.promise
  }

  close(): Promise<void> {
    this.#outbox.post(['close'])
    return this.#closed.promise
  }

  cut(): void {
    this.#outbox.post(['cut'])
    // A thread that does not react is ended all the same.
    setTimeout(() => void this.#worker.terminate(), CUT_MS).unref()
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #end(error: Error): void {
    this.#opened.reject(error)
    this.#closed.resolve()
    for (const arrival of this.#arrivals.values()) arrival.gone()
    this.#arrivals.clear()
  }

  #apply(message: ToMain): void {
    switch (message[0]) {
      case 'arrived': {
        const [, id] = message
        const arrival = new ThreadArrival(message, this.#outbox, () => this.#arrivals.delete(id))
        this.#arrivals.set(id, arrival)
        this.#handle(arrival)
        break
      }
      case 'chunk':
        this.#arrivals.get(message[1])?.chunk(message[2])
        break
      case 'end':
        this.#arrivals.get(message[1])?.bodyEnded()
        break
      case 'pull':
        this.#arrivals.get(message[1])?.pull()
        break
      case 'gone':
        this.#arrivals.get(message[1])?.gone()
        break
      case 'open':
        this.#opened.resolve(message[1])
        break
      case 'not-open':
        this.#opened.reject(Object.assign(new Error(message[1].message), message[1]))
        break
      case 'header-fault':
        this.#onHeaderFault(message[1])
        break
      case 'failed':
        this.#onFailure(message[1])
        break
      case 'closed':
        this.#closed.resolve()
    }
  }
}

class ThreadArrival implements Arrival {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly remoteAddress: string
  readonly isLocal = false
  readonly isEncrypted: boolean
  readonly body: ArrivedBody
  isGone = false
  isCut = false
  readonly #id: number
  readonly #outbox: Outbox<ToThread>
  readonly #forget: () => void
  /** The request's body, until all of it has arrived. */
  #request: ReceivedStream | null = null
  #answer: SentStream | null = null
  /** The source of a streamed answer. */
  #source: Readable | null = null
  #isAnswered = false
  #onAnswered: (() => void)[] | null = null
  #onEnd: (() => void)[] | null = null

  constructor(
    [, id, method, url, remoteAddress, isEncrypted, headers, body]: ToMain & ['arrived', ...unknown[]],
    outbox: Outbox<ToThread>,
    forget: () => void,
  ) {
    this.#id = id
    this.method = method
    this.url = url
    this.remoteAddress = remoteAddress
    this.isEncrypted = isEncrypted
    this.headers = headersFrom(headers)
    this.#outbox = outbox
    this.#forget = forget
    this.body = this.#received(body)
  }

  #received(body: SentBody): ArrivedBody {
    if (body === null) return NO_BODY
    if (body === STREAM) {
      this.#request = new ReceivedStream(() => this.#outbox.post(['pull', this.#id]))
      return { kind: 'stream', stream: this.#request }
    }
    if (body instanceof Uint8Array) return { kind: 'whole', bytes: asBuffer(body) }
    const fields: [string, string][] = []
    for (let at = 0; at < body.length; at += 2) fields.push([body[at] as string, body[at + 1] as string])
    return { kind: 'form', fields }
  }

  answer(
    status: number,
    headers: OutgoingHttpHeaders,
    body: AnswerBody,
    onBroken: (error: Error) => void,
  ): void {
    const flat = sendable(headers)
    if (body instanceof Readable) {
      this.#outbox.post(['answer', this.#id, status, flat, STREAM])
      this.#send(body, onBroken)
      return
    }
    const bytes = transferable(body)
    this.#outbox.post(['answer', this.#id, status, flat, bytes ?? body ?? null], bytes)
    this.#answered()
    this.gone()
  }

  #send(source: Readable, onBroken: (error: Error) => void): void {
    this.#source = source
    const answer = new SentStream(source, {
      chunk: (bytes) => this.#outbox.post(['chunk', this.#id, bytes], bytes),
      end: () => {
        this.#outbox.post(['end', this.#id])
        this.#answered()
      },
    })
    this.#answer = answer
    finished(source, (error) => {
      if (this.isGone || (!error && answer.hasEnded)) return
      if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') onBroken(error)
      this.abandon()
    })
  }

  abandon(): void {
    if (!this.isGone) this.#outbox.post(['abandon', this.#id])
    this.gone()
  }

  chunk(bytes: Uint8Array): void {
    this.#request?.receive(bytes)
  }

  bodyEnded(): void {
    this.#request?.finish()
    this.#request = null
  }

  pull(): void {
    this.#answer?.pull()
  }

  /** Answered, or the client has left. */
  gone(): void {
    if (this.isGone) return
    this.isGone = true
    this.#forget()
    if (this.#request !== null && !this.#isAnswered) {
      this.isCut = true
      this.#request.destroy(new Error('connection closed'))
    }
    this.#source?.destroy()
    for (const run of this.#onEnd ?? []) queueMicrotask(run)
  }

  onAnswered(run: () => void): void {
    if (this.#isAnswered) run()
    else if (this.#onAnswered === null) this.#onAnswered = [run]
    else this.#onAnswered.push(run)
  }

  onEnd(run: () => void): void {
    if (this.isGone) run()
    else if (this.#onEnd === null) this.#onEnd = [run]
    else this.#onEnd.push(run)
  }

  #answered(): void {
    this.#isAnswered = true
    for (const run of this.#onAnswered ?? []) queueMicrotask(run)
  }
}

/** The bytes of an answer that is cheaper transferred than copied: a text in a message is copied three times. */
function transferable(body: string | Buffer | undefined): Uint8Array<ArrayBuffer> | undefined {
  if (typeof body === 'string') return body.length > LONG_TEXT ? new TextEncoder().encode(body) : undefined
  return body === undefined || isShared(body) ? undefined : ownBytes(body)
}

/** @throws what `ServerResponse.writeHead` would */
function sendable(headers: OutgoingHttpHeaders): FlatHeaders {
  const flat: FlatHeaders = []
  for (const name in headers) {
    const value = headers[name]
    validateHeaderName(name)
    for (const one of Array.isArray(value) ? value : [value]) validateHeaderValue(name, one as string)
    flat.push(name, Array.isArray(value) ? value : String(value))
  }
  return flat
}

// Messages between the listening thread and the main thread, and the two ends of a body that is streamed between them.

/** Names and values in turn. */
export type FlatHeaders = (string | string[])[]

/** In place of a body: its chunks follow, each on request. No text is `true`. */
export const STREAM = true

/** None, a form's names and values in turn, bytes, or a stream. */
type SentBody = null | string[] | Uint8Array | typeof STREAM

/** Null, a text, bytes, or a stream. */
type AnswerSent = null | string | Uint8Array | typeof STREAM

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
      isEncrypted: boolean,
      headers: FlatHeaders,
      body: SentBody,
    ]
  /** The client has left, or has the whole of a streamed answer. */
  | ['gone', id: number]
  /** An answer could not be sent. */
  | ['failed', error: Error]
  | ['header-fault', fault: HeaderFault]
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
      noteSpent(bytes.byteLength)
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
