/** Shared by both load generators: questions, results, and requests with numbers filled in. */
import { percentile } from './stats.ts'

/** Eight characters in a request that its number replaces, `00000042`; may occur many times. */
export const NUMBER_MARK = '~~~~~~~~'

/** How much to send: until one of the limits is reached. */
export interface LoadAmount {
  /** Total number of requests. */
  count?: number
  /** Seconds after which no further request is started. */
  seconds?: number
  /** Requests a second, evenly spread while connections are free; without it each response starts the next request. */
  perSecond?: number
  /** Number of the first request. */
  firstNumber: number
}

export interface LoadResult {
  accepted: number
  failed: number
  /** Responses 429, where the load expects them; and those of them without Retry-After. */
  limited: number
  limitedWithoutTime: number
  /** The text of the first failure. */
  failure: string | null
  /** `monotonicMs` of the first and last acceptance. */
  firstAt: number
  lastAt: number
  /** From the first byte written to the complete response. */
  latencyMs: { p50: number; p95: number; p99: number; max: number }
  /** When each number was accepted, if recorded. */
  acceptedAt?: Map<number, number>
}

export class Tally {
  #latencies: number[] = []
  #result = {
    ...{ accepted: 0, failed: 0, limited: 0, limitedWithoutTime: 0 },
    ...{ failure: null as string | null, firstAt: 0, lastAt: 0 },
  }
  readonly #acceptedAt: Map<number, number> | null

  constructor(record: boolean) {
    this.#acceptedAt = record ? new Map() : null
  }

  accepted(number: number, begunAt: number, now: number): void {
    if (this.#result.accepted === 0) this.#result.firstAt = now
    this.#result.accepted++
    this.#result.lastAt = now
    this.#latencies.push(now - begunAt)
    this.#acceptedAt?.set(number, now)
  }

  failed(why: string): void {
    this.#result.failed++
    this.#result.failure ??= why.slice(0, 500)
  }

  limited(hasRetryAfter: boolean): void {
    this.#result.limited++
    if (!hasRetryAfter) this.#result.limitedWithoutTime++
  }

  result(): LoadResult {
    const latencyMs = {
      p50: percentile(this.#latencies, 0.5),
      p95: percentile(this.#latencies, 0.95),
      p99: percentile(this.#latencies, 0.99),
      max: percentile(this.#latencies, 1),
    }
    return { ...this.#result, latencyMs, ...(this.#acceptedAt && { acceptedAt: this.#acceptedAt }) }
  }
}

/**
 * Schedules the requests. Each lane (a connection) takes its next number; null: nothing more to send.
 * With a rate, the number is returned when it is due.
 */
export class Schedule {
  readonly #amount: LoadAmount
  readonly #begunAt = performance.now()
  #given = 0

  constructor(amount: LoadAmount) {
    this.#amount = amount
  }

  next(): number | null | Promise<number | null> {
    const { count = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY, perSecond } = this.#amount
    const elapsedMs = performance.now() - this.#begunAt
    if (this.#given >= count || elapsedMs >= seconds * 1_000) return null
    const number = this.#amount.firstNumber + this.#given
    if (perSecond === undefined) {
      this.#given++
      return number
    }
    const dueMs = (this.#given * 1_000) / perSecond
    if (dueMs >= seconds * 1_000) return null
    this.#given++
    if (dueMs <= elapsedMs) return number
    return new Promise((resolve) => setTimeout(() => resolve(number), dueMs - elapsedMs))
  }
}

/** A request in its own buffer, with the number written in place. */
export class NumberedBytes {
  readonly bytes: Buffer
  readonly #offsets: number[] = []

  constructor(text: string) {
    this.bytes = Buffer.from(text)
    for (let at = this.bytes.indexOf(NUMBER_MARK); at >= 0; at = this.bytes.indexOf(NUMBER_MARK, at + 1))
      this.#offsets.push(at)
  }

  /** Only after the bytes written before have reached the other side. */
  with(number: number): Buffer {
    const digits = numberText(number)
    for (const offset of this.#offsets) this.bytes.write(digits, offset, 'latin1')
    return this.bytes
  }
}

export const numberText = (number: number): string => String(number).padStart(NUMBER_MARK.length, '0')
