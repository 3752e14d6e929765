/** What a handler receives; values that few handlers read are computed on demand. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { Shape } from '../../../base/shape.ts'
import type { Exchange } from '../exchange.ts'
import type { IdempotencyRecord } from '../limits/idempotency.ts'
import type { Arrival } from '../listening/arrival.ts'
import type { Context, Operation } from '../operation.ts'
import type { Caller } from '../rights/auth.ts'
import { readInputs } from './inputs.ts'
import { type Params, readDocument } from './params.ts'
import type { RemoteAddresses } from './remote-address.ts'

export interface ContextParts {
  remote: RemoteAddresses
  onBehalfOf(headers: IncomingHttpHeaders): string | undefined
  /** Aborts when the server closes. */
  closing: AbortSignal
}

export class RequestContext implements Context<string, Caller | null> {
  readonly params: Params
  readonly path: Readonly<Record<string, string>>
  readonly caller: Caller | null
  readonly found: unknown
  readonly ignored: readonly string[]
  readonly requestId: string
  readonly remoteAddress: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  idempotency?: IdempotencyRecord
  readonly #spec: Operation
  readonly #exchange: Exchange
  readonly #parts: ContextParts
  #signal: AbortSignal | undefined

  constructor(
    spec: Operation,
    params: Params,
    caller: Caller | null,
    found: unknown,
    ignored: readonly string[],
    exchange: Exchange,
    parts: ContextParts,
  ) {
    this.params = params
    this.path = exchange.path
    this.caller = caller
    this.found = found
    this.ignored = ignored
    this.requestId = exchange.id
    this.remoteAddress = parts.remote.address(exchange.arrival)
    this.method = exchange.method
    this.headers = exchange.headers
    this.#spec = spec
    this.#exchange = exchange
    this.#parts = parts
  }

  get input(): () => unknown {
    return () => readInputs(this.#spec.inputs, this.params)
  }

  get document(): () => unknown {
    return () => readDocument(this.#spec.body as Shape<unknown>, this.params.json())
  }

  /** What the audit log keeps of any request. */
  get facts() {
    const { params, path, remoteAddress, requestId } = this
    return { params, path, remoteAddress, requestId }
  }

  get isSecure(): boolean {
    return this.#parts.remote.isSecure(this.#exchange.arrival)
  }

  get onBehalfOf(): string | undefined {
    return this.#parts.onBehalfOf(this.headers)
  }

  get traceparent(): string | undefined {
    return this.#exchange.span?.traceparent
  }

  get log(): Logger {
    return this.#exchange.log
  }

  get signal(): AbortSignal {
    this.#signal ??= endSignal(this.#exchange.arrival, this.#parts.closing)
    return this.#signal
  }
}

/** Aborts once the answer is out, the client is gone or the server closes. */
function endSignal(arrival: Arrival, closing: AbortSignal): AbortSignal {
  const controller = new AbortController()
  const end = () => {
    closing.removeEventListener('abort', end)
    controller.abort()
  }
  closing.addEventListener('abort', end)
  arrival.onEnd(end)
  if (closing.aborted) end()
  return controller.signal
}
