/**
 * From a delivery that waits in its lane to an outcome on disk.
 *
 * 1. `advance` begins attempts as the lane's pace allows: one for each connection, and some more that are prefetched,
 *    which means prepared (checked, composed, signed) while the connections are busy.
 * 2. A delivery that meets no closed gate (gates.ts) is prepared, waits for a connection, is prepared again if that took
 *    long, and is sent by the transport.
 * 3. Before the final dot it waits for its turn (final-dots.ts), and its lease is checked.
 * 4. The result becomes the new state, its events and what follows from them, written in one transaction. A write that
 *    the database refuses is repeated; until it succeeds no further attempt begins.
 * 5. A fault of this machine, such as a lack of open files, is no attempt: the delivery returns to the queue, and its
 *    lane rests. A fault in our own code or data is an attempt that failed.
 *
 * Only this file takes deliveries from a lane's queue, uses its connections and feeds its pace, and writes outcomes.
 */

import { whenKnown } from '../../../base/flow/cache.ts'
import { failPoint } from '../../../base/flow/fail-point.ts'
import { pause } from '../../../base/flow/pause.ts'
import { localFaultOf } from '../../../base/process/system-fault.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import { StaleWrite, type Statement } from '../../../platform/store/store.ts'
import type { EventMessage } from '../../../watching/events/event.ts'
import { type ClaimedDelivery, type Settlement, WINDOW_IS_SENDERS } from '../claim/queue.ts'
import { relayRequestOf, withRelayRequest } from '../claim/source-key.ts'
import {
  type Allowed,
  type AttemptResult,
  type DeliveryParts,
  type NotTried,
  type Prepared,
  type SiteAnswer,
  Unprepared,
  unsent,
} from '../contract.ts'
import { type Admission, type Holding, InFlight, STORE_RETRY_MS } from '../lanes/holding.ts'
import { type HeldDelivery, type Lane, NO_SOURCE, sourceIp, windowOf } from '../lanes/lanes.ts'
import { asksFor } from '../lanes/pacing.ts'
import { type AttemptFacts, conclude } from './conclude.ts'
import { createFinalDots, type FinalDot, type FinalDots } from './final-dots.ts'
import { closedGate, passGates, type Wait } from './gates.ts'
import {
  isAnswered,
  type Outcome,
  REASON_LOCAL_FAULT,
  REASON_RELAY_CLOSED,
  tooLargeForRelays,
  unprepared,
} from './outcome.ts'
import { isOver } from './schedule.ts'
import { traceAttempt } from './traced-attempt.ts'

/**
 * Deliveries of a lane that are prefetched. With 50 connections that is 7 % more messages a second (decision 27); a lane
 * with a rate has none, since its mail would wait too long.
 */
const PREFETCH_MAX = 50
/** What was prepared longer ago than this is prepared again. */
const PREPARED_FRESH_MS = 1000
/** One line in the log for each kind of local fault in this time, and how many kinds are distinguished. */
const LOCAL_FAULT_LOG_EVERY_MS = MINUTE_MS
const LOCAL_FAULTS_MAX = 100
/** After so many failures of one outcome in a row it is asked whether the database takes other writes. */
const OWN_FAULT_AFTER = 5
const SET_ASIDE_RETRY_MS = MINUTE_MS

/** What is known of an attempt that has come so far. */
interface Progress {
  /** Null until the message is prepared. */
  about: EventMessage | null
  facts: AttemptFacts
  /** Size of the message as it was sent; null: it was not. */
  sizeBytes: number | null
  traceparent: string | undefined
}

const notBegun = (): Progress => ({
  about: null,
  facts: { primaryDkim: null, windowIsSenders: false },
  sizeBytes: null,
  traceparent: undefined,
})

/** How an attempt ends; null: it was given back to the queue while it waited for a connection. */
type End = AttemptResult | NotTried | Wait | null

interface AttemptingParts {
  delivery: DeliveryParts
  holding: Holding
  admission: Admission
  /** The attempt has ended, and the lane has a slot more. */
  onEnded(lane: Lane, sender: string): void
  /** The delivery is due again then. */
  onRequeued(dueAt: number): void
  /** Outcomes that the database had refused are on disk: all lanes may go on. */
  onRecovered(): void
}

