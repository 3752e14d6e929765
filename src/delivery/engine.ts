import type { Timer } from '../base/clock.ts'
import { InsufficientStorage, Unavailable } from '../base/errors.ts'
import { failPoint } from '../base/fail-point.ts'
import { PassingMap, PassingSet } from '../base/passing.ts'
import { shortageOf } from '../base/shortage.ts'
import type { EventMessage } from '../events/event.ts'
import { StaleWrite } from '../store/store.ts'
import { conclude } from './conclude.ts'
import {
  type AttemptResult,
  type Delivery,
  type DeliveryParts,
  type LaneState,
  type NotTried,
  type Prepared,
  type Reservation,
  Unprepared,
} from './contract.ts'
import { createFinalDots, type FinalDot } from './final-dots.ts'
import { type Group, type HeldDelivery, type Lane, Lanes, mayOvertake } from './lanes.ts'
import { type Outcome, REASON_LOCAL_FAULT, unprepared } from './outcome.ts'
import { asksToSlowDown } from './pacing.ts'
import {
  CLAIM_MAX,
  type ClaimedDelivery,
  type DueDelivery,
  type DueGroup,
  LEASE_MS,
  type Settlement,
} from './queue.ts'
import { isOver } from './schedule.ts'

/** Deliveries held in memory over all lanes; the rest waits in the database. */
const WINDOW_MAX = 5_000
/** Each attempt has one connection. */
export const ATTEMPTS_AT_ONCE_MAX = WINDOW_MAX
/**
 * Beside those, deliveries that come straight from acceptance and wait for a lane that has its fill: to look for them,
 * claim them and read them back takes 75 µs more of a message's 1.2 ms than to keep them.
 */
const BEYOND_MAX = 8_000
/** Due deliveries seen in one look; when there are more, the newest of them are looked at besides. */
const LOOK_OLDEST = 512
const LOOK_NEWEST = 256
/** Groups served in one round beyond what the looks show. */
const GROUPS_PER_ROUND = 32
/** A leap over all groups costs some microseconds for each; it is made this seldom, or ten times its cost. */
const LEAP_EVERY_MS = 500
const LEAP_COST_FACTOR = 10
const LEAP_GROUPS_MAX = 10_000
/** Looks for the sake of single senders' turns: a look costs some milliseconds. */
const TURN_EVERY_MS = 50
/** The longest wait for the next look at the queue: bounds what a missed wake-up costs. */
const IDLE_MAX_MS = 30_000
const RENEW_EVERY_MS = LEASE_MS / 3
const RECLAIM_EVERY_MS = LEASE_MS / 4
/**
 * Deliveries of a lane that are made ready (checked, composed, signed) while its connections are busy. With 50
 * connections that is 7 % more messages a second (decision 27); a lane with a rate has none, since its mail would wait too long.
 */
const AHEAD_MAX = 50
/** What was made ready longer ago than this is made ready anew. */
const PREPARED_FRESH_MS = 1000
/** A line in the log for each kind of fault of our own, and how many kinds are told apart. */
const LOCAL_FAULT_LOG_EVERY_MS = 60_000
const LOCAL_FAULTS_MAX = 100
/** Pause after the database refused a claim or an outcome. */
const STORE_RETRY_MS = 1000

