/**
 * Lanes: what goes from one source address to one MX site shares connections, rate and back-off. Deliveries are
 * looked for in groups of one sending domain, recipient domain and source key; all of a group goes by one lane, a
 * lane serves many groups. Here is what this process holds for each lane, and how much more of it may be claimed:
 *
 * - A lane holds about what it delivers in a second, at least two rounds of its connections. A dead or slow
 *   destination therefore holds little, a quick one never runs dry.
 * - Lanes in which nothing has come to an end lately get half of what is held in all. Beyond that each holds one
 *   delivery, until that has shown that the lane moves: so many sources times dead destinations leave room.
 * - A sending domain that has nothing in a full lane may still put one delivery into it, so that somebody
 *   else's thousands cost it one turn (fair-queue.ts), not a place in their line.
 */

import type { Timer } from '../base/clock.ts'
import { PassingMap } from '../base/passing.ts'
import { FairQueue } from './fair-queue.ts'
import { Pace } from './pacing.ts'
import type { LaneLimits } from './providers.ts'
import type { ClaimedDelivery, DueDelivery, DueGroup } from './queue.ts'

/** An address that mail is sent from. */
export interface Source {
  ip: string
  /** Name for EHLO; null: the service's own. */
  helo: string | null
}

/** Which lane a delivery belongs to, and what holds there. */
export interface LaneInfo {
  /** `<source>/<site>`: unique, and what people filter by. */
  name: string
  /** Null: the system chooses the address. */
  source: Source | null
  site: string
  /** Display name of the provider. Domains of one site may have different ones. */
  provider: string
  limits: LaneLimits
}

/** A claimed delivery with the end of its first lease on the monotonic clock. */
export type HeldDelivery = ClaimedDelivery & {
  heldUntil: number
  provider: string
  /** Taken in straight from acceptance when the lane had its fill. */
  isBeyond?: boolean
}

/** Deliveries of one sending domain to one recipient domain from one source. */
export interface Group {
  readonly of: DueGroup
  /** Null until the first of them found its lane. */
  lane: Lane | null
  held: number
}

/** The most that one lane holds: a second of the fastest lane there is. */
const LANE_HOLD_MAX = 1_000
/** The fill of fresh mail (`mayHoldBeyond`): for a burst to begin with, and seconds of the lane's throughput. */
const BEYOND_MIN = 100
const BEYOND_SECONDS = 4
/** A lane with no end of an attempt for so long does not move; most attempts take a second. */
const STANDS_AFTER_MS = 10_000
/** Held for a destination whose lane is not known yet: a look-up takes some milliseconds, or fails. */
const UNROUTED_HOLD = 20
/**
 * A lane whose deliveries meet a fault of this machine rests, twice as long each time in a row. Not for long: the files
 * that are missing become free one by one, and whoever asks at that moment gets them.
 */
const REST_MIN_MS = 500
const REST_MAX_MS = 4_000
/** Groups and lanes remembered, with some hundred bytes each; the longest unused are forgotten first. */
const GROUPS_MAX = 20_000
const LANES_MAX = 10_000

export class Lane {
  readonly info: LaneInfo
  readonly pace: Pace
  readonly waiting = new FairQueue<HeldDelivery>()
  /** Deliveries being made ready, sent or settled. */
  running = 0
  /** Those of them that use a connection. */
  connected = 0
  private atConnection: { delivery: HeldDelivery; go(): void; turnAway(): void }[] = []
  /** Places of deliveries that are being inserted. */
  reserved = 0
  /** Groups of this lane that have more due in the database. */
  readonly withMore = new Set<Group>()
  /** Rings when the pace lets the next attempt begin. */
  timer: Timer | null = null
  /** Until when nothing is begun, on the monotonic clock, and how long the last rest was. */
  private restsUntil = Number.NEGATIVE_INFINITY
  private lastRestMs = 0
  private readonly heldBySender = new PassingMap<string, number>()

  constructor(info: LaneInfo) {
    this.info = info
    this.pace = new Pace(info.limits)
  }

  /**
   * Waits for a connection to be free, of as many as `max` says at that moment. True: `disconnect` must follow;
   * false: the delivery was turned away.
   */
  async connect(delivery: HeldDelivery, max: () => number): Promise<boolean> {
    while (this.connected >= max()) {
      const free = await new Promise<boolean>((resolve) => {
        const [go, turnAway] = [() => resolve(true), () => resolve(false)]
        this.atConnection.push({ delivery, go, turnAway })
      })
      if (!free) return false
    }
    this.connected++
    return true
  }

