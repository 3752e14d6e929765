/**
 * Error types for what a caller can do wrong and for shortages of the service, free of any protocol.
 * HTTP maps them to a status and a body (`src/platform/http/answer/errors.ts`), SMTP to a reply. Everything else that is
 * thrown is our own fault.
 */

/** The member of the answer that holds the text; the contract fixes it per operation and case. */
type ErrorForm = 'message' | 'Reason' | 'Description' | 'Field'

interface ErrorDetails {
  /** Default `message`. */
  form?: ErrorForm
  /** With form `Field`: the parameter that is at fault. An empty text then leaves the `Value` member out. */
  field?: string
  /** Further members of the answer; they never replace the text. */
  extra?: Readonly<Record<string, unknown>>
  /** Why the caller was refused, where the contract fixes a text that does not say so. For people, in a header. */
  why?: string
  cause?: unknown
}

export abstract class ServiceError extends Error {
  readonly form: ErrorForm
  readonly field: string | undefined
  readonly extra: Readonly<Record<string, unknown>>
  readonly why: string | undefined

  constructor(text: string, details: ErrorDetails = {}) {
    super(text, 'cause' in details ? { cause: details.cause } : undefined)
    this.name = new.target.name
    this.form = details.form ?? 'message'
    this.field = details.field
    this.extra = details.extra ?? {}
    this.why = details.why
  }
}

/** A parameter is missing, malformed or contradicts another one or the present state. */
export class BadRequest extends ServiceError {}

/** A refusal has a text of its own, or the contract's bare one with the cause beside it. */
type Refusal =
  | [text: string, details?: ErrorDetails]
  | [text: undefined, details: ErrorDetails & { why: string }]

/** No credentials, wrong ones, or ones that do not count for this operation. */
export class Unauthenticated extends ServiceError {
  constructor(...[text = 'Invalid private key', details]: Refusal) {
    super(text, details)
  }
}

/** A valid request that plan or quota does not allow. */
export class QuotaExceeded extends ServiceError {}

/** The caller is known and has no right to this. */
export class Forbidden extends ServiceError {
  constructor(...[text = 'Forbidden', details]: Refusal) {
    super(text, details)
  }
}

/** The answer to a subaccount where only accounts without a parent may act. */
export const parentsOnly = () => new Forbidden(undefined, { why: 'a subaccount may not do this' })

/** No such resource, or it belongs to another account. */
export class NotFound extends ServiceError {
  constructor(text = 'Not Found', details: ErrorDetails = {}) {
    super(text, details)
  }
}

/** The value. @throws NotFound where there is none */
export function present<T>(value: T | null | undefined, ...error: ConstructorParameters<typeof NotFound>): T {
  if (value === null || value === undefined) throw new NotFound(...error)
  return value
}

/** The path exists, but not with this method. */
export class MethodNotAllowed extends ServiceError {
  readonly allowed: readonly string[]

  constructor(allowed: readonly string[]) {
    super('Method Not Allowed')
    this.allowed = allowed
  }
}

/** The present state of the resource forbids the change. */
export class Conflict extends ServiceError {
  /** Whole seconds after which a repeat may succeed; undefined: not without another change. */
  readonly retrySeconds: number | undefined

  constructor(text: string, details: ErrorDetails & { retrySeconds?: number } = {}) {
    super(text, details)
    this.retrySeconds = details.retrySeconds
  }
}

/** The operation existed once and is not served any more. */
export class Gone extends ServiceError {}

/** Body, file or URL over its limit; the text names the limit. */
export class PayloadTooLarge extends ServiceError {}

/** A rate, count or volume limit is reached for now. The refused request has had no effect. */
export class TooManyRequests extends ServiceError {
  /** Whole seconds, at least 1, after which the same request would pass. */
  readonly retrySeconds: number

  constructor(retrySeconds: number, text = 'Too Many Requests', details: ErrorDetails = {}) {
    super(text, details)
    this.retrySeconds = Math.max(1, Math.ceil(retrySeconds))
  }
}

/** Starting, stopping, or the store cannot be reached. */
export class Unavailable extends ServiceError {
  readonly retrySeconds: number

  constructor(retrySeconds = 5, details: ErrorDetails = {}, text = 'Service Unavailable') {
    super(text, details)
    this.retrySeconds = retrySeconds
  }
}

/** Too many of the kind wait already; this one was not started. */
export class TooManyWaiting extends Unavailable {}

/** Free space is under the configured floor, or the store refuses writes for lack of space. */
export class InsufficientStorage extends ServiceError {
  readonly retrySeconds: number

  constructor(retrySeconds = 30, details: ErrorDetails = {}) {
    super('Insufficient Storage', details)
    this.retrySeconds = retrySeconds
  }
}

/** A port of ours cannot be opened: taken, not allowed, or its address is not this machine's. */
export class CannotListen extends Error {
  /** @param settings those that choose the address and the port, without their prefix */
  constructor(protocol: string, settings: readonly [host: string, port: string], cause: Error) {
    const names = settings.map((name) => `SENDWRIGHT_${name}`).join(' and ')
    const advice =
      (cause as NodeJS.ErrnoException).code === 'EACCES'
        ? `. Ports below 1024 are for root: set SENDWRIGHT_${settings[1]} to another, and forward the port to it`
        : ''
    super(`Cannot listen for ${protocol}, as ${names} say: ${cause.message}${advice}`, { cause })
  }
}
