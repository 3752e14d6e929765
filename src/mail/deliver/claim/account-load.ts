/**
 * How much an account has begun, and whether more of its mail may be claimed: its mail for thousands of domains must leave
 * room for that of others, and for its own that comes later.
 *
 * - What is looked up or attempted counts, not what waits in a lane. Lanes that have answered lately count apart from all
 *   others, so that silent destinations do not delay those that answer.
 * - An account begins about what it ends in some seconds, at least BUSY_MIN, and never more than is free in this process:
 *   however many accounts have thousands of silent destinations, there is room left.
 * - Beyond that it begins single ones, its newest, the more rarely the less is free.
 */
import { Throughput } from '../lanes/pacing.ts'

/** With attempts of a second, which is usual, a thousand messages a second. */
const BUSY_MIN = 1_000
/** Where the processor is the limit, a new attempt ends after about as long. */
const BUSY_SECONDS = 3
/**
 * The wait between two beyond the window, times what is free: 25 ms while 4,000 are. Silent destinations that hold each for
 * five minutes take three quarters of it in the long run.
 */
const BEYOND_MS = 100_000
/** So many may begin at once after a pause. */
const BEYOND_BURST = 16

/** One kind of lanes of an account. Times are on the monotonic clock. */
export class Window {
  /** Deliveries being looked up or attempted. */
  busy = 0
  readonly #ended = new Throughput()

  end(now: number): void {
    this.busy--
    this.#ended.count(now)
  }

  /** So much has begun that silent lanes should hold little. */
  get isCrowded(): boolean {
    return this.busy > BUSY_MIN / 2
  }

  /** Whether one more may begin, besides `more` that are about to; `free`: how many more this process may hold. */
  hasRoom(now: number, free: number, more = 0): boolean {
    const max = Math.max(BUSY_MIN, BUSY_SECONDS * this.#ended.perSecond(now))
    return this.busy + more < Math.min(max, Math.max(1, free))
  }
}

export class AccountLoad {
  /** Lanes that have answered lately. */
  readonly answering = new Window()
  /** New and silent lanes, and destinations whose lane is not known yet. */
  readonly silent = new Window()
  /** Deliveries held. */
  held = 0
  /** Whether its next turn is for what became due last, or first. */
  newestNext = true
  #nextBeyondAt = Number.NEGATIVE_INFINITY

  /** Whether one may begin beyond a window now; then the next one must wait. */
  takeBeyond(now: number, free: number): boolean {
    if (free <= 0) return false
    const wait = BEYOND_MS / free
    const at = Math.max(this.#nextBeyondAt, now - BEYOND_BURST * wait)
    if (at > now) return false
    this.#nextBeyondAt = at + wait
    return true
  }
}