  disconnect(): void {
    this.connected--
    this.atConnection.shift()?.go()
  }

  /** This machine could not serve an attempt: nothing is begun for a while. `random` from 0 to 1. @returns milliseconds */
  rest(now: number, random: number): number {
    if (now >= this.restsUntil) {
      this.lastRestMs = Math.min(REST_MAX_MS, Math.max(REST_MIN_MS, 2 * this.lastRestMs))
      // All lanes met the fault at the same time; they are not to come back at the same time.
      this.restsUntil = now + this.lastRestMs * (0.5 + random)
    }
    return this.restsUntil - now
  }

  restMs(now: number): number {
    return Math.max(0, this.restsUntil - now)
  }

  /** An attempt was made. */
  awake(): void {
    this.lastRestMs = 0
  }

  /** Turns away all that wait for a connection, and gives them. */
  turnAway(): HeldDelivery[] {
    const waiting = this.atConnection
    this.atConnection = []
    for (const { turnAway } of waiting) turnAway()
    return waiting.map(({ delivery }) => delivery)
  }

  get held(): number {
    return this.waiting.size + this.running + this.reserved
  }

  holdMax(now: number, crowded: boolean): number {
    if (crowded && now - this.pace.finishedAt > STANDS_AFTER_MS) return 1
    return Math.min(LANE_HOLD_MAX, Math.max(2 * this.pace.connections(now), this.pace.throughput(now)))
  }

  /**
   * Whether mail that comes straight from acceptance may wait here although the lane has its fill: some seconds' worth,
   * where nothing is held back. What waits longer is better off in the database, where a crash leaves no lease on it.
   */
  mayHoldBeyond(now: number): boolean {
    const { messagesPerSecond, backedOffMs } = this.pace.state(now)
    if (messagesPerSecond !== null || backedOffMs > 0) return false
    return this.held < Math.max(BEYOND_MIN, BEYOND_SECONDS * this.pace.throughput(now))
  }

  holdsOf(domainId: string): number {
    return this.heldBySender.get(domainId) ?? 0
  }

  count(domainId: string, change: 1 | -1): void {
    const left = this.holdsOf(domainId) + change
    if (left > 0) this.heldBySender.set(domainId, left)
    else this.heldBySender.delete(domainId)
  }

  /** Some of the sending domain's groups have more. */
  hasMoreOf(domainId: string): boolean {
    for (const { of } of this.withMore) if (of.domain_id === domainId) return true
    return false
  }

  /** Nothing in it, and nothing to remember about it. */
  forgettable(now: number): boolean {
    return (
      this.held === 0 &&
      this.restMs(now) === 0 &&
      this.pace.waitMs(now) === 0 &&
      this.pace.state(now).backedOffMs === 0
    )
  }
}

