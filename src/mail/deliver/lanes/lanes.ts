/**
 * Lanes: what goes from one source address to one MX site shares connections, rate and back-off. Deliveries are
 * claimed in groups of one sending domain, recipient domain and source key; all of a group use one lane, a lane serves
 * many groups. This file counts what each lane holds and decides how much more it may:
 *
 * - A lane holds about what it delivers in a second, at least two rounds of its connections. A dead or slow
 *   destination therefore holds little, a fast one never runs dry.
 * - Fresh mail, straight from acceptance, may exceed that by some seconds of the lane's throughput (decision 36).
 * - A lane in which no attempt has ended lately is stalled. Once half of what this process may hold is in use
 *   (`crowded`), or half of what its account may begin, a stalled lane holds one delivery until that has ended: so many
 *   sources times dead destinations leave room for others.
 * - Accounts take turns (claim/turns.ts), and each begins a limited number of deliveries (pacing.ts).
 * - A sending domain that has nothing in a full lane may still add one delivery to it, so that the thousands of
 *   another domain delay it by one turn.
 */

import { PassingMap, remember } from '../../../base/flow/cache.ts'
import type { Clock, Timer } from '../../../base/time/clock.ts'
import type { ClaimedDelivery, DueDelivery, DueGroup } from '../claim/queue.ts'
import type { LaneLimits } from '../shaping/shaping-table.ts'
import { AccountLoad, type LimitShare, Pace, type SlowDown, type Window } from './pacing.ts'

/** An address that mail is sent from. */
export interface Source {
  ip: string
  /** Name for EHLO; null: the service's own. */
  helo: string | null
}

/** None of the addresses that a delivery may leave from can be used now. */
export const NO_SOURCE = 'none'

/** Which lane a delivery belongs to, with the lane's limits. */
export interface LaneInfo {
  /** `<source>/<site>`: unique, and what people filter by. */
  name: string
  /** Null: the system chooses the address. */
  source: Source | null | typeof NO_SOURCE
  site: string
  /** Name of the relay that its mail goes to; null: to the recipients' own servers. */
  relay: string | null
  /** Display name of the provider. Domains of one site may have different ones. */
  provider: string
  limits: LaneLimits
}

/** A claimed delivery in this process. */
export interface HeldDelivery {
  readonly delivery: ClaimedDelivery
  readonly group: Group
  readonly account: AccountLoad
  /** Null until the transport has found it. */
  lane: Lane | null
  provider: string
  /** End of its first lease on the monotonic clock. */
  readonly leasedUntil: number
  /** It uses a connection. */
  begun: boolean
  /** Others have it by now: it must not be handed over. */
  lost: boolean
}

/** Deliveries of one sending domain to one recipient domain from one source. */
export interface Group {
  readonly key: DueGroup
  /** Null until a delivery of it is known. */
  accountId: string | null
  /** Null until the lane of the first of them is known. */
  lane: Lane | null
  held: number
}

/** The most that one lane claims: a second of the fastest lane there is. */
const LANE_HOLD_MAX = 1_000
/** The most that a lane holds with fresh mail: enough for the start of a burst, or seconds of the lane's throughput. */
const FRESH_MIN = 100
const FRESH_SECONDS = 4
/** A lane is stalled when no attempt has ended for this long; most attempts take a second. */
const STALLED_AFTER_MS = 10_000
/** Held for a group whose lane is not known yet: a look-up takes some milliseconds, or fails. */
const UNROUTED_HOLD = 20
/**
 * A lane rests after a fault of this machine, twice as long each time in a row. Not for long: open files are released
 * one at a time, and the lane that tries at that moment gets them.
 */
const REST_MIN_MS = 500
const REST_MAX_MS = 4_000
/** Groups and lanes remembered, a few hundred bytes each; beyond that idle ones are dropped, oldest first. */
const GROUPS_MAX = 20_000
const LANES_MAX = 10_000
/** Groups with a backlog of one sending domain whose lane is not known: polls find the others again. */
const UNROUTED_BACKLOG_MAX = 1_000
const SLOWED_MAX = 1_000

