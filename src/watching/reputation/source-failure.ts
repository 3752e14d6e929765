/** Why a source could not be read, in words for the operator, and when it is worth asking again. */
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { printableLine } from '../../base/printable.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { isPlainObject } from '../../base/values.ts'
import { type HttpOutcome, retryAfterMs, withAdvice } from '../../platform/posts/http-client.ts'

/** `denied`, `missing`: about what was asked for, so that the rest can still be read. */
type FailureKind = 'login' | 'denied' | 'missing' | 'quota' | 'away' | 'malformed'

/** The message has no secret. */
export class SourceFailure extends Error {
  readonly kind: FailureKind
  /** The source asks to be left alone for so long; null: it does not say. */
  readonly retryMs: number | null

  constructor(kind: FailureKind, message: string, retryMs: number | null = null) {
    super(printableLine(message).slice(0, MESSAGE_LENGTH_MAX))
    this.kind = kind
    this.retryMs = retryMs
  }
}

const MESSAGE_LENGTH_MAX = 400
const WORDS_LENGTH_MAX = 200
const FIRST_RETRY_MS = 15 * MINUTE_MS
const RETRY_MAX_MS = 6 * HOUR_MS

/** Wait after that many failures in a row: 15 minutes, twice as long each time, at most 6 hours. Pure. */
export const waitAfter = (failures: number): number =>
  Math.min(RETRY_MAX_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10))

/** What is said of each status; `words` of the source follow. */
export interface StatusWords {
  /** `Google`, `SNDS`. */
  who: string
  login: string
  denied: string
  missing: string
}

type Answered = Extract<HttpOutcome, { kind: 'answered' }>

/**
 * The response, if its status is 200.
 * @throws SourceFailure for any other, and without a response
 */
export function answered(outcome: HttpOutcome, words: StatusWords, now: number): Answered {
  const { who } = words
  if (outcome.kind !== 'answered')
    throw new SourceFailure('away', `${who} cannot be reached: ${withAdvice(outcome.why)}`)
  const { status, retryAfter } = outcome
  if (status === 200) return outcome
  const told = wordsOf(outcome)
  const withWords = (text: string) => (told.message === '' ? text : `${text} ${who} says: "${told.message}"`)
  if (status === 429 || told.status === 'RESOURCE_EXHAUSTED')
    throw new SourceFailure(
      'quota',
      withWords(`The quota at ${who} is used up (status ${status}); the rest is read later.`),
      retryAfterMs(retryAfter, now),
    )
  if (status >= 500)
    throw new SourceFailure(
      'away',
      withWords(`${who} does not answer at present (status ${status}).`),
      retryAfterMs(retryAfter, now),
    )
  const kinds = { 401: 'login', 403: 'denied', 404: 'missing' } as const
  const kind = kinds[status as keyof typeof kinds]
  if (kind !== undefined) throw new SourceFailure(kind, withWords(`${words[kind]} (status ${status})`))
  throw new SourceFailure('malformed', withWords(`${who} has answered with the status ${status}.`))
}

/** `error.message` and `error.status` of Google's errors; empty elsewhere. */
function wordsOf({ body }: Answered): { message: string; status: string } {
  const value = jsonIn(body)
  const error = isPlainObject(value) && isPlainObject(value['error']) ? value['error'] : {}
  const text = (name: string) => (typeof error[name] === 'string' ? error[name] : '')
  return { message: text('message').slice(0, WORDS_LENGTH_MAX), status: text('status') }
}

/** Undefined: it is no JSON. */
export const jsonIn = (body: Buffer): unknown => foreignJsonIn(body.toString())