export class Attempting {
  readonly #parts: AttemptingParts
  readonly #finalDots: FinalDots
  /** Attempts begun and not ended. */
  readonly running = new InFlight()
  /** Deliveries being prepared, until they use a connection or wait for one. */
  readonly preparing = new InFlight()
  /** When each local fault was logged last, and how many deliveries have met it since. */
  readonly #localFaults = new Map<string, { loggedAt: number; deliveries: number }>()
  /** Outcomes that are tried every minute, by delivery; each resolves when it is not tried any more. */
  readonly #setAside = new Map<string, Promise<void>>()

  constructor(parts: AttemptingParts) {
    this.#parts = parts
    this.#finalDots = createFinalDots(parts.delivery.clock)
  }

  /** The process has come up; `afterCrash`: the one before it left deliveries unsettled. */
  started(afterCrash: boolean): void {
    this.#finalDots.started(afterCrash)
  }

  /** Begins as many attempts as the lane may make now, and sets its timer for the next one. */
  advance(lane: Lane): void {
    const { admission, delivery } = this.#parts
    const now = delivery.clock.monotonic()
    let waitMs = lane.restMs(now)
    while (
      waitMs === 0 &&
      admission.mayBegin &&
      lane.waiting.size > 0 &&
      lane.running < lane.pace.connections(now) + prefetchMax(lane, now)
    ) {
      waitMs = lane.pace.waitMs(now)
      if (waitMs > 0) break
      lane.pace.begin(now)
      void this.#run(lane, lane.waiting.shift() as HeldDelivery, now)
    }
    if (waitMs > 0) this.#advanceLater(lane, waitMs)
  }