/** Null: the system chooses it, or there is none. */
export const sourceIp = ({ source }: Pick<LaneInfo, 'source'>): string | null =>
  source === null || source === NO_SOURCE ? null : source.ip

/** Null: the service's own name. */
export const sourceHelo = ({ source }: Pick<LaneInfo, 'source'>): string | null =>
  source === null || source === NO_SOURCE ? null : source.helo

/**
 * What waits in a lane, in fair order: accounts take turns, within an account its sending domains take turns, and each
 * domain is first in, first out. One tenant's (or newsletter's) thousands delay another's single message by one turn.
 */
class FairQueue {
  /** The map's order is the ring: the account whose turn it is is first, and moves to the end. */
  private readonly accounts = new PassingMap<string, PassingMap<string, HeldDelivery[]>>()
  private count = 0

  get size(): number {
    return this.count
  }

  push(item: HeldDelivery): void {
    const { account_id: accountId, domain_id: domainId } = item.delivery
    const domains = this.accounts.get(accountId) ?? new PassingMap<string, HeldDelivery[]>()
    this.accounts.set(accountId, domains)
    const items = domains.get(domainId)
    if (items) items.push(item)
    else domains.set(domainId, [item])
    this.count++
  }

  shift(): HeldDelivery | undefined {
    const [account] = this.accounts
    if (!account) return undefined
    const [accountId, domains] = account
    const [domain] = domains
    const [domainId, items] = domain as [string, HeldDelivery[]]
    const item = items.shift() as HeldDelivery
    domains.delete(domainId)
    if (items.length > 0) domains.set(domainId, items)
    this.accounts.delete(accountId)
    if (domains.size > 0) this.accounts.set(accountId, domains)
    this.count--
    return item
  }

  /** Removes and returns everything. */
  drain(): HeldDelivery[] {
    const all = [...this.accounts.values()].flatMap((domains) => [...domains.values()].flat())
    this.accounts.clear()
    this.count = 0
    return all
  }
}

export class Lane {
  /** Another object after the shaping has changed. */
  info: LaneInfo
  readonly pace: Pace
  readonly waiting = new FairQueue()
  /** Deliveries being prepared, sent or settled. */
  running = 0
  /** How many of them use a connection. */
  connected = 0
  private connectionWaits: { held: HeldDelivery; resolve(free: boolean): void }[] = []
  /** Slots reserved for deliveries that are being inserted. */
  reserved = 0
  /** Groups of this lane that have more due in the database. */
  readonly backlog = new Set<Group>()
  /** Fires when the pace allows the next attempt. */
  timer: Timer | null = null
  /** No attempt begins before this time on the monotonic clock; and how long the last rest was. */
  private restsUntil = Number.NEGATIVE_INFINITY
  private lastRestMs = 0
  private readonly heldBySender = new PassingMap<string, number>()

  constructor(info: LaneInfo, share?: () => LimitShare) {
    this.info = info
    this.pace = new Pace(info.limits, share)
  }

  setLimits(limits: LaneLimits): void {
    if (limits === this.info.limits) return
    this.info = { ...this.info, limits }
    this.pace.setLimits(limits)
    // There may be more connections now; who finds none waits again, in the same order.
    for (const { resolve } of this.connectionWaits.splice(0)) resolve(true)
  }

  /**
   * Waits until a connection is free, of as many as the pace allows at that moment. True: `releaseConnection` must
   * follow; false: the delivery was given back to the queue meanwhile.
   */
  async acquireConnection(held: HeldDelivery, clock: Clock): Promise<boolean> {
    while (this.connected >= this.pace.connections(clock.monotonic())) {
      const free = await new Promise<boolean>((resolve) => this.connectionWaits.push({ held, resolve }))
      if (!free) return false
    }
    this.connected++
    return true
  }

  releaseConnection(): void {
    this.connected--
    this.connectionWaits.shift()?.resolve(true)
  }

