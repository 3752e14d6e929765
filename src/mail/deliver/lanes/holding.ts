/**
 * What this process holds: deliveries that it has claimed and not settled yet, by lane.
 *
 * 1. A delivery gets in by a claim (claiming.ts), or straight from acceptance into a slot reserved before its row was
 *    inserted. The transport finds its lane; there it waits until an attempt takes it (attempting.ts).
 * 2. It leaves when its outcome is on disk, or when it is given back to the queue before its attempt has begun.
 * 3. One bound, HELD_MAX, counts all of them, with reserved slots and rows being claimed. The last fifth is for claims:
 *    fresh mail that finds no slot is inserted as queued and claimed like any other, so neither keeps the other out.
 *    From half on, stalled lanes hold one delivery each (lanes.ts).
 * 4. The leases of all are renewed together. Before a message's final dot its lease is checked here.
 * 5. When the database goes away before it answers a write, rows may be leased to this process that it does not hold. Their
 *    ids are kept, and returned to the queue before the next claim.
 *
 * Only this file adds deliveries to what is held and removes them, reserves slots and renews leases.
 */

import { PassingMap } from '../../../base/flow/cache.ts'
import type { DeliveryRow } from '../../../platform/store/schema.ts'
import { type ClaimedDelivery, type DueGroup, LEASE_MS } from '../claim/queue.ts'
import type { DeliveryParts, LaneState, Reservation } from '../contract.ts'
import { type Group, type HeldDelivery, type Lane, Lanes } from './lanes.ts'

/** Deliveries held in memory; the rest waits in the database. */
const HELD_MAX = 5_000
/**
 * Fresh mail is taken while fewer are held. To find, claim and read back a row takes 75 µs more of a message's 1.2 ms
 * than to keep it (decision 36).
 */
const FRESH_BELOW = 4_000
/** With more than this, stalled lanes hold one delivery each. */
const CROWDED_ABOVE = HELD_MAX / 2
/** Each attempt holds one connection. */
export const ATTEMPTS_AT_ONCE_MAX = HELD_MAX

/** Rows of failed writes that are remembered; `reclaim` finds further ones when their leases are a minute old. */
const DOUBTFUL_MAX = 20_000

/** Pause after the database refused a claim or an outcome. */
export const STORE_RETRY_MS = 1000

/** Counts what is in progress, so that it can be awaited; a set of promises would cost two more for each delivery. */
export class InFlight {
  private count = 0
  private waiting: (() => void)[] = []

  begin(): void {
    this.count++
  }

  end(): void {
    this.count--
    if (this.count > 0 || this.waiting.length === 0) return
    const resolvers = this.waiting
    this.waiting = []
    for (const resolve of resolvers) resolve()
  }

  /** Resolves when nothing is in progress. */
  async ended(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => this.waiting.push(resolve))
  }
}

/** Whether deliveries may be taken in and attempts may begin. */
export class Admission {
  stopping = false
  #pauses = 0
  #unwritten = 0
  readonly #mayClaim: DeliveryParts['mayClaim']

  constructor(mayClaim: DeliveryParts['mayClaim']) {
    this.#mayClaim = mayClaim
  }

  /** Stopping or paused: the end of the pause wakes the engine. */
  get closed(): boolean {
    return this.stopping || this.#pauses > 0
  }

  /** An outcome could not be written, or nothing may be claimed; may have passed after STORE_RETRY_MS. */
  get storeRefuses(): boolean {
    return this.#unwritten > 0 || !this.#mayClaim()
  }

  get mayBegin(): boolean {
    return !this.stopping && this.#unwritten === 0
  }

  pause(): void {
    this.#pauses++
  }

  resume(): void {
    this.#pauses--
  }

  outcomeRefused(): void {
    this.#unwritten++
  }

  /** A refused outcome is on disk, or given up. @returns whether it was the last one */
  outcomeWritten(): boolean {
    return --this.#unwritten === 0
  }
}

interface HoldingParts
  extends Pick<DeliveryParts, 'queue' | 'transport' | 'isCurrent' | 'share' | 'clock' | 'log'> {
  admission: Admission
  /** A delivery waits in its lane now. */
  onWaiting(lane: Lane, group: Group): void
  /** A slot of the lane is free again. */
  onFree(lane: Lane): void
  /** Deliveries returned to the queue after a pause had begun. */
  onGivenBack(): void
  /** A write had no answer: when the database is back, there may be something to claim. */
  onDoubt(): void
}

