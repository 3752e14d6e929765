/**
 * What is due is chosen and claimed under a lease.
 *
 * 1. A poll reads the deliveries that have been due longest. When there are more than it reads, it also reads those due
 *    most recently, scans for groups that have something due, and reads some of each group whose lane needs a refill.
 * 2. `choose` (turns.ts) takes from these in turns of accounts and groups, each while its lane has room and its account may begin
 *    more; they are claimed in one statement.
 * 3. Polls follow each other while lanes need more. Then a timer waits for the next due time, and these end the wait:
 *    a lane that becomes half empty, a sender's turn, deliveries inserted for a lane that does not refill itself, a retry
 *    that is due soon. To poll for each slot that becomes free read forty rows for each one claimed (decision 37).
 *
 * Only this file decides when the database is polled, and marks which groups have a backlog there.
 */

import { isPending } from '../../../base/flow/cache.ts'
import { failPoint } from '../../../base/flow/fail-point.ts'
import type { Timer } from '../../../base/time/clock.ts'
import type { DeliveryParts } from '../contract.ts'
import { type Admission, type Holding, STORE_RETRY_MS } from '../lanes/holding.ts'
import type { Group, Lane } from '../lanes/lanes.ts'
import { CLAIM_MAX, type DueDelivery, type DueGroup } from './queue.ts'
import { choose } from './turns.ts'

/** Due deliveries read by one poll; when there are more, this many of the most recently due as well. */
const OLDEST_MAX = 512
const NEWEST_MAX = 256
/** Groups refilled in one round, besides what the poll has read. */
const GROUPS_PER_ROUND = 32
/** A scan over all groups costs some microseconds for each; between two lies this time, or ten times the cost of one. */
const SCAN_EVERY_MS = 500
const SCAN_COST_FACTOR = 10
const SCAN_GROUPS_MAX = 10_000
/** Polls for the turns of single senders: one costs some milliseconds. */
const TURN_EVERY_MS = 50
/** The longest wait for the next poll: bounds what a missed wake-up costs. */
const IDLE_MAX_MS = 30_000

interface Round {
  /** Nothing else was due. */
  sawAll: boolean
  claimed: number
  polledAt: number
  /** More could have been chosen than one round takes. */
  cut: boolean
  /** Some of what is due is for other processes. */
  left: boolean
  /** Some of what is due is of accounts that may begin no more now. */
  heldBack: boolean
}

const NOTHING = { claimed: 0, cut: false, left: false, heldBack: false }

interface ClaimingParts extends Pick<DeliveryParts, 'queue' | 'isElsewhere' | 'clock' | 'log'> {
  holding: Holding
  admission: Admission
}

export class Claiming {
  readonly #parts: ClaimingParts
  #polling = false
  /** The last poll. */
  #poll = Promise.resolve()
  #pollAgain = false
  /** A lane became half empty during the poll, which need not have provided for it. */
  #ranLow = false
  #idleTimer: Timer | null = null
  #turnTimer: Timer | null = null
  #doubtTimer: Timer | null = null
  #nextScanAt = Number.NEGATIVE_INFINITY
  /** The last group of a scan that did not reach the end; null: the next one starts at the first group. */
  #scannedTo: DueGroup | null = null
  /** There was no room at the last round. */
  #full = false
  /** Some account could begin no more at the last round. */
  #heldBack = false
  /** Groups that deliveries were inserted for during a poll, which need not have seen them. */
  readonly #insertedDuringPoll = new Set<Group>()

  constructor(parts: ClaimingParts) {
    this.#parts = parts
  }

