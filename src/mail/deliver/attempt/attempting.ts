/**
 * From a delivery that waits in its lane to an outcome on disk.
 *
 * 1. `advance` begins attempts as the lane's pace allows: one for each connection, and some more that are prefetched,
 *    which means prepared (checked, composed, signed) while the connections are busy.
 * 2. A prepared delivery waits for a connection, is prepared again if that took long, and is sent by the transport.
 * 3. Before the final dot it waits for its turn (final-dots.ts), and its lease is checked.
 * 4. The result becomes the new state, its events and what follows from them, written in one transaction. A write that
 *    the database refuses is repeated; until it succeeds no further attempt begins.
 * 5. A fault of this machine, such as a lack of open files, is no attempt: the delivery returns to the queue, and its
 *    lane rests. A fault in our own code or data is an attempt that failed.
 *
 * Only this file takes deliveries from a lane's queue, uses its connections and feeds its pace, and writes outcomes.
 */

import { failPoint } from '../../../base/flow/fail-point.ts'
import { pause } from '../../../base/flow/pause.ts'
import { localFaultOf } from '../../../base/process/system-fault.ts'
import { StaleWrite } from '../../../platform/store/store.ts'
import type { EventMessage } from '../../../watching/events/event.ts'
import { InFlight } from '../claim/in-flight.ts'
import type { ClaimedDelivery, Settlement } from '../claim/queue.ts'
import {
  type Allowed,
  type AttemptResult,
  type DeliveryParts,
  type NotTried,
  type Prepared,
  type SiteAnswer,
  Unprepared,
} from '../contract.ts'
import { type Admission, type Holding, STORE_RETRY_MS } from '../lanes/holding.ts'
import { type HeldDelivery, type Lane, NO_SOURCE, sourceIp, windowOf } from '../lanes/lanes.ts'
import { asksFor } from '../lanes/pacing.ts'
import type { ReplyAction } from '../shaping/shaping-file.ts'
import { type AttemptFacts, conclude } from './conclude.ts'
import { createFinalDots, type FinalDot, type FinalDots } from './final-dots.ts'
import {
  isAnswered,
  type Outcome,
  REASON_ACCOUNT_HELD,
  REASON_BLOCKED,
  REASON_LOCAL_FAULT,
  REASON_PROVIDER_PAUSED,
  REASON_WARMUP,
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
const LOCAL_FAULT_LOG_EVERY_MS = 60_000
const LOCAL_FAULTS_MAX = 100
/** After so many failures of one outcome in a row it is asked whether the database takes other writes. */
const OWN_FAULT_AFTER = 5
const SET_ASIDE_RETRY_MS = 60_000

const NO_FACTS: AttemptFacts = { primaryDkim: null, windowIsSenders: false }

export interface AttemptingParts {
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
  readonly #running = new InFlight()
  /** Deliveries being prepared, until they use a connection or wait for one. */
  readonly #preparing = new InFlight()
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

  /** Resolves when nothing is being prepared: then each delivery uses a connection, or waits for one. */
  async prepared(): Promise<void> {
    await this.#preparing.ended()
  }

  /** Resolves when no attempt is running. */
  async ended(): Promise<void> {
    await this.#running.ended()
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
    this.#running.begin()
    try {
      await this.#attempt(lane, held, dot)
    } finally {
      dot.end()
      // Not before the outcome is on disk: so a crash can repeat one message of each connection only.
      if (held.begun) lane.releaseConnection()
      lane.running--
      window.end(delivery.clock.monotonic())
      void this.#remove(held)
      onEnded(lane, held.delivery.domain_id)
      this.advance(lane)
      this.#running.end()
    }
  }

  /** An address on warm-up sends as many messages as its allowance has. */
  async #attempt(lane: Lane, held: HeldDelivery, dot: FinalDot): Promise<void> {
    const ip = sourceIp(lane.info)
    if (this.#isPaused(lane, held)) return this.#leavePaused(lane, held)
    if (this.#isBlocked(lane)) return this.#leaveBlocked(lane, held)
    const taken = ip === null ? undefined : this.#parts.delivery.allowances?.take(ip, lane.info.site)
    if (ip === null || taken === undefined) {
      await this.#tryToSend(lane, held, dot)
      return
    }
    let allowed: Allowed | null
    try {
      allowed = await taken
      if (allowed === null) return await this.#waitForAllowance(lane, held, ip)
    } catch (error) {
      const localFault = localFaultOf(error) ?? 'the allowance of the sending address cannot be read'
      return this.#postpone(lane, held.delivery, { localFault })
    }
    let isSent = false
    try {
      isSent = await this.#tryToSend(lane, held, dot)
    } finally {
      if (!isSent) allowed.giveBack()
    }
  }

  /** Resolves whether a server has got something of the message. */
  async #tryToSend(lane: Lane, held: HeldDelivery, dot: FinalDot): Promise<boolean> {
    const { transport, clock, requeued, tracing } = this.#parts.delivery
    const { delivery } = held
    let traceparent: string | undefined
    let sizeBytes: number | null = null
    let about: EventMessage | null = null
    let facts = NO_FACTS
    let result: AttemptResult | NotTried
    try {
      const prepared = await this.#prepareAndConnect(lane, held)
      if (prepared === null) {
        requeued?.(delivery)
        return false
      }
      if (prepared.kind === 'held') {
        await this.#wait(delivery, delivery.expires_at, REASON_ACCOUNT_HELD)
        return false
      }
      about = prepared.about
      traceparent = prepared.traceparent
      if (prepared.kind === 'decided') result = decided(held, prepared.outcome)
      else if (isOver(delivery, clock.now())) result = decided(held, lastFailure(delivery))
      else if (this.#isPaused(lane, held)) {
        await this.#leavePaused(lane, held)
        return false
      } else if (this.#isBlocked(lane)) {
        await this.#leaveBlocked(lane, held)
        return false
      } else {
        facts = { primaryDkim: prepared.primaryDkim, windowIsSenders: prepared.windowIsSenders ?? false }
        failPoint('attempt-before')
        sizeBytes = prepared.sizeBytes
        result = await transport.deliver(lane.info, delivery, prepared, () => this.#beforeFinalDot(held, dot))
        dot.answered()
        failPoint('attempt-after')
        if (!('localFault' in result)) this.#learn(lane, delivery, result)
      }
    } catch (error) {
      if (error instanceof LeaseLost) {
        // Back to the queue, unless it is there already: the write is refused then.
        const dueAt = Math.floor(clock.now()) + STORE_RETRY_MS
        await this.#wait(delivery, dueAt, delivery.reason)
        this.#parts.onRequeued(dueAt)
        return false
      }
      const failure = await this.#internalFailure(held, about, error)
      if ('localFault' in failure) result = failure
      else ({ about, result } = failure)
    }
    if ('localFault' in result) {
      await this.#postpone(lane, delivery, result)
      return false
    }
    const at = traceparent === undefined ? 0 : clock.now()
    await this.#settle(delivery, about as EventMessage, result, facts)
    // Nothing may come between an outcome and its record.
    if (tracing !== undefined && traceparent !== undefined)
      traceAttempt(tracing, { delivery, lane: lane.info.name, result, sizeBytes, traceparent, at })
    return result.attempted && isAnswered(result.outcome)
  }

  #isPaused({ info }: Lane, { delivery }: HeldDelivery): boolean {
    const { pauses } = this.#parts.delivery
    return (pauses?.pauseOf(info.site, delivery.recipient_domain) ?? null) !== null
  }

  /** An operator has paused mail to the site, or to the domain. */
  async #leavePaused(lane: Lane, held: HeldDelivery): Promise<void> {
    const { clock, pauses } = this.#parts.delivery
    const { recipient_domain } = held.delivery
    await this.#putOff(
      lane,
      held,
      REASON_PROVIDER_PAUSED,
      () => pauses?.nextLook(lane.info.site, recipient_domain) ?? clock.now(),
    )
  }

  #isBlocked({ info }: Lane): boolean {
    const ip = sourceIp(info)
    return ip !== null && this.#parts.delivery.blocks?.isClosed(ip, info.site) === true
  }

  /** The lane's provider has blocked its address: all that waits there goes to others. */
  async #leaveBlocked(lane: Lane, held: HeldDelivery): Promise<void> {
    const { clock, blocks } = this.#parts.delivery
    const ip = sourceIp(lane.info) ?? ''
    await this.#parts.holding.giveBackLane(lane)
    await this.#putOff(lane, held, REASON_BLOCKED, () => blocks?.nextFree(ip, lane.info.site) ?? clock.now())
  }

  /** Until the next hour of its address with room. */
  #waitForAllowance(lane: Lane, held: HeldDelivery, ip: string): Promise<void> {
    const { allowances, clock } = this.#parts.delivery
    return this.#putOff(
      lane,
      held,
      REASON_WARMUP,
      (until) => allowances?.nextFree(ip, lane.info.site, until) ?? clock.now(),
    )
  }

  /** For another address if there is one by now, else until `nextFree`; at its window's end the delivery ends. */
  async #putOff(
    lane: Lane,
    held: HeldDelivery,
    reason: string,
    nextFree: (until: number) => number,
  ): Promise<void> {
    const { transport, clock, describe } = this.#parts.delivery
    const { delivery } = held
    if (clock.now() >= delivery.expires_at)
      return this.#settle(delivery, await describe(delivery), decided(held, lastFailure(delivery)), NO_FACTS)
    const isElsewhere = (await transport.laneOf(delivery)).name !== lane.info.name
    const now = clock.now()
    const nextAt = isElsewhere ? now : nextFree(delivery.expires_at)
    const dueAt = Math.ceil(Math.min(nextAt, delivery.expires_at))
    await this.#wait(delivery, dueAt, reason)
    this.#parts.onRequeued(dueAt)
  }

  /** What to send, on a connection of the lane (`begun`), or an outcome without one; null: given back meanwhile. */
  async #prepareAndConnect(lane: Lane, held: HeldDelivery): Promise<Prepared | null> {
    const { clock, prepare } = this.#parts.delivery
    this.#preparing.begin()
    let prepared: Prepared
    let connection: Promise<boolean>
    let since: number
    try {
      prepared = await prepare(held.delivery)
      if (prepared.kind !== 'send') return prepared
      since = clock.monotonic()
      connection = lane.acquireConnection(held, clock)
    } finally {
      this.#preparing.end()
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

  #learn(lane: Lane, delivery: ClaimedDelivery, { outcome }: AttemptResult): void {
    // No server has said anything.
    if (lane.info.source === NO_SOURCE) return
    const { clock, log, slowedDown } = this.#parts.delivery
    const now = clock.monotonic()
    lane.pace.finished(now)
    lane.endRest()
    if (outcome.kind === 'delivered') this.#blocks(lane, delivery)?.({ kind: 'accepted' })
    if (outcome.kind !== 'deferred' && outcome.kind !== 'bounced') return
    const { code, message } = outcome.failure
    const asked = asksFor(lane.info.limits, code, message)
    this.#learnBlock(lane, delivery, outcome, asked)
    if (outcome.kind !== 'deferred') return
    if (asked !== 'slow-down' && asked !== 'fewer-connections') return
    if (!lane.pace.slowDown(now, message, asked)) return
    log.warn({ lane: lane.info.name, reply: message, ...lane.pace.state(now) }, 'lane slowed down')
    slowedDown?.(lane.info.name, message, asked)
  }

  /** What a failure says of the address that the message came from. */
  #learnBlock(
    lane: Lane,
    delivery: ClaimedDelivery,
    outcome: Extract<Outcome, { kind: 'deferred' | 'bounced' }>,
    asked: ReplyAction | null,
  ): void {
    const answered = this.#blocks(lane, delivery)
    if (answered === null || !isAnswered(outcome)) return
    const { failure, kind } = outcome
    const isBlocked =
      asked === 'block' ||
      (asked !== 'ignore' &&
        this.#parts.delivery.judge(
          failure,
          { recipients: [delivery.recipient], senders: [] },
          kind === 'bounced',
        ).blocksAddress === true)
    const { code, message: reply } = failure
    answered(isBlocked ? { kind: 'blocked', code, reply } : { kind: 'other' })
  }

  /** Reports an answer about the lane's address; null: nobody wants to know. */
  #blocks(
    { info }: Lane,
    { recipient_domain: domain }: ClaimedDelivery,
  ): ((answer: SiteAnswer) => void) | null {
    const { blocks } = this.#parts.delivery
    const ip = sourceIp(info)
    return ip === null || !blocks ? null : (answer) => blocks.answered(ip, info, domain, answer)
  }

  /** An attempt failed in our own code or data: counted and reported like any other, unless it is a passing shortage. */
  async #internalFailure(
    held: HeldDelivery,
    known: EventMessage | null,
    error: unknown,
  ): Promise<NotTried | { about: EventMessage; result: AttemptResult }> {
    const { describe, log } = this.#parts.delivery
    const { delivery } = held
    const localFault = localFaultOf(error)
    if (localFault !== null) return { localFault }
    log.error({ err: error, delivery: delivery.id }, 'attempt failed inside the service')
    const reason = error instanceof Unprepared ? error.message : 'internal error'
    try {
      const about = known ?? (await describe(delivery))
      return { about, result: { ...decided(held, unprepared(reason)), attempted: true } }
    } catch (second) {
      log.error({ err: second, delivery: delivery.id }, 'cannot read what the events of a delivery name')
      return { localFault: localFaultOf(second) ?? 'the message cannot be read' }
    }
  }

  /** Nothing was tried: the delivery returns to the queue as it was, and its lane rests. */
  async #postpone(lane: Lane, delivery: ClaimedDelivery, { localFault }: NotTried): Promise<void> {
    const { queue, clock, random, requeued } = this.#parts.delivery
    this.#logLocalFault(localFault)
    const dueAt = clock.now() + lane.rest(clock.monotonic(), random())
    const untried = delivery.attempts === 0
    const end: Settlement = {
      state: 'queued',
      dueAt,
      attempts: delivery.attempts,
      reason: REASON_LOCAL_FAULT,
      lastCode: untried ? null : delivery.last_code,
      lastReply: untried ? localFault : delivery.last_reply,
    }
    requeued?.(delivery)
    await this.#write(delivery, async () => {
      await queue.settle(delivery, end, [], [], clock.now())
      this.#parts.onRequeued(dueAt)
    })
  }

  /** No attempt is counted. What an account's state holds is found again by its release (account-holds.ts). */
  async #wait(delivery: ClaimedDelivery, dueAt: number, reason: string): Promise<void> {
    const { queue, clock, requeued } = this.#parts.delivery
    const end: Settlement = {
      state: 'queued',
      dueAt,
      attempts: delivery.attempts,
      reason,
      lastCode: delivery.last_code,
      lastReply: delivery.last_reply,
    }
    requeued?.(delivery)
    await this.#write(delivery, () => queue.settle(delivery, end, [], [], clock.now()))
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
    delivery: ClaimedDelivery,
    about: EventMessage,
    result: AttemptResult,
    facts: AttemptFacts,
  ): Promise<void> {
    const parts = this.#parts.delivery
    const { queue, clock, log } = parts
    const { end, events, suppression } = conclude(delivery, about, result, facts, clock.now(), parts)
    const more = parts.consequences(delivery, events, result.outcome, suppression ?? null)
    const transcript = parts.keepTranscript?.(delivery, result)
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

const prefetchMax = ({ pace }: Lane, now: number) =>
  pace.state(now).messagesPerSecond === null ? Math.min(PREFETCH_MAX, pace.connections(now)) : 0

class LeaseLost extends Error {}

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

/** The outcome of the last attempt, for a delivery whose window ended while it waited. */
function lastFailure(delivery: ClaimedDelivery): Outcome {
  const { last_code: code, last_reply: message } = delivery
  const failure = { enhanced: null, description: '' }
  return { kind: 'deferred', failure: { ...failure, code: code ?? 0, message: message ?? '' } }
}