export class Holding {
  readonly lanes: Lanes
  readonly #parts: HoldingParts
  readonly #held = new PassingMap<string, HeldDelivery>()
  /** Slots of deliveries that are being inserted or claimed. */
  #reserved = 0
  /** Deliveries whose lane is being looked up. */
  readonly routing = new InFlight()
  /** Until when, on the monotonic clock, all leases have been renewed. */
  #renewedUntil = 0
  /** How often all leases were lost: what was claimed before the last time is lost as well. */
  #losses = 0
  /** Ids of rows that may be leased to this process because a write that had no answer may have been done. */
  readonly #doubtful = new Set<string>()
  /** Everything that was given back so far is on disk. */
  #givenBack = Promise.resolve()

  constructor(parts: HoldingParts) {
    this.#parts = parts
    this.lanes = new Lanes(
      () => this.size > CROWDED_ABOVE,
      () => this.room,
      parts.share,
    )
  }

  get size(): number {
    return this.#held.size + this.#reserved
  }

  /** How many may be claimed. */
  get room(): number {
    return HELD_MAX - this.size
  }

  /** Runs a claim of the rows `ids` and takes in what it returns. @returns how many */
  async addClaimed(ids: readonly DeliveryRow['id'][], claim: () => Promise<ClaimedDelivery[]>) {
    const leasedUntil = this.#parts.clock.monotonic() + LEASE_MS
    const losses = this.#losses
    this.#reserved += ids.length
    let claimed: ClaimedDelivery[]
    try {
      claimed = await claim()
    } catch (error) {
      this.#doubt(ids)
      throw error
    } finally {
      this.#reserved -= ids.length
    }
    for (const delivery of claimed)
      this.#add(delivery, this.lanes.group(delivery), { leasedUntil, lost: losses !== this.#losses })
    return claimed.length
  }