  /** Something may be due now. */
  wake(): void {
    if (this.#parts.admission.stopping) return
    if (this.#polling) {
      this.#pollAgain = true
      return
    }
    this.#polling = true
    this.#poll = this.#claimAll().finally(() => {
      this.#polling = false
      const again = this.#pollAgain || (this.#ranLow && this.#someNeedRefill())
      this.#pollAgain = false
      this.#ranLow = false
      if (again) this.wake()
    })
  }

  /** What is due before the timer fires needs an earlier poll. */
  wakeAt(dueAt: number): void {
    if (dueAt - this.#parts.clock.now() < IDLE_MAX_MS) this.wake()
  }

  /** Lanes that are more than half full refill themselves (`slotFreed`), once they hold some of the sender's. */
  inserted(keys: readonly DueGroup[]): void {
    const { holding, clock } = this.#parts
    const { lanes } = holding
    let wakes = keys.length === 0
    for (const key of keys) {
      const group = lanes.group(key)
      const { lane } = group
      this.#insertedDuringPoll.add(group)
      const refillsItself = lane !== null && !lanes.isHalfEmpty(lane, clock.monotonic())
      if (refillsItself) lanes.setBacklog(group)
      if (!refillsItself || lane.holdsOf(key.domain_id) === 0) wakes = true
    }
    if (wakes) this.wake()
  }

  /** Polls before the lane runs dry: when it is half empty, or when it holds nothing more of a sender with a backlog. */
  slotFreed(lane: Lane, sender: string): void {
    this.refill(lane)
    if (this.#heldBack) this.#wakeForTurn()
    if (lane.backlog.size === 0) return
    const { holding, clock } = this.#parts
    const awaitsTurn = lane.holdsOf(sender) === 0 && lane.hasBacklogOf(sender)
    if (awaitsTurn && !holding.lanes.isHalfEmpty(lane, clock.monotonic())) this.#wakeForTurn()
  }

  /** Polls if the lane is half empty. */
  refill(lane: Lane): void {
    if (!this.#full && lane.backlog.size === 0) return
    const { holding, clock } = this.#parts
    if (!holding.lanes.isHalfEmpty(lane, clock.monotonic())) return
    if (this.#polling && !this.#full) this.#ranLow = true
    else this.wake()
  }

  /** Polls if the group, which has a backlog and whose lane has just been found, may have more. */
  refillGroup(group: Group): void {
    const { holding, clock } = this.#parts
    if (holding.lanes.needsRefill(group, clock.monotonic())) this.wake()
  }

  /** Resolves when the poll in progress has ended. */
  async settled(): Promise<void> {
    await this.#poll
  }

  stop(): void {
    this.#idleTimer?.cancel()
    this.#turnTimer?.cancel()
    this.#doubtTimer?.cancel()
  }

  /** A write had no answer; what it may have done is looked for as soon as the database answers. */
  doubted(): void {
    const { admission, clock } = this.#parts
    if (admission.stopping) return
    this.#doubtTimer ??= clock.setTimer(STORE_RETRY_MS, () => {
      this.#doubtTimer = null
      this.wake()
    })
  }

  /**
   * For senders of whom nothing is left in a lane that holds so much of others that it does not poll yet, and for accounts
   * that may begin more.
   */
  #wakeForTurn(): void {
    const { admission, clock } = this.#parts
    if (admission.stopping) return
    this.#turnTimer ??= clock.setTimer(TURN_EVERY_MS, () => {
      this.#turnTimer = null
      this.wake()
    })
  }

  #someNeedRefill(): boolean {
    const { holding, clock } = this.#parts
    return holding.lanes.someNeedRefill(clock.monotonic())
  }

  /** Rounds until nothing more can be claimed now; then a timer for when something can. */
  async #claimAll(): Promise<void> {
    const { admission, log } = this.#parts
    this.#idleTimer?.cancel()
    try {
      if (admission.closed) return
      if (admission.storeRefuses) return this.#sleep(STORE_RETRY_MS)
      for (;;) {
        const round = await this.#round()
        if (admission.closed) return
        if (round.claimed > 0 && (round.cut || this.#someNeedRefill())) continue
        if (!round.sawAll || round.heldBack) return this.#sleep(SCAN_EVERY_MS)
        return this.#sleep(await this.#untilNextDue(round))
      }
    } catch (error) {
      log.error({ err: error }, 'cannot claim deliveries')
      this.#sleep(STORE_RETRY_MS)
    }
  }

  async #untilNextDue({ polledAt, left }: Round): Promise<number> {
    const { queue, holding, clock } = this.#parts
    // What was due at the poll and is still there waits for room in its lane, which wakes us, or for another process.
    const nextDue = await queue.nextDueAt(left || holding.lanes.someHaveBacklog() ? polledAt : 0)
    const wait = nextDue === null ? IDLE_MAX_MS : Math.max(nextDue - clock.now(), 1)
    // Another process was quicker with what was chosen for a lane; there may be more.
    return Math.min(wait, this.#someNeedRefill() ? SCAN_EVERY_MS : IDLE_MAX_MS)
  }

  #sleep(ms: number): void {
    const { admission, clock } = this.#parts
    if (admission.stopping) return
    this.#idleTimer?.cancel()
    this.#idleTimer = clock.setTimer(ms, () => this.wake())
  }

  async #round(): Promise<Round> {
    const { queue, holding, clock } = this.#parts
    const { lanes } = holding
    await holding.releaseDoubtful()
    const room = Math.min(holding.room, CLAIM_MAX)
    const now = clock.now()
    this.#full = room <= 0
    if (this.#full) return { ...NOTHING, sawAll: false, polledAt: now }
    this.#insertedDuringPoll.clear()
    const due = await queue.due(OLDEST_MAX, now, 'oldest')
    const sawAll = due.length < OLDEST_MAX
    if (sawAll) lanes.keepBacklogs(this.#insertedDuringPoll)
    else due.push(...(await this.#pollFurther(due, now)))
    const own = await this.#withoutForeign(distinct(due))
    const left = own.length < due.length
    const { ids: chosen, heldBack } = choose(lanes, own, room, clock.monotonic(), sawAll)
    this.#heldBack = heldBack
    if (chosen.length === 0) return { ...NOTHING, sawAll, polledAt: now, left, heldBack }
    const claimed = await holding.addClaimed(chosen, async () => {
      failPoint('claim-before-commit')
      const deliveries = await queue.claim(chosen, clock.now())
      failPoint('claim-after-commit')
      return deliveries
    })
    return { sawAll, claimed, polledAt: now, cut: chosen.length === room, left, heldBack }
  }

  /** Deliveries of a group leave from one address: the first of each is asked about. */
  async #withoutForeign(due: readonly DueDelivery[]): Promise<readonly DueDelivery[]> {
    const { holding, isElsewhere } = this.#parts
    if (isElsewhere === null) return due
    const known = new Map<Group, boolean>()
    const own: DueDelivery[] = []
    for (const row of due) {
      const group = holding.lanes.group(row)
      let foreign = known.get(group)
      if (foreign === undefined) {
        const asked = isElsewhere(row)
        foreign = isPending(asked) ? await asked : asked
        known.set(group, foreign)
      }
      if (!foreign) own.push(row)
    }
    return own
  }

  /** More is due than the poll has read, `seen`. */
  async #pollFurther(seen: readonly DueDelivery[], now: number): Promise<DueDelivery[]> {
    const { queue, holding, clock } = this.#parts
    const { lanes } = holding
    const due = await queue.due(NEWEST_MAX, now, 'newest')
    if (clock.monotonic() >= this.#nextScanAt) await this.#scanGroups(now)
    const seenOf = Map.groupBy(seen, (row) => lanes.group(row))
    for (const group of lanes.takeGroupsToRefill(clock.monotonic(), GROUPS_PER_ROUND)) {
      const room = lanes.roomFor(group, clock.monotonic())
      if ((seenOf.get(group)?.length ?? 0) >= room) continue
      const found = await queue.dueOf(group.key, room, now)
      lanes.setBacklog(group, found.length === room || this.#insertedDuringPoll.has(group))
      due.push(...found)
    }
    return due
  }

  /** Marks the groups that have something due. */
  async #scanGroups(now: number): Promise<void> {
    const { queue, holding, clock } = this.#parts
    const begun = clock.monotonic()
    const keys = await queue.dueGroups(SCAN_GROUPS_MAX, now, this.#scannedTo)
    for (const key of keys) holding.lanes.found(key)
    this.#scannedTo = keys.length < SCAN_GROUPS_MAX ? null : (keys.at(-1) ?? null)
    const ended = clock.monotonic()
    this.#nextScanAt = ended + Math.max(SCAN_EVERY_MS, SCAN_COST_FACTOR * (ended - begun))
  }
}

function distinct(rows: readonly DueDelivery[]): DueDelivery[] {
  const seen = new Set<string>()
  return rows.filter(({ id }) => !seen.has(id) && seen.add(id))
}
