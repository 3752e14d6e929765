/**
 * Calls of operations from within an operation: they take the way of any call, with the caller's own credentials, so that
 * rights, limits, checks and the audit log are the same.
 */
import { setMaxListeners } from 'node:events'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { BadRequest } from '../../base/process/errors.ts'
import { type AnswerBody, type Arrival, JSON_TYPE } from './listening/arrival.ts'
import type { Context } from './operation.ts'
import { asBasic, type Caller } from './rights/auth.ts'

/** On whose behalf, and from where. */
export type CallOrigin = Pick<
  Context<string, Caller>,
  'headers' | 'remoteAddress' | 'isLocal' | 'onBehalfOf' | 'signal'
>

export interface InnerCall {
  method: string
  /** Path and query. */
  url: string
  /** Name-value pairs of a form, or a value that is sent as JSON. */
  form?: readonly (readonly [name: string, value: string])[]
  json?: unknown
  /** Carried out once for this key; a POST. */
  idempotencyKey?: string
}

export interface InnerAnswer {
  status: number
  /** Cut at the limit of the call. */
  text: string
  isCut: boolean
  /** It is the answer to an earlier call with the same key. */
  isReplayed: boolean
}

/** @param bytesMax more of an answer is not read */
export type InnerCalls = (origin: CallOrigin, call: InnerCall, bytesMax: number) => Promise<InnerAnswer>

/** @param onBehalfOfName field that names a subaccount, in lower case */
export function createInnerCalls(answer: (arrival: Arrival) => void, onBehalfOfName: string): InnerCalls {
  return async (origin, call, bytesMax) => {
    const { signal } = origin
    signal.throwIfAborted()
    // One call may make many at a time.
    setMaxListeners(0, signal)
    const { promise, resolve, reject } = Promise.withResolvers<InnerAnswer>()
    const settle = (status: number, body: AnswerBody, isReplayed: boolean) =>
      textOf(body, bytesMax).then(({ text, isCut }) => resolve({ status, text, isCut, isReplayed }), reject)
    const arrival = new InnerArrival(origin, call, onBehalfOfName, settle, reject)
    const leave = () => arrival.leave()
    signal.addEventListener('abort', leave)
    try {
      answer(arrival)
      return await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }
}

/** The type of answers that never end. */
const EVENTS_TYPE = 'text/event-stream'

class InnerArrival implements Arrival {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly remoteAddress: string
  readonly isLocal: boolean
  /** What it carries came over the outer call, which was let in. */
  readonly isEncrypted = true
  readonly body: Arrival['body']
  readonly isCut = false
  isGone = false
  readonly #settle: (status: number, body: AnswerBody, isReplayed: boolean) => Promise<void>
  readonly #reject: (error: Error) => void
  #body: AnswerBody
  readonly #answered: (() => void)[] = []
  readonly #ended: (() => void)[] = []

  constructor(
    { headers, remoteAddress, isLocal, onBehalfOf }: CallOrigin,
    { method, url, form, json, idempotencyKey }: InnerCall,
    onBehalfOfName: string,
    settle: (status: number, body: AnswerBody, isReplayed: boolean) => Promise<void>,
    reject: (error: Error) => void,
  ) {
    this.method = method
    this.url = url
    // Without the fields of proxies, from which it was found.
    this.remoteAddress = remoteAddress
    this.isLocal = isLocal
    this.body = bodyOf(form, json)
    const { host, authorization, cookie } = headers
    this.headers = {
      ...(host !== undefined && { host }),
      ...(authorization !== undefined && { authorization: asBasic(authorization) }),
      ...(cookie !== undefined && { cookie }),
      ...(onBehalfOf !== undefined && { [onBehalfOfName]: onBehalfOf }),
      ...(json !== undefined && { 'content-type': JSON_TYPE }),
      ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    }
    this.#settle = settle
    this.#reject = reject
  }

  answer(status: number, headers: OutgoingHttpHeaders, body: AnswerBody): void {
    this.isGone = true
    if (body instanceof Readable && String(headers['content-type']).startsWith(EVENTS_TYPE)) {
      body.destroy()
      this.#end(new BadRequest('It sends events, and has no whole answer'))
      return
    }
    this.#body = body
    const isReplayed = headers['idempotency-replayed'] !== undefined
    void this.#settle(status, body, isReplayed).finally(() => this.#run(this.#answered, this.#ended))
  }

  abandon(): void {
    this.#end(new Error('An operation gave no answer'))
  }

  /** The outer caller has left. */
  leave(): void {
    this.#end(new Error('The caller has gone'))
    if (this.#body instanceof Readable) this.#body.destroy()
  }

  #end(error: Error): void {
    this.isGone = true
    this.#reject(error)
    this.#run(this.#ended)
  }

  #run(...lists: (() => void)[][]): void {
    for (const list of lists) for (const run of list.splice(0)) run()
  }

  onAnswered(run: () => void): void {
    this.#answered.push(run)
  }

  onEnd(run: () => void): void {
    if (this.isGone) run()
    else this.#ended.push(run)
  }
}

function bodyOf(form: InnerCall['form'], json: unknown): Arrival['body'] {
  if (json !== undefined) return { kind: 'whole', bytes: Buffer.from(JSON.stringify(json)) }
  return form === undefined ? { kind: 'none' } : { kind: 'form', fields: form }
}

async function textOf(body: AnswerBody, bytesMax: number): Promise<{ text: string; isCut: boolean }> {
  if (!(body instanceof Readable)) {
    const bytes = Buffer.from(body ?? '')
    return { text: bytes.subarray(0, bytesMax).toString(), isCut: bytes.byteLength > bytesMax }
  }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(Buffer.from(chunk as Uint8Array))
    size += (chunk as Uint8Array).byteLength
    // Leaving the loop destroys the stream.
    if (size > bytesMax) break
  }
  return { text: Buffer.concat(chunks).subarray(0, bytesMax).toString(), isCut: size > bytesMax }
}
