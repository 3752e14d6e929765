/**
 * The listening thread: sends the arrivals of its listener to the main thread and receives the answers (README.md).
 * A client that leaves before its request is answered is reported.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { PassingMap } from '../../../base/flow/cache.ts'
import { collectAtRest } from '../../../base/process/rest-collection.ts'
import type { HeaderFault } from '../../../protocols/proxy/accepting.ts'
import { type AnswerBody, type Arrival, type ArrivedBody, NO_BODY } from './arrival.ts'
import type { DirectArrival } from './direct-arrival.ts'
import { createListener, type ListenerOptions } from './listener.ts'
import {
  asBuffer,
  flatHeaders,
  headersFrom,
  Outbox,
  ownBytes,
  ReceivedStream,
  SentStream,
  STREAM,
  type ToMain,
  type ToThread,
} from './threaded-listener.ts'

interface Pending {
  arrival: Arrival
  /** The request's body, while it is streamed. */
  request: SentStream | null
  /** The answer's body. */
  answer: ReceivedStream | null
}

if (parentPort === null) throw new Error('This runs as a thread')
const port = parentPort
collectAtRest()
const outbox = new Outbox<ToMain>(port)
const options: ListenerOptions = workerData
const onHeaderFault = (fault: HeaderFault) => outbox.post(['header-fault', fault])
const listener = createListener({ ...options, onHeaderFault }, arrived)
/** By their numbers; requests whose whole answer has arrived are removed. */
const pending = new PassingMap<number, Pending>()
let lastId = 0

function arrived(arrival: DirectArrival): void {
  const id = ++lastId
  const { method, url, remoteAddress, isEncrypted, headers, body } = arrival
  const sent = sentBody(body)
  const bytes = sent instanceof Uint8Array ? sent : undefined
  outbox.post(['arrived', id, method, url, remoteAddress, isEncrypted, flatHeaders(headers), sent], bytes)
  // Transferred or copied to the main thread.
  if (sent !== STREAM) arrival.body = NO_BODY
  const request = body.kind === 'stream' ? sentStream(id, body) : null
  pending.set(id, { arrival, request, answer: null })
  arrival.onEnd(() => ended(id))
}

function sentBody(body: ArrivedBody): null | string[] | Uint8Array<ArrayBuffer> | typeof STREAM {
  if (body.kind === 'none') return null
  if (body.kind === 'form') return body.fields.flat()
  return body.kind === 'whole' ? ownBytes(body.bytes) : STREAM
}

function sentStream(id: number, { stream }: ArrivedBody & { kind: 'stream' }): SentStream {
  const sent = new SentStream(stream, {
    chunk: (bytes) => outbox.post(['chunk', id, bytes], bytes),
    end: () => outbox.post(['end', id]),
  })
  stream.on('error', () => {})
  // The only event when a client leaves while an earlier one of its requests is being answered.
  stream.once('close', () => {
    if (!sent.hasEnded && pending.get(id)?.request === sent) ended(id)
  })
  return sent
}

/** Answered, or the client has gone. */
function ended(id: number): void {
  const known = pending.get(id)
  if (known === undefined) return
  pending.delete(id)
  outbox.post(['gone', id])
}

function answer([, id, status, headers, body]: ToThread & ['answer', ...unknown[]]): void {
  const known = pending.get(id)
  if (known === undefined) return
  known.request?.stop()
  known.request = null
  let content: AnswerBody
  if (body === STREAM) {
    known.answer = new ReceivedStream(() => outbox.post(['pull', id]))
    content = known.answer
  } else {
    pending.delete(id)
    content = body === null || typeof body === 'string' ? (body ?? undefined) : asBuffer(body)
  }
  try {
    // A source that breaks does so on the main thread, which then abandons the answer.
    known.arrival.answer(status, headersFrom(headers), content, () => {})
  } catch (error) {
    known.arrival.abandon()
    outbox.post(['failed', error as Error])
  }
}

function abandon(id: number): void {
  const known = pending.get(id)
  pending.delete(id)
  known?.arrival.abandon()
}

function apply(message: ToThread): void {
  switch (message[0]) {
    case 'listen':
      listener.listen(message[1], message[2]).then(
        (opened) => outbox.post(['open', opened]),
        (error: Error) => outbox.post(['not-open', { ...error, message: error.message }]),
      )
      break
    case 'answer':
      answer(message)
      break
    case 'abandon':
      abandon(message[1])
      break
    case 'pull':
      pending.get(message[1])?.request?.pull()
      break
    case 'chunk':
      pending.get(message[1])?.answer?.receive(message[2])
      break
    case 'end':
      pending.get(message[1])?.answer?.finish()
      break
    case 'close':
      void listener.close().then(() => outbox.post(['closed']))
      break
    case 'cut':
      listener.cut()
  }
}

port.on('message', (messages: readonly ToThread[]) => {
  for (const message of messages) apply(message)
})