export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly groups = new Map<string, Group>()
  /** Groups known to have more due in the database than was claimed. */
  private readonly withMore = new Set<Group>()
  private readonly crowded: () => boolean

  /** `crowded`: whether so much is held in all that lanes which do not move must hold little. */
  constructor(crowded: () => boolean) {
    this.crowded = crowded
  }

  all(): Lane[] {
    return [...this.lanes.values()]
  }

  lane(info: LaneInfo): Lane {
    const known = this.lanes.get(info.name)
    if (known) return known
    const lane = new Lane(info)
    this.lanes.set(info.name, lane)
    return lane
  }

  group({ domain_id, recipient_domain, source_key = '' }: DueGroup): Group {
    const key = `${domain_id} ${recipient_domain} ${source_key}`
    const known = this.groups.get(key)
    if (known) return known
    const group = { of: { domain_id, recipient_domain, source_key }, lane: null, held: 0 }
    this.groups.set(key, group)
    return group
  }

  /** How many more of the group may be claimed. */
  roomOf(group: Group, now: number): number {
    const { lane } = group
    if (!lane) return (this.crowded() ? 1 : UNROUTED_HOLD) - group.held
    const room = Math.floor(this.holdMax(lane, now)) - lane.held
    return room > 0 ? room : mayEnterFull(group) ? 1 : 0
  }

  /** Whether a look for more of the group is worth its cost: its lane is half empty, or it is the sender's turn. */
  isHungry(group: Group, now: number): boolean {
    const { lane } = group
    if (!lane) return this.roomOf(group, now) > 0
    return this.isHalfEmpty(lane, now) || mayEnterFull(group)
  }

  isHalfEmpty(lane: Lane, now: number): boolean {
    return lane.held <= this.holdMax(lane, now) / 2
  }

  /** Some group that has more is hungry. */
  someHungry(now: number): boolean {
    for (const group of this.withMore) if (this.isHungry(group, now)) return true
    return false
  }

  /** The most that the lane is to hold. */
  holdMax(lane: Lane, now: number): number {
    return lane.holdMax(now, this.crowded())
  }

  markMore(group: Group, more = true): void {
    if (more) {
      this.withMore.add(group)
      group.lane?.withMore.add(group)
    } else {
      this.withMore.delete(group)
      group.lane?.withMore.delete(group)
    }
  }

  /** The group goes by this lane from now on. */
  assign(group: Group, lane: Lane): void {
    if (group.lane === lane) return
    group.lane?.withMore.delete(group)
    group.lane = lane
    if (this.withMore.has(group)) lane.withMore.add(group)
  }

  hasMore(group: Group): boolean {
    return this.withMore.has(group)
  }

  /** Some group waits for room. */
  waitsForRoom(): boolean {
    return this.withMore.size > 0
  }

  /** Groups that have more due, and want it; those that were served longest ago first. */
  hungry(now: number, limit: number): Group[] {
    const found: Group[] = []
    for (const group of this.withMore) {
      if (this.isHungry(group, now)) found.push(group)
      if (found.length === limit) break
    }
    for (const group of found) {
      this.withMore.delete(group)
      this.withMore.add(group)
    }
    return found
  }

  /** The last look saw everything that is due, but for what came into these groups meanwhile. */
  sawAll(but: ReadonlySet<Group>): void {
    for (const group of [...this.withMore]) if (!but.has(group)) this.markMore(group, false)
  }

  /**
   * Which of the due deliveries to claim, `limit` at the most: groups take turns, each as far as its lane has
   * room. Groups that got less than was there are marked. `sawAll`: there are no others that are due. If there are,
   * lanes that are more than half full get nothing: they would be kept full with what a look shows first.
   */
  choose(due: readonly DueDelivery[], limit: number, now: number, sawAll: boolean): string[] {
    const chosen: string[] = []
    const taken = new Map<Lane | Group, number>()
    let pending = groupsOf(due, (row) => this.group(row))
    while (pending.length > 0 && chosen.length < limit) {
      const next: typeof pending = []
      for (const entry of pending) {
        if (chosen.length >= limit) {
          next.push(entry)
          continue
        }
        const { group, rows } = entry
        const holder = group.lane ?? group
        const here = taken.get(holder) ?? 0
        const ofGroup = taken.get(group) ?? 0
        const hasRoom = this.roomOf(group, now) - here > 0 && (sawAll || this.isHungry(group, now))
        if (!hasRoom && !(ofGroup === 0 && mayEnterFull(group))) {
          this.markMore(group)
          continue
        }
        chosen.push((rows[entry.at] as DueDelivery).id)
        taken.set(holder, here + 1)
        if (holder !== group) taken.set(group, ofGroup + 1)
        entry.at++
        if (entry.at < rows.length) next.push(entry)
      }
      pending = next
    }
    for (const { group, rows, at } of pending) if (at < rows.length) this.markMore(group)
    return chosen
  }

  /** Forgets what is idle, when there is much of it. */
  sweep(now: number): void {
    for (const [key, lane] of this.lanes) {
      if (this.lanes.size <= LANES_MAX) break
      if (lane.forgettable(now)) this.lanes.delete(key)
    }
    for (const [key, group] of this.groups) {
      if (this.groups.size <= GROUPS_MAX) break
      if (group.held === 0 && !this.withMore.has(group)) this.groups.delete(key)
    }
  }
}

/** Whether fresh mail of the group may go ahead of what the database holds: nobody waits for its lane, or it is the sender's turn. */
export const mayOvertake = (group: Group) =>
  group.lane !== null && (group.lane.withMore.size === 0 || mayEnterFull(group))

/** One per sending domain goes into a lane that others have filled. */
const mayEnterFull = ({ lane, of }: Group) => lane !== null && lane.holdsOf(of.domain_id) === 0

interface Pending {
  group: Group
  rows: DueDelivery[]
  at: number
}

function groupsOf(due: readonly DueDelivery[], groupOf: (row: DueDelivery) => Group): Pending[] {
  const byGroup = new Map<Group, Pending>()
  for (const row of due) {
    const group = groupOf(row)
    const entry = byGroup.get(group)
    if (entry) entry.rows.push(row)
    else byGroup.set(group, { group, rows: [row], at: 0 })
  }
  return [...byGroup.values()]
}
