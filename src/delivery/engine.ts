/**
 * The delivery engine: claims due deliveries, sorts them into lanes, runs attempts, settles outcomes.
 *
 * 1. `wake` (an insert, a timer, a finished attempt) starts a round of `fill`.
 * 2. `fill` claims as many due deliveries as the window has room for and puts each into its lane.
 * 3. A lane runs as many attempts at a time as it may; each is `attempt` -> `settle`.
 * 4. When nothing is due, a timer waits for the next due time. Nothing polls faster than that.
 *
 * A lease is renewed while its delivery is held; before the last dot of a message the attempt checks that it
 * still holds one. The engine knows neither HTTP nor how a message is composed: `prepare` and `transport`
 * are handed in.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import type { MimeMessage } from '../base/mime-message.ts'
import {
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  failedEvent,
  rejectedEvent,
} from '../events/event.ts'
import { StaleWrite, type Statement } from '../store/store.ts'
import { CODE_TOO_OLD, connectionFailure, type Failure, type Outcome } from './outcome.ts'
import { type ClaimedDelivery, LEASE_MS, type Queue, type Settlement } from './queue.ts'
import { nextAttemptAt } from './schedule.ts'

/** A delivery made ready to send, or already decided without a server (test mode, suppression, render error). */
export type Prepared =
  | {
      kind: 'send'
      about: EventMessage
      returnPath: string
      message: MimeMessage
      sizeBytes: number
      utf8: boolean
      tls: TlsPolicy
      primaryDkim: string | null
      /** The address to send from and the name to greet with; null leaves both to the transport. */
      source: { ip: string; helo: string | null } | null
      /** Name of a header field to add with the address really used; null: none. */
      sourceHeader: string | null
    }
  | { kind: 'decided'; about: EventMessage; outcome: Outcome }

export interface TlsPolicy {
  required: boolean
  verify: boolean
}

/** What an attempt came to, with what the events tell of it. */
export interface AttemptResult {
  outcome: Outcome
  mxHost: string | null
  sendingIp: string | null
  provider: string
  tls: boolean | null
  verified: boolean | null
  utf8: boolean | null
  sessionMs: number
}