  #advanceLater(lane: Lane, ms: number): void {
    lane.timer?.cancel()
    // Whole milliseconds: a rest below the clock's precision would fire without end.
    lane.timer = this.#parts.delivery.clock.setTimer(Math.ceil(ms), () => this.advance(lane))
  }

  async #run(lane: Lane, held: HeldDelivery, now: number): Promise<void> {
    const { onEnded, delivery } = this.#parts
    const dot = this.#finalDots.of(lane)
    const window = windowOf(held.account, lane, now)
    window.busy++
    lane.running++
    this.running.begin()
    try {
      const entry = passGates(delivery, lane.info, held.delivery)
      await whenKnown(entry, (passed) => this.#attempt(lane, held, dot, passed))
    } finally {
      dot.end()
      // Not before the outcome is on disk: so a crash can repeat one message of each connection only.
      if (held.begun) lane.releaseConnection()
      lane.running--
      window.end(delivery.clock.monotonic())
      void this.#remove(held)
      onEnded(lane, held.delivery.domain_id)
      this.advance(lane)
      this.running.end()
    }
  }

  /** `passed`: what the gates say. What they gave is given back if no server has got anything of the message. */
  async #attempt(lane: Lane, held: HeldDelivery, dot: FinalDot, passed: Wait | NotTried | Allowed | null) {
    const isOpen = passed === null || 'giveBack' in passed
    const progress = notBegun()
    let isSent = false
    try {
      const end = isOpen ? await this.#tryToSend(lane, held, dot, progress) : passed
      await this.#record(lane, held, end, progress)
      isSent = end !== null && 'outcome' in end && end.attempted && isAnswered(end.outcome)
    } finally {
      if (isOpen && !isSent) passed?.giveBack()
    }
  }

  async #tryToSend(lane: Lane, held: HeldDelivery, dot: FinalDot, progress: Progress): Promise<End> {
    const { delivery } = held
    const parts = this.#parts.delivery
    const { transport, clock } = parts
    try {
      const prepared = await this.#prepareAndConnect(lane, held)
      if (prepared === null) return null
      if (prepared.kind === 'waits') {
        const { dueAt, kind: _, ...wait } = prepared
        return { ...wait, concerns: 'delivery', dueAt: () => dueAt }
      }
      if (prepared.kind !== 'held') {
        progress.about = prepared.about
        progress.traceparent = prepared.traceparent
      }
      if (prepared.kind === 'decided') return decided(held, prepared.outcome)
      if (prepared.kind === 'send' && isOver(delivery, clock.now()))
        return decided(held, lastFailure(delivery))
      const closed = closedGate(parts, lane.info, delivery, prepared)
      if (closed !== null || prepared.kind === 'held') return closed
      const tooLarge = lane.info.relay === null ? null : await this.#tooLarge(lane, held, prepared.sizeBytes)
      if (tooLarge !== null) return tooLarge
      const { primaryDkim, windowIsSenders = false, sizeBytes } = prepared
      progress.facts = { primaryDkim, windowIsSenders }
      failPoint('attempt-before')
      progress.sizeBytes = sizeBytes
      const result = await transport.deliver(lane.info, delivery, prepared, () =>
        this.#beforeFinalDot(held, dot),
      )
      dot.answered()
      failPoint('attempt-after')
      if (!('localFault' in result)) this.#learn(lane, delivery, result)
      return result
    } catch (error) {
      if (!(error instanceof LeaseLost)) return this.#internalFailure(held, progress, error)
      // Back to the queue, unless it is there already: the write is refused then.
      const dueAt = Math.floor(clock.now()) + STORE_RETRY_MS
      return { reason: delivery.reason, concerns: 'delivery', dueAt: () => dueAt }
    }
  }

  /** A relay that takes no such size is skipped. Null: it takes it. */
  async #tooLarge({ info }: Lane, held: HeldDelivery, sizeBytes: number): Promise<End> {
    const { relays, transport, clock } = this.#parts.delivery
    const { relay } = info
    const sizeMax = relay === null ? null : (relays.byName(relay)?.sizeMax ?? null)
    if (relay === null || sizeMax === null || sizeBytes <= sizeMax) return null
    const sourceKey = await transport.withoutRelay(held.delivery, relay, sizeBytes)
    // No server was asked: what the gates gave is given back.
    if (sourceKey === null) return { ...decided(held, tooLargeForRelays()), attempted: false }
    return { reason: REASON_RELAY_CLOSED, concerns: 'delivery', dueAt: () => clock.now(), sourceKey }
  }

  #record(lane: Lane, held: HeldDelivery, end: End, progress: Progress): Promise<void> | undefined {
    const { delivery } = held
    if (end === null) return void this.#parts.delivery.requeued(delivery)
    if ('reason' in end) return this.#wait(lane, held, end)
    if ('localFault' in end) return this.#postpone(lane, delivery, end)
    return this.#settle(lane, delivery, end, progress)
  }

  /** For another lane if it has one by now, else until the wait ends; at its window's end the delivery ends. */
  async #wait(lane: Lane, held: HeldDelivery, wait: Wait): Promise<void> {
    const { transport, clock, describe } = this.#parts.delivery
    const { delivery } = held
    const { expires_at: until } = delivery
    // A wait makes no window longer that is over, such as by request.
    const isEnded = wait.extendsWindow === true && isOver(delivery, clock.now())
    if (wait.concerns === 'delivery' && !isEnded) {
      const dueAt = wait.dueAt(until)
      const longer = wait.extendsWindow ? extending(delivery, dueAt - Math.floor(clock.now())) : NO_STATEMENTS
      const also = [...longer, ...(wait.also ?? [])]
      return this.#requeue(delivery, dueAt, wait.reason, {}, { ...wait, also })
    }
    if (wait.concerns === 'lane') await this.#parts.holding.giveBackLane(lane)
    if (clock.now() >= until) {
      const progress = { ...notBegun(), about: await describe(delivery) }
      return this.#settle(lane, delivery, decided(held, lastFailure(delivery)), progress)
    }
    const isElsewhere = (await transport.laneOf(delivery)).name !== lane.info.name
    const now = clock.now()
    const nextAt = isElsewhere ? now : wait.dueAt(until)
    return this.#requeue(delivery, Math.ceil(Math.min(nextAt, until)), wait.reason)
  }

  /** What to send, on a connection of the lane (`begun`), or an outcome without one; null: given back meanwhile. */
  async #prepareAndConnect(lane: Lane, held: HeldDelivery): Promise<Prepared | null> {
    const { clock, prepare } = this.#parts.delivery
    this.preparing.begin()
    let prepared: Prepared
    let connection: Promise<boolean>
    let since: number
    try {
      prepared = await prepare(held.delivery)
      if (prepared.kind !== 'send') return prepared
      since = clock.monotonic()
      connection = lane.acquireConnection(held, clock)
    } finally {
      this.preparing.end()
    }
    if (!(await connection)) return null
    held.begun = true
    // What was checked before may have changed: suppressions count until just before the attempt.
    return clock.monotonic() - since > PREPARED_FRESH_MS ? prepare(held.delivery) : prepared
  }

  /** A process that slept past its lease must not send. */
  async #beforeFinalDot(held: HeldDelivery, dot: FinalDot): Promise<void> {
    await dot.pass()
    if (!this.#parts.holding.isLeased(held))
      throw new LeaseLost('The lease ran out before the message was sent')
  }

  #learn(lane: Lane, delivery: ClaimedDelivery, { outcome, relayFault }: AttemptResult): void {
    // No server has said anything.
    if (lane.info.source === NO_SOURCE) return
    const { clock, log, slowedDown } = this.#parts.delivery
    const now = clock.monotonic()
    lane.pace.finished(now)
    lane.endRest()
    if (outcome.kind === 'delivered') this.#learnOfSource(lane, delivery, { kind: 'accepted' })
    if (outcome.kind !== 'deferred' && outcome.kind !== 'bounced') return
    const { code, message } = outcome.failure
    const asked = asksFor(lane.info.limits, code, message)
    if (relayFault !== undefined) {
      const { isSure } = relayFault
      // Some of its connections work.
      if (isSure || asked !== 'fewer-connections')
        this.#learnOfSource(lane, delivery, { kind: 'blocked', code, reply: message, isSure })
    }
    if (isAnswered(outcome) && relayFault === undefined && sourceIp(lane.info) !== null) {
      const isBlocked = asked === 'block' || (asked !== 'ignore' && this.#blocksAddress(delivery, outcome))
      const answer: SiteAnswer = isBlocked ? { kind: 'blocked', code, reply: message } : { kind: 'other' }
      this.#learnOfSource(lane, delivery, answer)
    }
    if (outcome.kind !== 'deferred') return
    if (asked !== 'slow-down' && asked !== 'fewer-connections') return
    if (!lane.pace.slowDown(now, message, asked)) return
    log.warn({ lane: lane.info.name, reply: message, ...lane.pace.state(now) }, 'lane slowed down')
    slowedDown(lane.info.name, message, asked)
  }

  /** Whether a reply says so without naming it in the shaping. */
  #blocksAddress(
    { recipient }: ClaimedDelivery,
    { failure, kind }: Extract<Outcome, { kind: 'deferred' | 'bounced' }>,
  ): boolean {
    const envelope = { recipients: [recipient], senders: [] }
    return this.#parts.delivery.judge(failure, envelope, kind === 'bounced').blocksAddress === true
  }

  /** What a server has answered: a relay to us, whatever the address; any other to the address that the message came from. */
  #learnOfSource({ info }: Lane, { recipient_domain }: ClaimedDelivery, answer: SiteAnswer): void {
    const { relays, blocks } = this.#parts.delivery
    const ip = sourceIp(info)
    if (info.relay !== null) relays.answered(info, answer)
    else if (ip !== null) blocks.answered(ip, info, recipient_domain, answer)
  }

  /** An attempt failed in our own code or data: counted and reported like any other, unless it is a passing shortage. */
  async #internalFailure(
    held: HeldDelivery,
    progress: Progress,
    error: unknown,
  ): Promise<NotTried | AttemptResult> {
    const { describe, log } = this.#parts.delivery
    const { delivery } = held
    const localFault = localFaultOf(error)
    if (localFault !== null) return { localFault }
    log.error({ err: error, delivery: delivery.id }, 'attempt failed inside the service')
    const reason = error instanceof Unprepared ? error.message : 'internal error'
    try {
      progress.about ??= await describe(delivery)
      return { ...decided(held, unprepared(reason)), attempted: true }
    } catch (second) {
      log.error({ err: second, delivery: delivery.id }, 'cannot read what the events of a delivery name')
      return { localFault: localFaultOf(second) ?? 'the message cannot be read' }
    }
  }

  /** Nothing was tried: the delivery returns to the queue as it was, and its lane rests. */
  #postpone(lane: Lane, delivery: ClaimedDelivery, { localFault }: NotTried): Promise<void> {
    const { clock, random } = this.#parts.delivery
    this.#logLocalFault(localFault)
    const dueAt = clock.now() + lane.rest(clock.monotonic(), random())
    const last = delivery.attempts === 0 ? { lastCode: null, lastReply: localFault } : {}
    return this.#requeue(delivery, dueAt, REASON_LOCAL_FAULT, last)
  }

  /** No attempt is counted. */
  async #requeue(
    delivery: ClaimedDelivery,
    dueAt: number,
    reason: string,
    last: Partial<Settlement> = {},
    { sourceKey, also = NO_STATEMENTS }: Pick<Wait, 'sourceKey' | 'also'> = {},
  ): Promise<void> {
    const { queue, clock, requeued } = this.#parts.delivery
    const { attempts, last_code: lastCode, last_reply: lastReply } = delivery
    const end: Settlement = { state: 'queued', dueAt, attempts, reason, lastCode, lastReply, ...last }
    requeued(delivery)
    await this.#write(delivery, () =>
      queue.settle(delivery, end, [], [...moving(delivery, sourceKey), ...also], clock.now()),
    )
    // Its window may end before.
    this.#parts.onRequeued(Math.min(dueAt, delivery.expires_at))
  }

  #logLocalFault(localFault: string): void {
    const { clock, log } = this.#parts.delivery
    const now = clock.monotonic()
    const known = this.#localFaults.get(localFault) ?? { loggedAt: Number.NEGATIVE_INFINITY, deliveries: 0 }
    if (this.#localFaults.size >= LOCAL_FAULTS_MAX) this.#localFaults.clear()
    this.#localFaults.set(localFault, known)
    known.deliveries++
    if (now - known.loggedAt < LOCAL_FAULT_LOG_EVERY_MS) return
    log.warn({ localFault, deliveries: known.deliveries }, 'this machine keeps deliveries waiting')
    this.#localFaults.set(localFault, { loggedAt: now, deliveries: 0 })
  }

  async #settle(
    lane: Lane,
    delivery: ClaimedDelivery,
    result: AttemptResult,
    { about: aboutMessage, facts, sizeBytes, traceparent }: Progress,
  ): Promise<void> {
    const parts = this.#parts.delivery
    const { queue, clock, log, tracing } = parts
    const about = aboutMessage as EventMessage
    const at = clock.now()
    const movesTo =
      result.relayFault === undefined ? undefined : await this.#otherRelay(lane, delivery, result)
    const known = movesTo === undefined ? facts : { ...facts, isMoved: movesTo.isMoved }
    const { end, events, suppression } = conclude(delivery, about, result, known, at, parts)
    const more = parts.consequences(delivery, events, result.outcome, suppression ?? null)
    if (movesTo !== undefined) more.push(...moving(delivery, movesTo.sourceKey))
    const transcript = parts.keepTranscript(delivery, result)
    if (transcript) more.push(transcript)
    await this.#write(delivery, async () => {
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
      if (end.state === 'queued') this.#parts.onRequeued(end.dueAt)
    })
    // Nothing may come between an outcome and its record.
    if (tracing !== undefined && traceparent !== undefined)
      traceAttempt(tracing, delivery, lane.info.name, result, { sizeBytes, traceparent, at })
  }

  /** Where a message goes that its relay has failed: to another at once, else to the same ones on the schedule. */
  async #otherRelay(
    { info: { relay } }: Lane,
    delivery: ClaimedDelivery,
    { relayFault, outcome }: AttemptResult,
  ): Promise<{ sourceKey: string; isMoved: boolean } | undefined> {
    if (relay === null || outcome.kind !== 'deferred' || relayFault?.mayMove !== true) return undefined
    const sourceKey = await this.#parts.delivery.transport.withoutRelay(delivery, relay, null)
    if (sourceKey !== null) return { sourceKey, isMoved: true }
    const { source_key: key } = delivery
    return { sourceKey: withRelayRequest(key, { ...relayRequestOf(key), without: [] }), isMoved: false }
  }

  /**
   * Writes an outcome, again and again if need be: without it the message would be sent twice. Meanwhile nothing new begins,
   * unless the database takes other writes: then the fault is this outcome's, and it is set aside.
   */
  async #write(delivery: ClaimedDelivery, commit: () => Promise<void>): Promise<void> {
    const { admission, onRecovered } = this.#parts
    const { clock, log } = this.#parts.delivery
    let failures = 0
    this.#finalDots.writing()
    while (!admission.stopping || failures === 0) {
      try {
        await commit()
        break
      } catch (error) {
        const facts = { err: error, delivery: delivery.id }
        if (error instanceof StaleWrite) {
          if (failures > 0) log.info(facts, 'outcome refused: an earlier write of it was done')
          else log.warn(facts, 'outcome refused: the lease was lost')
          break
        }
        failures++
        if (failures === 1) {
          log.error(facts, 'cannot record an outcome; it is tried every second')
          admission.outcomeRefused()
        }
        if (failures % OWN_FAULT_AFTER === 0 && localFaultOf(error) === null && (await this.#takesWrites())) {
          log.error(facts, 'cannot record an outcome, though others can be; it is tried every minute')
          this.#setAside.set(delivery.id, this.#writeLater(commit))
          break
        }
        await pause(clock, STORE_RETRY_MS)
      }
    }
    this.#finalDots.written()
    if (failures > 0 && admission.outcomeWritten()) onRecovered()
  }

  async #takesWrites(): Promise<boolean> {
    try {
      await this.#parts.holding.renewLeases()
      return true
    } catch {
      return false
    }
  }

  /** Resolves when the outcome is on disk, or nothing will write it. */
  async #writeLater(commit: () => Promise<void>): Promise<void> {
    for (let isWritten = false; !isWritten && !this.#parts.admission.stopping; ) {
      await pause(this.#parts.delivery.clock, SET_ASIDE_RETRY_MS)
      isWritten = await commit().then(
        () => true,
        (error) => error instanceof StaleWrite,
      )
    }
  }

  /** It stays held, and its lease is renewed, while its outcome is set aside. */
  async #remove(held: HeldDelivery): Promise<void> {
    const { id } = held.delivery
    if (this.#setAside.has(id)) {
      await this.#setAside.get(id)
      this.#setAside.delete(id)
    }
    this.#parts.holding.remove(held)
  }
}