  get hasConnectionWaits(): boolean {
    return this.connectionWaits.length > 0
  }

  /** Ends all waits for a connection. @returns the deliveries that waited */
  cancelConnectionWaits(): HeldDelivery[] {
    const waits = this.connectionWaits
    this.connectionWaits = []
    for (const { resolve } of waits) resolve(false)
    return waits.map(({ held }) => held)
  }

  /** This machine could not make an attempt: none begins for a while. `random` from 0 to 1. @returns milliseconds */
  rest(now: number, random: number): number {
    if (now >= this.restsUntil) {
      this.lastRestMs = Math.min(REST_MAX_MS, Math.max(REST_MIN_MS, 2 * this.lastRestMs))
      // All lanes met the fault at the same time; they must not all resume at the same time.
      this.restsUntil = now + this.lastRestMs * (0.5 + random)
    }
    return this.restsUntil - now
  }

  restMs(now: number): number {
    return Math.max(0, this.restsUntil - now)
  }

  /** An attempt was made: the next rest is short again. */
  endRest(): void {
    this.lastRestMs = 0
  }

  get held(): number {
    return this.waiting.size + this.running + this.reserved
  }

  /** The most that it may hold by claims. */
  holdMax(now: number, crowded: boolean): number {
    if (crowded && this.isStalled(now)) return 1
    return Math.min(LANE_HOLD_MAX, Math.max(2 * this.pace.connections(now), this.pace.throughput(now)))
  }

  /**
   * The most that it may hold with fresh mail: some seconds' worth, where the pace is not limited. What would wait
   * longer is better off in the database, where a crash leaves no lease on it.
   */
  freshMax(now: number, crowded: boolean): number {
    if (crowded && this.isStalled(now)) return 1
    const { messagesPerSecond, backedOffMs } = this.pace.state(now)
    if (messagesPerSecond !== null || backedOffMs > 0) return 0
    return Math.max(FRESH_MIN, FRESH_SECONDS * this.pace.throughput(now))
  }

  isStalled(now: number): boolean {
    return now - this.pace.finishedAt > STALLED_AFTER_MS
  }

  holdsOf(domainId: string): number {
    return this.heldBySender.get(domainId) ?? 0
  }

  count(domainId: string, change: 1 | -1): void {
    const left = this.holdsOf(domainId) + change
    if (left > 0) this.heldBySender.set(domainId, left)
    else this.heldBySender.delete(domainId)
  }

  /** Some of the sending domain's groups have more due in the database. */
  hasBacklogOf(domainId: string): boolean {
    for (const { key } of this.backlog) if (key.domain_id === domainId) return true
    return false
  }

  /** It holds nothing, does not rest and is not slowed down. */
  isIdle(now: number): boolean {
    return (
      this.held === 0 &&
      this.restMs(now) === 0 &&
      this.pace.waitMs(now) === 0 &&
      this.pace.state(now).backedOffMs === 0
    )
  }
}

/** `at`: on the monotonic clock. */
interface SlowedElsewhere {
  at: number
  why: string
  how: SlowDown
}

export class Lanes {
  private readonly lanes = new Map<string, Lane>()
  private readonly groups = new Map<string, Group>()
  /**
   * Groups known to have more due in the database than was claimed, by sending domain; what was refilled longest ago is first
   * in both.
   */
  private readonly backlog = new Map<string, Set<Group>>()
  private backlogSize = 0
  /** Accounts that something is held of. */
  private readonly accounts = new PassingMap<string, AccountLoad>()
  private readonly crowded: () => boolean
  readonly free: () => number
  private readonly share: (() => LimitShare) | undefined
  /** Lanes that other processes slowed down and that are not known here yet. */
  private readonly slowedElsewhere = new Map<string, SlowedElsewhere>()

  /** `crowded`: whether so much is held in all that stalled lanes must hold little; `free`: how many more may be held. */
  constructor(crowded: () => boolean, free: () => number, share?: () => LimitShare) {
    this.crowded = crowded
    this.free = free
    this.share = share
  }