  /** A slot for a delivery of the group that is about to be inserted; null: there is none. */
  reserve(key: DueGroup): Reservation | null {
    const { queue, admission, clock } = this.#parts
    if (this.size >= FRESH_BELOW || admission.closed || admission.storeRefuses) return null
    const group = this.lanes.group(key)
    const { lane } = group
    const now = clock.monotonic()
    if (!lane || !this.lanes.hasRoomForFresh(group, now)) return null
    const losses = this.#losses
    this.#countReserved(group, lane, 1)
    return {
      lease: queue.lease(clock.now()),
      enter: (row) => {
        this.#countReserved(group, lane, -1)
        this.#add(row as ClaimedDelivery, group, {
          leasedUntil: now + LEASE_MS,
          lost: losses !== this.#losses,
        })
      },
      cancel: (mayExist) => {
        this.#countReserved(group, lane, -1)
        if (mayExist) this.#doubt([mayExist.id])
        this.#parts.onFree(lane)
      },
    }
  }

  #countReserved(group: Group, lane: Lane, change: 1 | -1): void {
    this.#reserved += change
    group.held += change
    lane.reserved += change
    lane.count(group.key.domain_id, change)
  }

  #add(delivery: ClaimedDelivery, group: Group, lease: Pick<HeldDelivery, 'leasedUntil' | 'lost'>): void {
    const account = this.lanes.accountOf(delivery.account_id)
    const held: HeldDelivery = {
      delivery,
      group,
      account,
      lane: null,
      provider: 'Other',
      begun: false,
      ...lease,
    }
    this.#held.set(delivery.id, held)
    group.held++
    group.accountId = delivery.account_id
    account.silent.busy++
    void this.#route(held)
  }

  /** Finds the lane; there the delivery waits for its attempt. */
  async #route(held: HeldDelivery): Promise<void> {
    const { transport, admission, log, onWaiting, onGivenBack } = this.#parts
    const { delivery, group, account } = held
    this.routing.begin()
    try {
      const info = await transport.laneOf(delivery)
      // Given back meanwhile, and maybe claimed again.
      if (!this.#isHeld(held)) return
      const lane = this.lanes.lane(info)
      this.lanes.assign(group, lane)
      held.lane = lane
      account.silent.busy--
      held.provider = info.provider
      lane.count(delivery.domain_id, 1)
      lane.waiting.push(held)
      if (!admission.closed) return onWaiting(lane, group)
      await this.giveBack()
      onGivenBack()
    } catch (error) {
      // A fault of our own: the row returns to the queue when its lease runs out.
      log.error({ err: error, delivery: delivery.id }, 'cannot find the lane of a delivery')
      if (held.lane === null && this.#isHeld(held)) this.remove(held)
    } finally {
      this.routing.end()
    }
  }

  #isHeld(held: HeldDelivery): boolean {
    return this.#held.get(held.delivery.id) === held
  }

  /** Its outcome is on disk, or it is being given back. */
  remove(held: HeldDelivery): void {
    const { delivery, group, account, lane } = held
    if (this.#isHeld(held)) this.#held.delete(delivery.id)
    group.held--
    this.lanes.left(delivery.account_id, account)
    if (lane === null) account.silent.busy--
    lane?.count(delivery.domain_id, -1)
  }

  /** Gives back everything that has not begun; resolves when all that was ever given back is in the queue. */
  async giveBack(): Promise<void> {
    const notBegun = [...this.#held.values()].filter(({ lane }) => lane === null)
    for (const lane of this.lanes.all()) {
      lane.timer?.cancel()
      notBegun.push(...lane.waiting.drain())
    }
    for (const held of notBegun) this.remove(held)
    // Those that wait for a connection are removed as their attempts end.
    for (const lane of this.lanes.all()) notBegun.push(...lane.cancelConnectionWaits())
    await this.#release(notBegun)
  }

  /** Gives back what waits in one lane; it is claimed again at once, for the lane that it has then. */
  async giveBackLane(lane: Lane): Promise<void> {
    if (lane.waiting.size === 0 && !lane.hasConnectionWaits) return
    const notBegun = lane.waiting.drain()
    for (const held of notBegun) this.remove(held)
    notBegun.push(...lane.cancelConnectionWaits())
    await this.#release(notBegun)
    this.#parts.onGivenBack()
  }

  async #release(notBegun: readonly HeldDelivery[]): Promise<void> {
    const { queue, clock, log } = this.#parts
    const ids = notBegun.map(({ delivery }) => delivery.id)
    const release = queue.release(ids, clock.now()).catch((error) => {
      log.error({ err: error }, 'cannot release deliveries yet')
      this.#doubt(ids)
    })
    this.#givenBack = Promise.all([this.#givenBack, release]).then(() => {})
    await this.#givenBack
  }

  #doubt(ids: readonly string[]): void {
    for (const id of ids) if (this.#doubtful.size < DOUBTFUL_MAX) this.#doubtful.add(id)
    this.#parts.onDoubt()
  }

  /** Returns rows of writes that had no answer to the queue. Nothing may be claimed before it resolves. */
  async releaseDoubtful(): Promise<void> {
    if (this.#doubtful.size === 0) return
    const ids = [...this.#doubtful]
    // A release that was done all the same may have been followed by a claim.
    const notHeld = ids.filter((id) => !this.#held.has(id))
    await this.#parts.queue.release(notHeld, this.#parts.clock.now())
    for (const id of ids) this.#doubtful.delete(id)
  }

  /** False: another process may have it, so it must not be handed over. */
  isLeased(held: HeldDelivery): boolean {
    if (held.lost || !this.#isHeld(held) || !this.#parts.isCurrent()) return false
    return this.#parts.clock.monotonic() < Math.max(held.leasedUntil, this.#renewedUntil)
  }

  /**
   * Others have returned all that this process held to the queue: what has not begun is forgotten, and what has is not
   * handed over.
   */
  async leasesLost(): Promise<void> {
    this.#losses++
    for (const held of this.#held.values()) held.lost = true
    await this.giveBack()
  }

  async renewLeases(): Promise<void> {
    if (this.#held.size === 0) return
    const { queue, clock } = this.#parts
    const asked = clock.monotonic()
    await queue.renew(clock.now())
    this.#renewedUntil = asked + LEASE_MS
  }

  /** Leases that ran out, of any process, and rows leased to this one that it does not hold return to the queue. @returns how many */
  async reclaim(): Promise<number> {
    const { queue, clock } = this.#parts
    await this.renewLeases()
    const lost = (await queue.longHeld(clock.now())).filter((id) => !this.#held.has(id))
    await queue.release(lost, clock.now())
    this.lanes.sweep(clock.monotonic())
    return (await queue.reclaim(clock.now())) + lost.length
  }

  laneStates(): LaneState[] {
    return this.lanes.all().map((lane) => this.#stateOf(lane))
  }

  laneStateOf(key: DueGroup): LaneState | null {
    const { lane } = this.lanes.group(key)
    return lane && this.#stateOf(lane)
  }

  progressOf(id: DeliveryRow['id']): { lane: LaneState | null; begun: boolean } | null {
    const held = this.#held.get(id)
    return held ? { lane: held.lane && this.#stateOf(held.lane), begun: held.begun } : null
  }

  #stateOf(lane: Lane): LaneState {
    const { clock } = this.#parts
    const { connections, messagesPerSecond, backedOffMs, why } = lane.pace.state(clock.monotonic())
    return {
      info: lane.info,
      waiting: lane.waiting.size,
      running: lane.connected,
      connectionsMax: connections,
      messagesPerSecond,
      backedOffUntil: backedOffMs > 0 ? clock.now() + backedOffMs : null,
      why,
    }
  }
}
