/**
 * How fast one lane may send now, and how much an account may have begun. Pure: times are handed in, on the monotonic clock.
 *
 * The pace of a lane:
 *
 * 1. A rate is kept by spacing: attempts begin at even intervals, never in a burst at the start of a window.
 * 2. What a reply asks for is in the shaping file. One about rate halves rate and connections at once; a lane without a
 *    set rate gets half of its rate of the last seconds. One about too many connections halves only these: it says nothing
 *    about the rate over those that are left.
 * 3. The lane recovers evenly over the time that the shaping file gives, then the set limits apply again.
 * 4. Of several processes that deliver, each has its share of the limits (decision 95).
 *
 * The load of an account (decision 174): its mail for thousands of domains must leave room for that of others, and for its
 * own that comes later.
 *
 * 1. What is looked up or attempted counts, not what waits in a lane. Lanes that have answered lately count apart from all
 *    others, so that silent destinations do not delay those that answer.
 * 2. An account begins about what it ends in some seconds, at least BUSY_MIN, and never more than is free in this process:
 *    however many accounts have thousands of silent destinations, there is room left.
 * 3. Beyond that it begins single ones, its newest, the more rarely the less is free.
 */
import type { ReplyAction } from '../shaping/shaping-file.ts'
import { actionOf, backOffOf, type LaneLimits } from '../shaping/shaping-table.ts'

/** Replies to attempts that were in flight at the first complaint have the same cause: they count once. */
const CUT_EVERY_MS = 5_000
/** However often a provider complains, some attempts are made: only they can find out that it accepts more again. */
const FACTOR_MIN = 1 / 64
const RATE_MIN_PER_SECOND = 0.1
/** Time constant of the measured throughput. */
const MEASURED_OVER_MS = 2_000

interface PaceState {
  connections: number
  messagesPerSecond: number | null
  /** Time left until the set limits apply again; 0 when they do. */
  backedOffMs: number
  /** The reply that slowed the lane down; null at full speed. */
  why: string | null
}

/** This process as one of `count` that deliver; `index` from 0 differs between them. */
export interface LimitShare {
  index: number
  count: number
}

/** What a receiver asks for. */
export type SlowDown = 'slow-down' | 'fewer-connections'

/** Recent events per second. */
export class Throughput {
  #measured = 0
  #at = Number.NEGATIVE_INFINITY

  count(now: number): void {
    this.#measured = this.perSecond(now) + 1000 / MEASURED_OVER_MS
    this.#at = now
  }

  perSecond(now: number): number {
    return this.#measured * Math.exp(-(now - this.#at) / MEASURED_OVER_MS)
  }

  /** The last event, on the clock of `now`. */
  get lastAt(): number {
    return this.#at
  }
}

const WHOLE: LimitShare = { index: 0, count: 1 }

export class Pace {
  private limits: LaneLimits
  private readonly share: () => LimitShare
  /** `baseRate` null: only connections were cut so far. */
  private cut: { factor: number; at: number; baseRate: number | null; why: string } | null = null
  /** When the next attempt may begin. */
  private nextSlotAt = Number.NEGATIVE_INFINITY
  private readonly answered = new Throughput()

  constructor(limits: LaneLimits, share: () => LimitShare = () => WHOLE) {
    this.limits = limits
    this.share = share
  }

  /** The shaping has changed; what the lane has learnt stays. */
  setLimits(limits: LaneLimits): void {
    this.limits = limits
  }

  private get recoveryMs(): number {
    return backOffOf(this.limits).recoveryMs
  }

  /** The first processes have what does not divide evenly; each has at least one. */
  connections(now: number): number {
    const { index, count } = this.share()
    const all = Math.max(1, Math.ceil(this.limits.connections * this.factor(now)))
    return count === 1 ? all : Math.max(1, Math.floor(all / count) + (index < all % count ? 1 : 0))
  }

  /** Milliseconds until the next attempt may begin. */
  waitMs(now: number): number {
    return this.rate(now) === null ? 0 : Math.max(0, this.nextSlotAt - now)
  }

  /** An attempt begins. A late one keeps the intervals, so that delays do not add up. */
  begin(now: number): void {
    const rate = this.rate(now)
    if (rate === null) return
    this.nextSlotAt = Math.max(this.nextSlotAt + 1000 / rate, now)
  }

  /** The server has answered an attempt. */
  finished(now: number): void {
    this.answered.count(now)
  }

  /** Recent attempts per second. */
  throughput(now: number): number {
    return this.answered.perSecond(now)
  }

  /** When the last attempt was answered, on the clock of `now`. */
  get finishedAt(): number {
    return this.answered.lastAt
  }

  /** The server asked for less. @returns whether the lane was slowed down */
  slowDown(now: number, why: string, how: SlowDown = 'slow-down'): boolean {
    if (this.cut && now - this.cut.at < CUT_EVERY_MS) return false
    const factor = Math.max(FACTOR_MIN, this.factor(now) / 2)
    const known = this.cut?.baseRate ?? null
    const baseRate = known === null && how === 'slow-down' ? Math.max(this.throughput(now), 1) : known
    this.cut = { factor, at: now, baseRate, why }
    this.nextSlotAt = Math.max(this.nextSlotAt, now)
    return true
  }

  state(now: number): PaceState {
    const recovering = this.factor(now) < 1 && this.cut !== null
    return {
      connections: this.connections(now),
      messagesPerSecond: this.rate(now),
      backedOffMs: recovering && this.cut ? this.cut.at + this.recoveryMs - now : 0,
      why: recovering ? (this.cut?.why ?? null) : null,
    }
  }

  private rate(now: number): number | null {
    const factor = this.factor(now)
    const cutRate = factor < 1 ? (this.cut?.baseRate ?? null) : null
    // The measured rate of a cut is this process's own already.
    const set =
      this.limits.messagesPerSecond === null ? null : this.limits.messagesPerSecond / this.share().count
    const base = set ?? cutRate
    return base === null ? null : Math.max(RATE_MIN_PER_SECOND, cutRate === null ? base : base * factor)
  }

  private factor(now: number): number {
    if (!this.cut) return 1
    const { factor, at } = this.cut
    const grown = factor + (1 - factor) * ((now - at) / this.recoveryMs)
    if (grown < 1) return grown
    this.cut = null
    return 1
  }
}

/** What a reply that does not accept the message asks for, by the rules of the lane; null: nothing. */
export const asksFor = (limits: LaneLimits, code: number, text: string): ReplyAction | null =>
  actionOf(backOffOf(limits).replies, code, text)

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