/** The statement that gives a delivery another source key; none where it stays. */
const moving = ({ id, source_key: before }: ClaimedDelivery, sourceKey = before): Statement[] =>
  sourceKey === before
    ? NO_STATEMENTS
    : [{ sql: 'UPDATE deliveries SET source_key = ? WHERE id = ?', values: [sourceKey, id] }]
const NO_STATEMENTS: Statement[] = []

/**
 * The statement that moves the end of its window, unless its sender has set that. Released earlier, it is moved back
 * (claim/account-holds.ts).
 */
const extending = ({ id }: ClaimedDelivery, ms: number): Statement[] => [
  { sql: EXTEND, values: [ms, id] },
  { sql: UNTIL_END, values: [id] },
]
/** A window that was not moved ends first. */
const UNTIL_END = 'UPDATE deliveries SET due_at = expires_at WHERE id = ? AND due_at > expires_at'
const EXTEND = `UPDATE deliveries SET expires_at = expires_at + ? WHERE id = ? AND NOT ${WINDOW_IS_SENDERS}`

const prefetchMax = ({ pace }: Lane, now: number) =>
  pace.state(now).messagesPerSecond === null ? Math.min(PREFETCH_MAX, pace.connections(now)) : 0

class LeaseLost extends Error {}

/** An outcome that no server was asked for. Test mode and suppression stand in for an attempt and are numbered like one. */
const decided = ({ provider }: HeldDelivery, outcome: Outcome): AttemptResult =>
  unsent(outcome, { provider, attempted: outcome.kind !== 'deferred' })

/** The outcome of the last attempt, for a delivery whose window ended while it waited. */
function lastFailure(delivery: ClaimedDelivery): Outcome {
  const { last_code: code, last_reply: message } = delivery
  const failure = { enhanced: null, description: '' }
  return { kind: 'deferred', failure: { ...failure, code: code ?? 0, message: message ?? '' } }
}
