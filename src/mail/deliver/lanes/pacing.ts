/**
 * How fast one lane may send now. Pure: times are handed in, on the monotonic clock.
 *
 * 1. A rate is kept by spacing: attempts begin at even intervals, never in a burst at the start of a window.
 * 2. What a reply asks for is in the shaping file. One about rate halves rate and connections at once; a lane without a
 *    set rate gets half of its rate of the last seconds. One about too many connections halves only these: it says nothing
 *    about the rate over those that are left.
 * 3. The lane recovers evenly over the time that the shaping file gives, then the set limits apply again.
 * 4. Of several processes that deliver, each has its share of the limits (decision 95).
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
