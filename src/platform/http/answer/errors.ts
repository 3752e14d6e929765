/**
 * The one table from error types (`src/base/process/errors.ts`) to HTTP answers: status, body and headers. Anything else that is
 * thrown is our fault: 500 with a fixed text, the cause in the log under the request id.
 */
import {
  BadRequest,
  Conflict,
  Forbidden,
  Gone,
  InsufficientStorage,
  MethodNotAllowed,
  NotFound,
  PayloadTooLarge,
  QuotaExceeded,
  ServiceError,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
} from '../../../base/process/errors.ts'

interface ErrorAnswer {
  status: number
  body: Record<string, unknown>
  headers: Record<string, string>
  /** True: not the caller's doing; log it with its cause. */
  ourFault: boolean
}

type ErrorType = abstract new (...args: never) => ServiceError

export const STATUS_OF: ReadonlyArray<readonly [ErrorType, number]> = [
  [BadRequest, 400],
  [Unauthenticated, 401],
  [QuotaExceeded, 402],
  [Forbidden, 403],
  [NotFound, 404],
  [MethodNotAllowed, 405],
  [Conflict, 409],
  [Gone, 410],
  [PayloadTooLarge, 413],
  [TooManyRequests, 429],
  [Unavailable, 503],
  [InsufficientStorage, 507],
]

/** Answer to a thrown value. `nowMs` is the wall clock, for `X-RateLimit-Reset`. */
export function answerTo(error: unknown, nowMs: number): ErrorAnswer {
  if (!(error instanceof ServiceError)) return internalError()
  const row = STATUS_OF.find(([type]) => error instanceof type)
  if (row === undefined) return internalError()
  return { status: row[1], body: bodyOf(error), headers: headersOf(error, nowMs), ourFault: row[1] >= 500 }
}

function internalError(): ErrorAnswer {
  return { status: 500, body: { message: 'Internal Server Error' }, headers: {}, ourFault: true }
}

function bodyOf(error: ServiceError): Record<string, unknown> {
  if (error.form !== 'Field') return { ...error.extra, [error.form]: error.message }
  const value = error.message === '' ? {} : { Value: error.message }
  return { ...error.extra, Field: error.field ?? '', ...value }
}

function headersOf(error: ServiceError, nowMs: number): Record<string, string> {
  if (error instanceof MethodNotAllowed) return { allow: error.allowed.join(', ') }
  if (error instanceof TooManyRequests) {
    return {
      'retry-after': String(error.retrySeconds),
      'x-ratelimit-reset': String(Math.ceil(nowMs / 1000) + error.retrySeconds),
    }
  }
  const retrySeconds =
    error instanceof Unavailable || error instanceof InsufficientStorage || error instanceof Conflict
      ? error.retrySeconds
      : undefined
  return retrySeconds === undefined ? {} : { 'retry-after': String(retrySeconds) }
}