export function createDelivery(parts: DeliveryParts): Delivery {
  const { queue, transport, clock, log } = parts
  /** What is in our hands, by id. */
  const held = new PassingMap<string, { lane: Lane | null; begun: boolean }>()
  /** How many of them are held beyond what their lanes hold. */
  let beyond = 0
  /** Places of such that are being inserted. */
  let beyondReserved = 0
  const inWindow = () => held.size - beyond
  const lanes = new Lanes(() => inWindow() > WINDOW_MAX / 2)
  const working = new PassingSet<Promise<void>>()
  /** Of that, what has no lane yet, by id. */
  const entering = new PassingMap<string, HeldDelivery>()
  /** Deliveries being made ready, until they have a connection or wait for one. */
  const preparing = new PassingSet<Promise<unknown>>()
  /** Until when, on the monotonic clock, everything held has been renewed. */
  let renewedUntil = 0
  let looking = false
  /** The last look. */
  let look = Promise.resolve()
  /** What was given back so far is on disk. */
  let givenBack = Promise.resolve()
  let again = false
  /** A lane became half empty during the look, which need not have provided for it. */
  let emptied = false
  let stopping = false
  let idle: Timer | null = null
  let turn: Timer | null = null
  let leapAt = Number.NEGATIVE_INFINITY
  /** Where the next leap begins; null: at the first group. */
  let leapFrom: DueGroup | null = null
  /** The window was full at the last round. */
  let full = false
  /** Outcomes that the database has refused so far. While there are any, nothing new is begun. */
  let unsettled = 0
  const finalDots = createFinalDots(clock)
  /** Runs of `whileIdle`. */
  let onHold = 0
  const periodic: Timer[] = []
  /** When each fault of our own was logged last, and what has met it since. */
  const localFaults = new Map<string, { loggedAt: number; deliveries: number }>()
  /** Groups that got deliveries while a look was under way: it need not have seen them. */
  const behindLook = new Set<Group>()

  function wake(): void {
    if (stopping) return
    if (looking) {
      again = true
      return
    }
    looking = true
    look = fill().finally(() => {
      looking = false
      const more = again || (emptied && lanes.someHungry(clock.monotonic()))
      again = false
      emptied = false
      if (more) wake()
    })
  }

  /** Rounds until nothing more can be claimed now; then a timer for when something can. */
  async function fill(): Promise<void> {
    idle?.cancel()
    try {
      if (onHold > 0) return
      if (unsettled > 0 || parts.mayClaim?.() === false) return sleep(STORE_RETRY_MS)
      for (;;) {
        if (stopping || onHold > 0) return
        const { sawAll, claimed, lookedAt, cut } = await round()
        // A lane wakes us itself when it is half empty (`refill`): to look for each place that becomes free read forty
        // rows for each that was claimed (decision 37).
        if (claimed > 0 && (cut || lanes.someHungry(clock.monotonic()))) continue
        if (stopping) return
        if (!sawAll) return sleep(LEAP_EVERY_MS)
        // What was due at the look and is still there waits for room in its lane, which wakes us.
        const nextDue = await queue.nextDueAt(lanes.waitsForRoom() ? lookedAt : 0)
        const wait = nextDue === null ? IDLE_MAX_MS : Math.max(nextDue - clock.now(), 1)
        // Another process was quicker with what was chosen for a lane; there may be more.
        return sleep(Math.min(wait, lanes.someHungry(clock.monotonic()) ? LEAP_EVERY_MS : IDLE_MAX_MS))
      }
    } catch (error) {
      log.error({ err: error }, 'cannot claim deliveries')
      sleep(STORE_RETRY_MS)
    }
  }

  function sleep(ms: number): void {
    if (stopping) return
    idle?.cancel()
    idle = clock.setTimer(ms, wake)
  }

  /** `cut`: more could have been chosen than one round takes. */
  async function round(): Promise<{ sawAll: boolean; claimed: number; lookedAt: number; cut: boolean }> {
    const room = Math.min(WINDOW_MAX - inWindow(), CLAIM_MAX)
    const now = clock.now()
    full = room <= 0
    if (full) return { sawAll: false, claimed: 0, lookedAt: now, cut: false }
    behindLook.clear()
    const rows = await queue.due(LOOK_OLDEST, now, 'oldest')
    const sawAll = rows.length < LOOK_OLDEST
    if (sawAll) lanes.sawAll(behindLook)
    else rows.push(...(await lookFurther(rows, now)))
    const chosen = lanes.choose(distinct(rows), room, clock.monotonic(), sawAll)
    if (chosen.length === 0) return { sawAll, claimed: 0, lookedAt: now, cut: false }
    const asked = clock.monotonic()
    failPoint('claim-before-commit')
    const claimed = await queue.claim(chosen, clock.now())
    failPoint('claim-after-commit')
    for (const delivery of claimed) enter({ ...delivery, heldUntil: asked + LEASE_MS, provider: 'Other' })
    return { sawAll, claimed: claimed.length, lookedAt: now, cut: chosen.length === room }
  }

  /** More is due than the first look, `seen`, shows. */
  async function lookFurther(seen: readonly DueDelivery[], now: number): Promise<DueDelivery[]> {
    const rows = await queue.due(LOOK_NEWEST, now, 'newest')
    const begun = clock.monotonic()
    if (begun >= leapAt) {
      const found = await queue.dueGroups(LEAP_GROUPS_MAX, now, leapFrom)
      for (const of of found) lanes.markMore(lanes.group(of))
      // The groups behind those that one leap takes in have their turn at the next.
      leapFrom = found.length < LEAP_GROUPS_MAX ? null : (found.at(-1) ?? null)
      const ended = clock.monotonic()
      leapAt = ended + Math.max(LEAP_EVERY_MS, LEAP_COST_FACTOR * (ended - begun))
    }
    const seenOf = countBy(seen, (row) => lanes.group(row))
    for (const group of lanes.hungry(clock.monotonic(), GROUPS_PER_ROUND)) {
      const room = lanes.roomOf(group, clock.monotonic())
      if ((seenOf.get(group) ?? 0) >= room) continue
      const found = await queue.dueOf(group.of, room, now)
      lanes.markMore(group, found.length === room || behindLook.has(group))
      rows.push(...found)
    }
    return rows
  }

  function reserve(of: DueGroup): Reservation | null {
    if (stopping || onHold > 0 || unsettled > 0 || inWindow() >= WINDOW_MAX) return null
    if (parts.mayClaim?.() === false) return null
    const group = lanes.group(of)
    const now = clock.monotonic()
    if (!group.lane || !mayOvertake(group)) return null
    const isBeyond = lanes.roomOf(group, now) <= 0
    if (isBeyond && (beyond + beyondReserved >= BEYOND_MAX || !group.lane.mayHoldBeyond(now))) return null
    const { lane } = group
    group.held++
    lane.reserved++
    lane.count(of.domain_id, 1)
    if (isBeyond) beyondReserved++
    const leave = () => {
      if (isBeyond) beyondReserved--
      group.held--
      lane.reserved--
      lane.count(of.domain_id, -1)
    }
    const heldUntil = now + LEASE_MS
    return {
      lease: queue.lease(clock.now()),
      enter(row) {
        leave()
        if (isBeyond) beyond++
        enter({ ...(row as ClaimedDelivery), heldUntil, provider: 'Other', isBeyond })
      },
      cancel() {
        leave()
        refill(lane)
      },
    }
  }

  /** Lanes that are more than half full fetch what comes behind by themselves (`leave`), once they hold some of the sender's. */
  function inserted(groups: readonly DueGroup[]): void {
    let found = groups.length === 0
    for (const of of groups) {
      const group = lanes.group(of)
      const { lane } = group
      behindLook.add(group)
      const fetches = lane !== null && !lanes.isHalfEmpty(lane, clock.monotonic())
      if (fetches) lanes.markMore(group)
      if (!fetches || lane.holdsOf(of.domain_id) === 0) found = true
    }
    if (found) wake()
  }

  function enter(delivery: HeldDelivery): void {
    const group = lanes.group(delivery)
    held.set(delivery.id, { lane: null, begun: false })
    entering.set(delivery.id, delivery)
    group.held++
    const run = transport
      .laneOf(delivery)
      .then((info) => {
        // Given back meanwhile, and maybe claimed again.
        if (entering.get(delivery.id) !== delivery) return
        entering.delete(delivery.id)
        const lane = lanes.lane(info)
        delivery.provider = info.provider
        lanes.assign(group, lane)
        held.set(delivery.id, { lane, begun: false })
        lane.count(delivery.domain_id, 1)
        lane.waiting.push(delivery)
        if (onHold > 0 || stopping) return releaseWaiting().then(wake)
        advance(lane)
        if (lanes.hasMore(group) && lanes.isHungry(group, clock.monotonic())) wake()
        return
      })
      .catch((error) => {
        // A fault of our own: the lease returns the row.
        log.error({ err: error, delivery: delivery.id }, 'cannot find the lane of a delivery')
        if (entering.get(delivery.id) === delivery) leaveEntering(delivery)
      })
      .finally(() => working.delete(run))
    working.add(run)
  }

  function leaveEntering(delivery: HeldDelivery): void {
    entering.delete(delivery.id)
    letGo(delivery)
    lanes.group(delivery).held--
  }

  function advance(lane: Lane): void {
    const now = clock.monotonic()
    const restMs = lane.restMs(now)
    if (restMs > 0) {
      lane.timer?.cancel()
      lane.timer = clock.setTimer(Math.ceil(restMs), () => advance(lane))
      return
    }
    while (
      !stopping &&
      unsettled === 0 &&
      lane.waiting.size > 0 &&
      lane.running < lane.pace.connections(now) + aheadOf(lane, now)
    ) {
      const waitMs = lane.pace.waitMs(now)
      if (waitMs > 0) {
        lane.timer?.cancel()
        // Whole milliseconds: a rest below the clock's precision would ring without end.
        lane.timer = clock.setTimer(Math.ceil(waitMs), () => advance(lane))
        return
      }
      lane.pace.begin(now)
      begin(lane, lane.waiting.shift() as HeldDelivery)
    }
  }

  function begin(lane: Lane, delivery: HeldDelivery): void {
    lane.running++
    const run = work(lane, delivery).finally(() => {
      working.delete(run)
      lane.running--
      leave(lane, delivery)
      advance(lane)
    })
    working.add(run)
  }

  function leave(lane: Lane, delivery: HeldDelivery): void {
    const group = lanes.group(delivery)
    letGo(delivery)
    lane.count(delivery.domain_id, -1)
    group.held--
    refill(lane)
    const { domain_id: sender } = delivery
    const waitsForTurn = lane.holdsOf(sender) === 0 && lane.hasMoreOf(sender)
    if (waitsForTurn && !lanes.isHalfEmpty(lane, clock.monotonic())) wakeForTurn()
  }

  /** For senders of whom nothing is left in a lane that holds so much of others that it fetches nothing yet. */
  function wakeForTurn(): void {
    if (stopping) return
    turn ??= clock.setTimer(TURN_EVERY_MS, () => {
      turn = null
      wake()
    })
  }

  function letGo(delivery: HeldDelivery): void {
    held.delete(delivery.id)
    if (delivery.isBeyond === true) beyond--
  }

  /** Half empty: fetch more before the lane runs dry. */
  function refill(lane: Lane): void {
    if (!full && lane.withMore.size === 0) return
    if (!lanes.isHalfEmpty(lane, clock.monotonic())) return
    if (looking && !full) emptied = true
    else wake()
  }

  async function work(lane: Lane, delivery: HeldDelivery): Promise<void> {
    const place = { connected: false, dot: finalDots.of(lane) }
    try {
      await attempt(lane, delivery, place)
    } finally {
      place.dot.end()
      // Not before the outcome is on disk: so what a crash can repeat is one message of each connection.
      if (place.connected) lane.disconnect()
    }
  }

  async function attempt(
    lane: Lane,
    delivery: HeldDelivery,
    place: { connected: boolean; dot: FinalDot },
  ): Promise<void> {
    let about: EventMessage | null = null
    let result: AttemptResult | NotTried
    let primaryDkim: string | null = null
    let windowIsSenders = false
    try {
      const ready = makeReady(lane, delivery)
      preparing.add(ready)
      let { prepared, connection } = await ready.finally(() => preparing.delete(ready))
      if (prepared.kind === 'send') {
        const since = clock.monotonic()
        place.connected = await connection
        if (!place.connected) return parts.turnedAway?.(delivery)
        held.set(delivery.id, { lane, begun: true })
        // What was checked before may have changed: suppressions count until just before the attempt.
        if (clock.monotonic() - since > PREPARED_FRESH_MS) prepared = await parts.prepare(delivery)
      }
      about = prepared.about
      if (prepared.kind === 'decided') result = decided(delivery, prepared.outcome)
      else if (isOver(delivery, clock.now())) result = decided(delivery, lastFailure(delivery))
      else {
        primaryDkim = prepared.primaryDkim
        windowIsSenders = prepared.windowIsSenders ?? false
        failPoint('attempt-before')
        result = await transport.deliver(lane.info, delivery, prepared, () => checkLease(delivery, place.dot))
        place.dot.answered()
        failPoint('attempt-after')
        if (!('localFault' in result)) learn(lane, result)
      }
    } catch (error) {
      if (error instanceof LeaseLost) return
      const found = await failedInside(delivery, about, error)
      if ('localFault' in found) result = found
      else ({ about, result } = found)
    }
    if ('localFault' in result) return postpone(lane, delivery, result)
    await settle(delivery, about as EventMessage, result, { primaryDkim, windowIsSenders })
  }

  /** Resolves when the delivery is ready; `connection` when it may use one, or is turned away (`Lane.connect`). */
  async function makeReady(
    lane: Lane,
    delivery: HeldDelivery,
  ): Promise<{ prepared: Prepared; connection: Promise<boolean> }> {
    const prepared = await parts.prepare(delivery)
    const max = () => lane.pace.connections(clock.monotonic())
    const connection = prepared.kind === 'send' ? lane.connect(delivery, max) : Promise.resolve(false)
    return { prepared, connection }
  }

  function learn(lane: Lane, { outcome }: AttemptResult): void {
    const now = clock.monotonic()
    lane.pace.finished(now)
    lane.awake()
    if (outcome.kind !== 'deferred') return
    const { code, message } = outcome.failure
    if (!asksToSlowDown(code, message) || !lane.pace.slowDown(now, message)) return
    log.warn({ lane: lane.info.name, reply: message, ...lane.pace.state(now) }, 'lane slowed down')
  }

  /** Called before a message's last dot: a process that slept past its lease must not send. */
  async function checkLease(delivery: HeldDelivery, dot: FinalDot): Promise<void> {
    await dot.pass()
    if (clock.monotonic() < Math.max(delivery.heldUntil, renewedUntil)) return
    throw new LeaseLost('The lease ran out before the message was sent')
  }

  /** An attempt failed in our own code or data: counted and told of like any other, unless it is a passing shortage. */
  async function failedInside(
    delivery: HeldDelivery,
    known: EventMessage | null,
    error: unknown,
  ): Promise<NotTried | { about: EventMessage; result: AttemptResult }> {
    const localFault = passingFault(error)
    if (localFault !== null) return { localFault }
    log.error({ err: error, delivery: delivery.id }, 'attempt failed inside the service')
    const why = error instanceof Unprepared ? error.message : 'internal error'
    try {
      const about = known ?? (await parts.describe(delivery))
      return { about, result: { ...decided(delivery, unprepared(why)), attempted: true } }
    } catch (second) {
      log.error({ err: second, delivery: delivery.id }, 'cannot read what the events of a delivery name')
      return { localFault: passingFault(second) ?? 'the message cannot be read' }
    }
  }

  /** Nothing was tried: the delivery goes back to the queue as it was, and its lane rests. */
  async function postpone(lane: Lane, delivery: HeldDelivery, { localFault }: NotTried): Promise<void> {
    noteLocalFault(localFault)
    const dueAt = clock.now() + lane.rest(clock.monotonic(), parts.random())
    const untried = delivery.attempts === 0
    const end: Settlement = {
      state: 'queued',
      dueAt,
      attempts: delivery.attempts,
      reason: REASON_LOCAL_FAULT,
      lastCode: untried ? null : delivery.last_code,
      lastReply: untried ? localFault : delivery.last_reply,
    }
    parts.turnedAway?.(delivery)
    await write(delivery, async () => {
      await queue.settle(delivery, end, [], [], clock.now())
      wakeAt(dueAt)
    })
  }

  function noteLocalFault(localFault: string): void {
    const now = clock.monotonic()
    const known = localFaults.get(localFault) ?? { loggedAt: Number.NEGATIVE_INFINITY, deliveries: 0 }
    if (localFaults.size >= LOCAL_FAULTS_MAX) localFaults.clear()
    localFaults.set(localFault, known)
    known.deliveries++
    if (now - known.loggedAt < LOCAL_FAULT_LOG_EVERY_MS) return
    log.warn({ localFault, deliveries: known.deliveries }, 'this machine keeps deliveries waiting')
    localFaults.set(localFault, { loggedAt: now, deliveries: 0 })
  }

  async function settle(
    delivery: HeldDelivery,
    about: EventMessage,
    result: AttemptResult,
    { primaryDkim, windowIsSenders }: { primaryDkim: string | null; windowIsSenders: boolean },
  ): Promise<void> {
    const now = clock.now()
    const rules = { ...parts, windowIsSenders }
    const { end, events } = conclude(delivery, about, result, primaryDkim, now, rules)
    const more = parts.consequences(delivery, events, result.outcome)
    const transcript = parts.keepTranscript?.(delivery, result)
    if (transcript) more.push(transcript)
    await write(delivery, async () => {
      failPoint('settle-before-commit')
      await queue.settle(delivery, end, events, more, clock.now())
      failPoint('settle-after-commit')
      log.info(
        {
          message: about.messageId,
          recipient: delivery.recipient,
          state: end.state,
          code: end.lastCode,
          reply: end.lastReply,
        },
        'delivery',
      )
      if (end.state === 'queued') wakeAt(end.dueAt)
    })
  }

  /** Writes an outcome, again and again if need be: forgetting it would send the message twice. */
  async function write(delivery: HeldDelivery, run: () => Promise<void>): Promise<void> {
    let refused = false
    finalDots.writing()
    while (!stopping || !refused) {
      try {
        await run()
        break
      } catch (error) {
        if (error instanceof StaleWrite) {
          log.warn({ delivery: delivery.id }, 'outcome refused: the lease was lost')
          break
        }
        log.error({ err: error, delivery: delivery.id }, 'cannot record an outcome')
        if (!refused) unsettled++
        refused = true
        await new Promise<void>((resolve) => clock.setTimer(STORE_RETRY_MS, resolve))
      }
    }
    finalDots.written()
    if (!refused) return
    unsettled--
    if (unsettled > 0) return
    for (const lane of lanes.all()) advance(lane)
    wake()
  }

  /** Gives back everything that has not begun; resolves when all that was ever given back is in the queue. */
  async function releaseWaiting(): Promise<void> {
    const notBegun = [...entering.values()]
    for (const delivery of notBegun) leaveEntering(delivery)
    for (const lane of lanes.all()) {
      lane.timer?.cancel()
      const deliveries = lane.waiting.drain()
      for (const delivery of deliveries) leave(lane, delivery)
      notBegun.push(...deliveries, ...lane.turnAway())
    }
    const ids = notBegun.map(({ id }) => id)
    const release = queue.release(ids, clock.now()).catch((error) => {
      log.error({ err: error }, 'cannot release deliveries; their leases will run out')
    })
    givenBack = Promise.all([givenBack, release]).then(() => {})
    await givenBack
  }

  /** A retry that is due before the timer rings needs an earlier look. */
  function wakeAt(dueAt: number): void {
    if (dueAt - clock.now() < IDLE_MAX_MS) wake()
  }

  async function renew(): Promise<void> {
    if (held.size === 0) return
    const asked = clock.monotonic()
    await queue.renew(clock.now())
    renewedUntil = asked + LEASE_MS
  }

  /** Leases that ran out, of others and of rows that slipped from our hands, go back to the queue. */
  async function reclaim(): Promise<void> {
    await renew()
    const lost = (await queue.longHeld(clock.now())).filter((id) => !held.has(id))
    await queue.release(lost, clock.now())
    lanes.sweep(clock.monotonic())
    if ((await queue.reclaim(clock.now())) + lost.length > 0) wake()
  }

  function every(intervalMs: number, run: () => Promise<void>): void {
    const slot = periodic.length
    const arm = () => {
      periodic[slot] = clock.setTimer(intervalMs, () => {
        void run()
          .catch((error) => log.error({ err: error }, 'queue upkeep failed'))
          .finally(() => {
            if (!stopping) arm()
          })
      })
    }
    arm()
  }

  const stateOf = (lane: Lane): LaneState => {
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

  return {
    async start() {
      const leftBehind = await queue.reclaim(clock.now())
      finalDots.started(leftBehind > 0)
      failPoint('start-after-reclaim')
      every(RENEW_EVERY_MS, renew)
      every(RECLAIM_EVERY_MS, reclaim)
      wake()
    },
    wake,
    wakeAt,
    reserve,
    inserted,
    lanes: () => lanes.all().map(stateOf),
    laneOfGroup(of) {
      const { lane } = lanes.group(of)
      return lane && stateOf(lane)
    },
    progressOf(id) {
      const entry = held.get(id)
      return entry ? { lane: entry.lane && stateOf(entry.lane), begun: entry.begun } : null
    },
    laneFor: (delivery) => transport.laneOf(delivery),
    async whileIdle(run) {
      onHold++
      try {
        await releaseWaiting()
        // Then what was being claimed or made ready just now: none is to escape what `run` does.
        await look
        await Promise.allSettled(preparing)
        await releaseWaiting()
        return await run()
      } finally {
        onHold--
        wake()
      }
    },
    async stop(drainMs) {
      stopping = true
      idle?.cancel()
      turn?.cancel()
      for (const timer of periodic) timer.cancel()
      await releaseWaiting()
      let timer: Timer | undefined
      const tooLong = new Promise<void>((resolve) => {
        timer = clock.setTimer(drainMs, resolve)
      })
      const drained = async () => {
        // As in `whileIdle`: a claim that was under way, and what had been made ready behind busy connections.
        await look
        await Promise.allSettled(preparing)
        await releaseWaiting()
        await Promise.allSettled(working)
      }
      await Promise.race([drained(), tooLong])
      timer?.cancel()
      await transport.close()
    },
  }
}

const aheadOf = ({ pace }: Lane, now: number) =>
  pace.state(now).messagesPerSecond === null ? Math.min(AHEAD_MAX, pace.connections(now)) : 0

class LeaseLost extends Error {}

/** Why an error will pass without anything being wrong with the message; null: it is no such error. */
function passingFault(error: unknown): string | null {
  if (error instanceof Unavailable) return 'the database cannot be reached'
  if (error instanceof InsufficientStorage) return 'there is no space left on this machine'
  return shortageOf(error)
}

/** An outcome that no server was asked for. */
function decided({ provider }: HeldDelivery, outcome: Outcome): AttemptResult {
  return {
    outcome,
    // Test mode and suppression stand in for an attempt and are numbered like one.
    attempted: outcome.kind !== 'deferred',
    mxHost: null,
    sendingIp: null,
    provider,
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 0,
    transcript: null,
  }
}

/** What the last attempt came to, for a delivery whose window ended while it waited. */
function lastFailure(delivery: ClaimedDelivery): Outcome {
  const { last_code: code, last_reply: message } = delivery
  const failure = { enhanced: null, description: '' }
  return { kind: 'deferred', failure: { ...failure, code: code ?? 0, message: message ?? '' } }
}

function countBy<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, number> {
  const counts = new Map<Key, number>()
  for (const row of rows) {
    const key = keyOf(row)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

function distinct(rows: readonly DueDelivery[]): DueDelivery[] {
  const seen = new Set<string>()
  return rows.filter(({ id }) => !seen.has(id) && seen.add(id))
}