  all(): Lane[] {
    return [...this.lanes.values()]
  }

  lane(info: LaneInfo): Lane {
    const known = this.lanes.get(info.name)
    if (known) {
      known.setLimits(info.limits)
      return known
    }
    const lane = new Lane(info, this.share)
    this.lanes.set(info.name, lane)
    const slowed = this.slowedElsewhere.get(info.name)
    if (slowed) lane.pace.slowDown(slowed.at, slowed.why, slowed.how)
    this.slowedElsewhere.delete(info.name)
    return lane
  }

  /** Another process was asked to slow down. */
  slowDown(name: string, slowed: SlowedElsewhere): void {
    const lane = this.lanes.get(name)
    if (lane) lane.pace.slowDown(slowed.at, slowed.why, slowed.how)
    else remember(this.slowedElsewhere, SLOWED_MAX, name, slowed)
  }

  group(due: DueGroup): Group {
    const name = nameOf(due)
    const known = this.groups.get(name)
    if (known) return known
    const { domain_id, recipient_domain, source_key = '' } = due
    const key = { domain_id, recipient_domain, source_key }
    const group = { key, accountId: null, lane: null, held: 0 }
    this.groups.set(name, group)
    return group
  }

  /** How many more of the group may be claimed. */
  roomFor(group: Group, now: number): number {
    const { lane } = group
    const crowded = this.crowds(group)
    if (!lane) return (crowded ? 1 : UNROUTED_HOLD) - group.held
    const room = Math.floor(lane.holdMax(now, crowded)) - lane.held
    return room > 0 ? room : mayEnterFullLane(group) ? 1 : 0
  }

  /** Whether one more delivery of the group may be taken straight from acceptance. */
  hasRoomForFresh(group: Group, now: number): boolean {
    const { lane } = group
    if (!lane || !mayOvertakeBacklog(group)) return false
    return this.roomFor(group, now) > 0 || lane.held < lane.freshMax(now, this.crowds(group))
  }

  /** Whether so much is held, or begun by the group's account, that the group must hold little while its lane is stalled. */
  private crowds(group: Group): boolean {
    return this.crowded() || this.knownAccount(group)?.silent.isCrowded === true
  }

  private knownAccount({ accountId }: Group): AccountLoad | undefined {
    return accountId === null ? undefined : this.accounts.get(accountId)
  }

  /** Whether polling for more of the group is worth its cost: its account may begin more, and its lane needs it. */
  needsRefill(group: Group, now: number): boolean {
    const account = this.knownAccount(group)
    const mayBegin = !account || windowOf(account, group.lane, now).hasRoom(now, this.free())
    return mayBegin && this.isShort(group, now)
  }

  /** Its lane is half empty, or it is the sender's turn. */
  isShort(group: Group, now: number): boolean {
    const { lane } = group
    if (!lane) return this.roomFor(group, now) > 0
    return lane.held <= lane.holdMax(now, this.crowds(group)) / 2 || mayEnterFullLane(group)
  }

  isHalfEmpty(lane: Lane, now: number): boolean {
    return lane.held <= lane.holdMax(now, this.crowded()) / 2
  }

  /** Some group with a backlog needs a refill. */
  someNeedRefill(now: number): boolean {
    for (const groups of this.backlog.values())
      for (const group of groups) if (this.needsRefill(group, now)) return true
    return false
  }

  setBacklog(group: Group, has = true): void {
    const { lane } = group
    const { domain_id: sender } = group.key
    const groups = this.backlog.get(sender) ?? new Set<Group>()
    if (has === groups.has(group) || (has && lane === null && !this.hasBacklogRoom(groups))) return
    if (has) {
      groups.add(group)
      lane?.backlog.add(group)
      this.backlog.set(sender, groups)
    } else {
      groups.delete(group)
      lane?.backlog.delete(group)
      if (groups.size === 0) this.backlog.delete(sender)
    }
    this.backlogSize += has ? 1 : -1
  }

