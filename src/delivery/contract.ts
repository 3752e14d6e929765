/**
 * What the delivery engine asks of others and offers them: `Prepared` and `Transport` are handed in, `Delivery`
 * is what `createDelivery` (engine.ts) gives.
 */
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { MimeMessage } from '../base/mime-message.ts'
import type { EventMessage, EventRecord } from '../events/event.ts'
import type { DeliveryRow } from '../store/schema.ts'
import type { Statement } from '../store/store.ts'
import type { LaneInfo } from './lanes.ts'
import type { Judge, Outcome } from './outcome.ts'
import type { ClaimedDelivery, DueGroup, Queue } from './queue.ts'
import type { Transcript } from './transcript.ts'

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
      /**
       * The same message without bytes above 127, signed anew, for a server without 8BITMIME; null: it may not be
       * changed so. Absent: it has none.
       */
      toSevenBit?: () => Promise<{ message: MimeMessage; sizeBytes: number } | null>
      /** The sender set the window: it ends the delivery, not the last retry. */
      windowIsSenders?: boolean
      /** Name of a header field to add with the address really used; null or absent: none. */
      sourceHeader?: string | null
    }
  | { kind: 'decided'; about: EventMessage; outcome: Outcome }

/** A message cannot be made ready; `message` is for its sender, the same each time, `cause` for the log. */
export class Unprepared extends Error {
  override name = 'Unprepared'
}

export interface TlsPolicy {
  required: boolean
  verify: boolean
}

/** What an attempt came to, with what the events tell of it. */
export interface AttemptResult {
  outcome: Outcome
  /** False: decided without asking a server, and not counted. */
  attempted: boolean
  mxHost: string | null
  sendingIp: string | null
  provider: string
  tls: boolean | null
  verified: boolean | null
  utf8: boolean | null
  sessionMs: number
  transcript: Transcript | null
}

/** Nothing was tried: this machine is short of something, such as open files. No attempt, and no word about the peer. */
export interface NotTried {
  localFault: string
}

/** What the lane of a delivery depends on, besides DNS and the configured addresses. */
export type Routed = DueGroup & Pick<DeliveryRow, 'account_id'>

export interface Transport {
  /** The lane of a delivery; may ask DNS. Never rejects. */
  laneOf(delivery: Routed): Promise<LaneInfo>
  deliver(
    lane: LaneInfo,
    delivery: ClaimedDelivery,
    prepared: Extract<Prepared, { kind: 'send' }>,
    stillOurs: () => Promise<void>,
  ): Promise<AttemptResult | NotTried>
  close(): Promise<void>
}

export interface DeliveryParts {
  queue: Queue
  transport: Transport
  /** @throws Unprepared, or any error, when that cannot be done now: tried again by the schedule until too old */
  prepare(delivery: ClaimedDelivery): Promise<Prepared>
  /** The message as its events name it, without its content, for a delivery that cannot be prepared. */
  describe(delivery: ClaimedDelivery): Promise<EventMessage>
  /** Statements that belong into the transaction of an outcome (suppression entries, webhook outbox). */
  consequences(delivery: ClaimedDelivery, events: readonly EventRecord[], outcome: Outcome): Statement[]
  /** A delivery that was made ready went back to the queue without an attempt. */
  turnedAway?(delivery: ClaimedDelivery): void
  /** The row that keeps an attempt's dialogue, or null where it is not kept. */
  keepTranscript?(delivery: ClaimedDelivery, result: AttemptResult): Statement | null
  /** False while nothing may be claimed, since outcomes could not be written (disk full, disk failed). */
  mayClaim?(): boolean
  clock: Clock
  log: Logger
  random(): number
  retryScheduleMs: readonly number[]
  /** What a failed attempt means: reason and rule of its event. */
  judge: Judge
}

export interface Delivery {
  start(): Promise<void>
  /** Something may be due now. */
  wake(): void
  /** Something will be due at this time (Unix milliseconds); what is far ahead costs no look now. */
  wakeAt(dueAt: number): void
  /**
   * Room for a delivery that is about to be inserted and due at once: inserted as claimed, it is sent without
   * being looked for, claimed and read back. Null: insert it as queued, and call `inserted` after the commit.
   */
  reserve(group: DueGroup): Reservation | null
  /** Deliveries were inserted as queued, and are due. */
  inserted(groups: readonly DueGroup[]): void
  /** The lanes that hold something or are slowed down, as they are now. */
  lanes(): LaneState[]
  /** The lane that deliveries of a group used last; null: not known here. */
  laneOfGroup(group: DueGroup): LaneState | null
  /** Where a delivery that was claimed here stands; null: it is not in our hands. */
  progressOf(id: string): { lane: LaneState | null; begun: boolean } | null
  /** The lane that a delivery would go by now; may ask DNS. Never rejects. */
  laneFor(delivery: Routed): Promise<LaneInfo>
  /** Gives back what has not begun, and begins nothing until `run` has ended. */
  whileIdle<T>(run: () => Promise<T>): Promise<T>
  /** Stops claiming, gives back what has not begun, waits for running attempts up to `drainMs`. */
  stop(drainMs: number): Promise<void>
}

/** A place in a lane; exactly one of `enter` and `cancel` must follow. */
export interface Reservation {
  /** What the row is inserted with; `lease_until` is a value of the store's `leaseTimes`. */
  lease: { lease_owner: string; lease_token: string; lease_until: number }
  /** The row is on disk. */
  enter(row: DeliveryRow): void
  /** It will not be. */
  cancel(): void
}

export interface LaneState {
  info: LaneInfo
  waiting: number
  running: number
  connectionsMax: number
  messagesPerSecond: number | null
  /** Unix milliseconds until which the lane is slower than it may be; null: it is not. */
  backedOffUntil: number | null
  why: string | null
}