export interface Transport {
  /** The lane a delivery belongs to; those of one lane share connections and limits. */
  laneOf(delivery: ClaimedDelivery): string
  /** Attempts at a time in one lane. */
  concurrencyOf(lane: string): number
  deliver(
    lane: string,
    delivery: ClaimedDelivery,
    prepared: Extract<Prepared, { kind: 'send' }>,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult>
  close(): Promise<void>
}

export interface DeliveryParts {
  queue: Queue
  transport: Transport
  prepare(delivery: ClaimedDelivery): Promise<Prepared>
  /** Statements that belong into the transaction of an outcome (suppression entries, webhook outbox). */
  consequences(delivery: ClaimedDelivery, events: readonly EventRecord[], outcome: Outcome): Statement[]
  clock: Clock
  log: Logger
  random(): number
  retryScheduleMs: readonly number[]
}

export interface Delivery {
  start(): Promise<void>
  /** Something may be due now. */
  wake(): void
  /** Stops claiming, gives back what has not begun, waits for running attempts up to `drainMs`. */
  stop(drainMs: number): Promise<void>
}

/** Deliveries held in memory; the rest waits in the database. */
const WINDOW_MAX = 1000
/** The longest wait for the next look at the queue: bounds what a stepped clock or a missed wake-up costs. */
const IDLE_MAX_MS = 30_000
const RENEW_EVERY_MS = LEASE_MS / 3
const RECLAIM_EVERY_MS = LEASE_MS / 4
/** Pause after the database refused a claim or an outcome. */
const STORE_RETRY_MS = 1000

/** A claimed delivery with the end of its first lease on the monotonic clock. */
type HeldDelivery = ClaimedDelivery & { heldUntil: number }

interface Lane {
  name: string
  waiting: HeldDelivery[]
  running: number
}

export function createDelivery(parts: DeliveryParts): Delivery {
  const { queue, transport, clock, log } = parts
  const lanes = new Map<string, Lane>()
  const running = new Set<Promise<void>>()
  /** Until when, on the monotonic clock, everything held has been renewed. */
  let renewedUntil = 0
  let held = 0
  /** The last round took all it had room for, so more is due in the database. */
  let moreWaits = false
  let filling = false
  let again = false
  let stopping = false
  let idle: Timer | null = null
  const periodic: Timer[] = []

  function wake(): void {
    if (stopping) return
    if (filling) {
      again = true
      return
    }
    filling = true
    void fill().finally(() => {
      filling = false
      if (again) {
        again = false
        wake()
      }
    })
  }

  async function fill(): Promise<void> {
    idle?.cancel()
    try {
      while (!stopping && held < WINDOW_MAX) {
        const wanted = WINDOW_MAX - held
        const asked = clock.monotonic()
        const claimed = await queue.claim(wanted, clock.now())
        for (const delivery of claimed) enter({ ...delivery, heldUntil: asked + LEASE_MS })
        moreWaits = claimed.length === wanted
        if (!moreWaits) return await waitForNext()
      }
    } catch (error) {
      log.error({ err: error }, 'cannot claim deliveries')
      idle = clock.setTimer(STORE_RETRY_MS, wake)
    }
  }

  /** With room left in the window, sleeps until the next delivery falls due. */
  async function waitForNext(): Promise<void> {
    const nextDue = await queue.nextDueAt()
    if (stopping) return
    const wait = nextDue === null ? IDLE_MAX_MS : Math.min(Math.max(nextDue - clock.now(), 1), IDLE_MAX_MS)
    idle?.cancel()
    idle = clock.setTimer(wait, wake)
  }

  function enter(delivery: HeldDelivery): void {
    held++
    const name = transport.laneOf(delivery)
    const lane = lanes.get(name) ?? { name, waiting: [], running: 0 }
    lanes.set(name, lane)
    lane.waiting.push(delivery)
    advance(lane)
  }

  function advance(lane: Lane): void {
    while (!stopping && lane.waiting.length > 0 && lane.running < transport.concurrencyOf(lane.name)) {
      const delivery = lane.waiting.shift() as HeldDelivery
      lane.running++
      const run = work(lane, delivery).finally(() => {
        running.delete(run)
        lane.running--
        held--
        if (lane.running === 0 && lane.waiting.length === 0) lanes.delete(lane.name)
        else advance(lane)
        // Half empty: fetch more before the lanes run dry.
        if (moreWaits && held < WINDOW_MAX / 2) wake()
      })
      running.add(run)
    }
  }

  async function work(lane: Lane, delivery: HeldDelivery): Promise<void> {
    let about: EventMessage | null = null
    let result: AttemptResult
    let primaryDkim: string | null = null
    try {
      const prepared = await parts.prepare(delivery)
      about = prepared.about
      if (prepared.kind === 'decided') result = decided(prepared.outcome)
      else {
        primaryDkim = prepared.primaryDkim
        result = await transport.deliver(lane.name, delivery, prepared, () => checkLease(delivery))
      }
    } catch (error) {
      if (error instanceof LeaseLost) return
      log.error({ err: error, delivery: delivery.id }, 'attempt failed inside the service')
      if (!about) return giveBack(delivery)
      result = decided(connectionFailure('internal error'))
    }
    await settle(delivery, about, result, primaryDkim)
  }

  /** Called before a message's last dot: a process that slept past its lease must not send. */
  async function checkLease(delivery: HeldDelivery): Promise<void> {
    if (clock.monotonic() < Math.max(delivery.heldUntil, renewedUntil)) return
    throw new LeaseLost('The lease ran out before the message was sent')
  }

  async function giveBack(delivery: ClaimedDelivery): Promise<void> {
    const end: Settlement = { ...retryLater(delivery, 'internal-error'), lastCode: null, lastReply: null }
    await queue.settle(delivery, end, [], [], clock.now()).catch((error) => {
      log.error({ err: error, delivery: delivery.id }, 'cannot give a delivery back; its lease will')
    })
  }

  function retryLater(
    delivery: ClaimedDelivery,
    reason: string,
  ): Pick<Settlement, 'state' | 'dueAt' | 'reason'> {
    const wait =
      parts.retryScheduleMs[Math.min(delivery.attempts, parts.retryScheduleMs.length - 1)] ?? STORE_RETRY_MS
    return { state: 'queued', dueAt: clock.now() + wait, reason }
  }

  async function settle(
    delivery: ClaimedDelivery,
    about: EventMessage,
    result: AttemptResult,
    primaryDkim: string | null,
  ): Promise<void> {
    const now = clock.now()
    const { end, events } = conclude(delivery, about, result, primaryDkim, now, parts)
    const more = parts.consequences(delivery, events, result.outcome)
    for (;;) {
      try {
        await queue.settle(delivery, end, events, more, clock.now())
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
        return
      } catch (error) {
        if (error instanceof StaleWrite) {
          log.warn({ delivery: delivery.id }, 'outcome refused: the lease was lost')
          return
        }
        log.error({ err: error, delivery: delivery.id }, 'cannot record an outcome')
        // The outcome stays ours to write; nothing more is claimed meanwhile, since `held` counts this one.
        if (stopping) return
        await new Promise<void>((resolve) => clock.setTimer(STORE_RETRY_MS, resolve))
      }
    }
  }

  /** A retry that is due before the timer rings needs an earlier look. */
  function wakeAt(dueAt: number): void {
    const wait = dueAt - clock.now()
    if (wait < IDLE_MAX_MS) wake()
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

  return {
    async start() {
      await queue.reclaim(clock.now())
      every(RENEW_EVERY_MS, async () => {
        if (held === 0) return
        const asked = clock.monotonic()
        await queue.renew(clock.now())
        renewedUntil = asked + LEASE_MS
      })
      every(RECLAIM_EVERY_MS, async () => {
        if ((await queue.reclaim(clock.now())) > 0) wake()
      })
      wake()
    },
    wake,
    async stop(drainMs) {
      stopping = true
      idle?.cancel()
      for (const timer of periodic) timer.cancel()
      const notBegun = [...lanes.values()].flatMap((lane) => lane.waiting.splice(0))
      await queue
        .release(
          notBegun.map((delivery) => delivery.id),
          clock.now(),
        )
        .catch((error) => {
          log.error({ err: error }, 'cannot release deliveries; their leases will run out')
        })
      let timer: Timer | undefined
      const tooLong = new Promise<void>((resolve) => {
        timer = clock.setTimer(drainMs, resolve)
      })
      await Promise.race([Promise.allSettled([...running]), tooLong])
      timer?.cancel()
      await transport.close()
    },
  }
}

class LeaseLost extends Error {}

/** An outcome that no server was asked for. */
function decided(outcome: Outcome): AttemptResult {
  return {
    outcome,
    mxHost: null,
    sendingIp: null,
    provider: 'Other',
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 0,
  }
}

/** From an attempt's result to the delivery's new state and the events that tell of it. */
export function conclude(
  delivery: ClaimedDelivery,
  about: EventMessage,
  result: AttemptResult,
  primaryDkim: string | null,
  now: number,
  { retryScheduleMs, random }: Pick<DeliveryParts, 'retryScheduleMs' | 'random'>,
): { end: Settlement; events: EventRecord[] } {
  const to = { recipient: delivery.recipient, recipientDomain: delivery.recipient_domain }
  const attempts = delivery.attempts + 1
  const facts = (code: number, message: string, description: string, enhanced: string | null) => ({
    sendingIp: result.sendingIp,
    primaryDkim,
    recipientProvider: result.provider,
    status: {
      code,
      'attempt-no': attempts,
      message,
      description,
      'session-seconds': Math.round(result.sessionMs) / 1000,
      ...(enhanced && { 'enhanced-code': enhanced }),
      ...(result.mxHost && { 'mx-host': result.mxHost }),
      ...(result.tls !== null && { tls: result.tls }),
      ...(result.verified !== null && { 'certificate-verified': result.verified }),
      ...(result.utf8 !== null && { utf8: result.utf8 }),
    },
  })
  const { outcome } = result
  switch (outcome.kind) {
    case 'delivered': {
      const event = deliveredEvent(about, to, facts(outcome.code, outcome.message, '', outcome.enhanced), now)
      const end: Settlement = {
        state: 'delivered',
        dueAt: now,
        reason: '',
        lastCode: outcome.code,
        lastReply: outcome.message,
      }
      return { end, events: [event] }
    }
    case 'rejected': {
      const end: Settlement = {
        state: 'rejected',
        dueAt: now,
        reason: outcome.reason,
        lastCode: null,
        lastReply: null,
      }
      return { end, events: [rejectedEvent(about, outcome.reason, outcome.description, now)] }
    }
    case 'suppressed':
    case 'bounced':
    case 'deferred':
      return failed(outcome)
  }

  function failed(failure: Extract<Outcome, { failure: Failure }>): {
    end: Settlement
    events: EventRecord[]
  } {
    const { reason, code, enhanced, message, description } = failure.failure
    const common = facts(code, message, description, enhanced)
    const last = { lastCode: code, lastReply: message || description }
    if (failure.kind !== 'deferred') {
      const hard = failure.kind === 'bounced' && failure.hard
      const status = {
        ...common.status,
        ...(failure.kind === 'bounced' && { 'bounce-type': hard ? ('hard' as const) : ('soft' as const) }),
      }
      const event = failedEvent(about, to, { ...common, status, severity: 'permanent', reason }, now)
      return { end: { state: failure.kind, dueAt: now, reason, ...last }, events: [event] }
    }
    const retryAt = nextAttemptAt(now, attempts, delivery.expires_at, retryScheduleMs, random())
    if (retryAt === 'give-up') {
      const old = facts(CODE_TOO_OLD, 'Too old', '', null)
      const status = {
        ...old.status,
        'bounce-type': 'soft' as const,
        'last-code': code,
        'last-message': message,
      }
      const event = failedEvent(about, to, { ...old, status, severity: 'permanent', reason: 'old' }, now)
      return { end: { state: 'expired', dueAt: now, reason: 'old', ...last }, events: [event] }
    }
    const status = { ...common.status, 'retry-seconds': Math.round((retryAt - now) / 1000) }
    const event = failedEvent(about, to, { ...common, status, severity: 'temporary', reason }, now)
    return { end: { state: 'queued', dueAt: retryAt, reason, ...last }, events: [event] }
  }
}