  private hasBacklogRoom({ size }: ReadonlySet<Group>): boolean {
    return size === 0 || (size < UNROUTED_BACKLOG_MAX && this.backlogSize < GROUPS_MAX)
  }

  /** The group has something due in the database; not remembered while much of its sending domain is. */
  found(key: DueGroup & Pick<DueDelivery, 'account_id'>): void {
    const groups = this.backlog.get(key.domain_id)
    if (groups && !this.hasBacklogRoom(groups) && !this.groups.has(nameOf(key))) return
    const group = this.group(key)
    group.accountId = key.account_id
    this.setBacklog(group)
  }

  /** What the account has begun here. */
  loadOf(id: string): AccountLoad {
    return this.accounts.get(id) ?? new AccountLoad()
  }

  /** A delivery of the account is held from now on. */
  accountOf(id: string): AccountLoad {
    const account = this.loadOf(id)
    this.accounts.set(id, account)
    account.held++
    return account
  }

  /** A delivery of the account is not held any more. */
  left(id: string, account: AccountLoad): void {
    if (--account.held === 0) this.accounts.delete(id)
  }

  /** The group uses this lane from now on. */
  assign(group: Group, lane: Lane): void {
    if (group.lane === lane) return
    group.lane?.backlog.delete(group)
    group.lane = lane
    if (this.hasBacklog(group)) lane.backlog.add(group)
  }

  hasBacklog(group: Group): boolean {
    return this.backlog.get(group.key.domain_id)?.has(group) ?? false
  }

  someHaveBacklog(): boolean {
    return this.backlog.size > 0
  }

  /** Up to `limit` groups with a backlog that need a refill, in turns of sending domains. */
  takeGroupsToRefill(now: number, limit: number): Group[] {
    const taken: Group[] = []
    const takeOne = (left: Iterable<Group>) => {
      for (const group of left) if (this.needsRefill(group, now)) return taken.push(group)
      return 0
    }
    let turns: Iterable<Group>[] = []
    for (const groups of this.backlog.values()) {
      const left = groups.values()
      if (takeOne(left) === 0) continue
      turns.push(left)
      if (taken.length === limit) break
    }
    while (turns.length > 0 && taken.length < limit)
      turns = turns.filter((left) => taken.length < limit && takeOne(left) > 0)
    for (const group of taken) {
      const { domain_id: sender } = group.key
      const groups = this.backlog.get(sender) as Set<Group>
      groups.delete(group)
      groups.add(group)
      this.backlog.delete(sender)
      this.backlog.set(sender, groups)
    }
    return taken
  }

  /** Only these groups may have a backlog. */
  keepBacklogs(groups: ReadonlySet<Group>): void {
    for (const group of [...this.backlog.values()].flatMap((marked) => [...marked]))
      if (!groups.has(group)) this.setBacklog(group, false)
  }

  /** Drops idle lanes and groups when there are too many. */
  sweep(now: number): void {
    for (const [name, lane] of this.lanes) {
      if (this.lanes.size <= LANES_MAX) break
      if (lane.isIdle(now)) this.lanes.delete(name)
    }
    for (const [name, group] of this.groups) {
      if (this.groups.size <= GROUPS_MAX) break
      if (group.held === 0 && !this.hasBacklog(group)) this.groups.delete(name)
    }
  }
}

/** Fresh mail of the group may be sent before what the database holds: nothing there waits for its lane, or it is the sender's turn. */
const mayOvertakeBacklog = (group: Group) => group.lane?.backlog.size === 0 || mayEnterFullLane(group)

/** One delivery per sending domain enters a lane that others have filled. */
export const mayEnterFullLane = ({ lane, key }: Group) => lane !== null && lane.holdsOf(key.domain_id) === 0

const nameOf = ({ domain_id, recipient_domain, source_key = '' }: DueGroup) =>
  `${domain_id} ${recipient_domain} ${source_key}`

/** Where deliveries of the account for this lane count; null: it is not known yet. */
export const windowOf = (account: AccountLoad, lane: Lane | null, now: number): Window =>
  lane && !lane.isStalled(now) ? account.answering : account.silent
