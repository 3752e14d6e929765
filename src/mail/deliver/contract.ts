/** What the delivery engine needs (`DeliveryParts`, with `Transport` and `Prepared`) and what it offers (`Delivery`). */
import type { MaybePromise } from '../../base/flow/cache.ts'
import type { Core } from '../../core.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { Tracing } from '../../platform/traces/tracing.ts'
import type { MimeMessage } from '../../protocols/message/mime-message.ts'
import type { TranscriptEntry } from '../../protocols/smtp/channel.ts'
import type { EventMessage, EventRecord, SendingPool } from '../../watching/events/event.ts'
import type { Judge, Outcome } from './attempt/outcome.ts'
import type { ClaimedDelivery, DueGroup, Queue } from './claim/queue.ts'
import type { Egress } from './connect/egress.ts'
import type { RelayHop } from './connect/relay.ts'
import type { RelayFault } from './connect/relay-faults.ts'
import type { LaneInfo } from './lanes/lanes.ts'
import type { LimitShare, SlowDown } from './lanes/pacing.ts'
import type { Overrides } from './overrides/overrides.ts'
import type { LaneLimits } from './shaping/shaping-table.ts'

/** A delivery prepared for sending, or decided without a server (test mode, suppression, render error). */
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
       * The same message without bytes above 127, signed again, for a server without 8BITMIME; null: it must not be
       * converted. Absent: it has no such bytes.
       */
      toSevenBit?: () => Promise<{ message: MimeMessage; sizeBytes: number } | null>
      /** The sender set the window: it ends the delivery, not the last retry. */
      windowIsSenders?: boolean
      /** Name of a header field to add with the source address of the connection; null or absent: none. */
      sourceHeader?: string | null
      /**
       * The field that names the delivery, for a relay that replaces the return path: it is added there if the sender
       * suppresses it, or the mail is forwarded. Absent: the message has it.
       */
      sidField?: string
      /** The span of its acceptance; undefined or absent: the message is not traced. */
      traceparent?: string | undefined
    }
  | { kind: 'decided'; about: EventMessage; outcome: Outcome; traceparent?: string | undefined }
  /** Its account may not send now: it waits until that changes, or its window ends. No attempt is counted. */
  | { kind: 'held' }
  /** It waits until then, in Unix milliseconds. No attempt is counted. `extendsWindow`: as in `Wait`. */
  | { kind: 'waits'; reason: string; dueAt: number; also: Statement[]; extendsWindow?: boolean }

/** A message cannot be prepared; `message` is for its sender, the same each time, `cause` for the log. */
export class Unprepared extends Error {
  override name = 'Unprepared'
}

/** What the sender asks for. */
export interface TlsPolicy {
  /** `requiretls`: over verified TLS, to servers that promise the same (RFC 8689 §4.2.1). */
  required: boolean | 'requiretls'
  verify: boolean
  /**
   * Servers of its recipients get it despite TLS failures, and its sessions are not reported: TLS reports (RFC 8460 §3 and
   * §5.3), and mail whose author says so (RFC 8689 §4.2.2).
   */
  isOptional?: boolean
}

/** The outcome of an attempt, with the facts that its events report. */
export interface AttemptResult {
  outcome: Outcome
  /** False: decided without a server, and not counted. */
  attempted: boolean
  mxHost: string | null
  sendingIp: string | null
  provider: string
  tls: boolean | null
  verified: boolean | null
  utf8: boolean | null
  sessionMs: number
  /** The failure is that of the relay. */
  relayFault?: RelayFault
  /** The dialogue, from `startedAt` on, in Unix milliseconds. */
  transcript: { startedAt: number; lines: TranscriptEntry[] } | null
}

/** The result of an attempt in which no message was sent. */
export const unsent = (
  outcome: Outcome,
  known: Pick<AttemptResult, 'provider' | 'attempted'> & Partial<AttemptResult>,
): AttemptResult => ({
  outcome,
  ...{ mxHost: null, sendingIp: null, tls: null, verified: null, utf8: null, sessionMs: 0, transcript: null },
  ...known,
})

/** Nothing was tried: this machine is short of something, such as open files. Not an attempt, and says nothing about the peer. */
export interface NotTried {
  localFault: string
}

/** What the lane of a delivery depends on, besides DNS and the configured addresses. */
export type Routed = DueGroup & Pick<DeliveryRow, 'account_id'>

export interface Transport {
  /** The lane of a delivery; may query DNS. Never rejects. */
  laneOf(delivery: Routed): Promise<LaneInfo>
  /** The limits of a lane by the shaping in force. */
  limitsOf(lane: LaneInfo): LaneLimits
  /**
   * The source key of a delivery that the relay of its lane cannot take, by which another one does; null: none can.
   * `sizeBytes`: it is too large for that relay; null: that failed.
   */
  withoutRelay(delivery: Routed, relay: string, sizeBytes: number | null): MaybePromise<string | null>
  /** Sites and limits are looked up anew. */
  shapingChanged(): void
  /** @param beforeFinalDot awaited before anything goes out after which the server may have the message; may throw */
  deliver(
    lane: LaneInfo,
    delivery: ClaimedDelivery,
    prepared: Extract<Prepared, { kind: 'send' }>,
    beforeFinalDot: () => Promise<void>,
  ): Promise<AttemptResult | NotTried>
  close(): Promise<void>
}

/** Addresses on warm-up send a limited number of messages. */
export interface Allowances {
  /**
   * A message that an address may send to a site in this hour; null: none. Undefined: it is not on warm-up. Must be given
   * back if no server has got it.
   */
  take(ip: string, site: string): MaybePromise<Allowed | null> | undefined
  /**
   * When the address is expected to have room for one more that waits for the site: the start of an hour, in Unix
   * milliseconds. The room is taken, unless that is after `until`.
   */
  nextFree(ip: string, site: string, until: number): number
}

/** Accounts and domains that are stopped for what they send, and daily budgets of new accounts (sending/standing). */
export interface Standings {
  /** Until when mail of a held account or domain waits, in Unix milliseconds; null: it is not held. In memory. */
  heldUntil(delivery: Stoppable): number | null
  /** As `Allowances.take`, for a turn of a slowed account or domain, and a message of a day. */
  take(delivery: Stoppable): MaybePromise<Allowed | null> | undefined
  /** Why a message that got nothing waits, and when it is to be looked at again, in Unix milliseconds; its turn is taken. */
  nextFree(delivery: Stoppable): { reason: string; dueAt: number }
}

type Stoppable = Pick<DeliveryRow, 'account_id' | 'domain_id' | 'reason'>

/** An address that a provider blocks is not used for it (ips-pools.md section 6). */
export interface AddressBlocks {
  /** Whether no mail may go from the address to the site now. In memory: asked for each attempt. */
  isClosed(ip: string, site: string): boolean
  /**
   * A server of the site has answered a message from the address to a recipient of `domain`; `blocked`: that it takes none
   * from there.
   */
  answered(
    ip: string,
    lane: Pick<LaneInfo, 'site' | 'provider' | 'limits'>,
    domain: string,
    answer: SiteAnswer,
  ): void
  /** When a message that waits for the address is to be looked at again, in Unix milliseconds. */
  nextFree(ip: string, site: string): number
}

/** `isSure`: one such reply is enough. Absent: several are, by the rules of evidence. */
export type SiteAnswer =
  | { kind: 'accepted' | 'other' }
  | { kind: 'blocked'; code: number; reply: string; isSure?: boolean }

/** Servers that take mail for others, and which of them takes what (sending/relays). */
export interface Relays {
  /** False: there are none, and nothing else is asked. */
  inUse(): boolean
  /** The relay that takes a delivery now; null: none, it goes to the recipient's own server. `providerOf`: of a domain. */
  choose(delivery: Routed, providerOf: ProviderOf): MaybePromise<RelayHop | null>
  /** Null: it was removed. */
  byName(name: string): RelayHop | null
  /** Whether the relay takes nothing now. In memory: asked for each attempt. */
  isClosed(name: string): boolean
  /** When a message that waits for the relay is to be looked at again, in Unix milliseconds. */
  nextFree(name: string): number
  /** As `Allowances.take`, for the messages of a day. */
  take(name: string): MaybePromise<Allowed | null> | undefined
  /** What the relay of a lane has answered. */
  answered(lane: LaneInfo, answer: SiteAnswer): void
  /** As `Transport.withoutRelay`. */
  without(
    delivery: Routed,
    relay: string,
    sizeBytes: number | null,
    providerOf: ProviderOf,
  ): MaybePromise<string | null>
}

export type ProviderOf = (domain: string) => Promise<string>

export interface Allowed {
  giveBack(): void
}

export interface DeliveryParts extends Pick<Core, 'clock' | 'log'> {
  standings: Standings
  pauses: Pick<Overrides, 'pauseOf' | 'nextLook'>
  egress: Pick<Egress, 'isDown' | 'nextTry'>
  blocks: AddressBlocks
  allowances: Allowances
  relays: Relays
  /** The pool of an address, for events. */
  poolOf(ip: string): SendingPool | null
  queue: Queue
  transport: Transport
  /** @throws Unprepared, or any error, when that cannot be done now: tried again on the schedule until too old */
  prepare(delivery: ClaimedDelivery): Promise<Prepared>
  /** The message as its events name it, without its content, for a delivery that cannot be prepared. */
  describe(delivery: ClaimedDelivery): Promise<EventMessage>
  /**
   * Statements that belong in the transaction of an outcome (suppression entries, webhook outbox).
   * `suppression`: what a final failure says of the recipient; null: nothing.
   */
  consequences(
    delivery: ClaimedDelivery,
    events: readonly EventRecord[],
    outcome: Outcome,
    suppression: 'hard' | 'soft' | null,
  ): Statement[]
  /** A prepared delivery returned to the queue without an attempt. */
  requeued(delivery: ClaimedDelivery): void
  /** The row that keeps an attempt's dialogue, or null if it is not kept. */
  keepTranscript(delivery: ClaimedDelivery, result: AttemptResult): Statement | null
  /** False: other processes may take over what this one holds, so nothing may be handed over. */
  isCurrent(): boolean
  /** What this process has of the limits of lanes. */
  share(): LimitShare
  /** Undefined: nothing is traced. */
  tracing: Tracing | undefined
  /** A receiver has asked a lane to slow down. */
  slowedDown(lane: string, why: string, how: SlowDown): void
  /** Another process has the address that the delivery leaves from. Null: none has any. */
  isElsewhere: ((delivery: Routed) => MaybePromise<boolean>) | null
  /** Takes in nothing, ever: other processes deliver. */
  isOff: boolean
  /** False while nothing may be claimed, because outcomes could not be written (disk full, disk failed). */
  mayClaim(): boolean
  random(): number
  retryScheduleMs: readonly number[]
  /** What a failed attempt means: reason and rule of its event. */
  judge: Judge
}

export interface Delivery {
  start(): Promise<void>
  /** Something may be due now. */
  wake(): void
  /** Something will be due at this time (Unix milliseconds); a distant time costs no poll now. */
  wakeAt(dueAt: number): void
  /**
   * A slot for a delivery that is about to be inserted and due at once: inserted as claimed, it is sent without being
   * polled for, claimed and read back. Null: insert it as queued, and call `inserted` after the commit.
   */
  reserve(group: DueGroup): Reservation | null
  /** Deliveries were inserted as queued, and are due. */
  inserted(groups: readonly DueGroup[]): void
  /** The lanes that hold something or are slowed down, as they are now. */
  lanes(): LaneState[]
  /** The lane that deliveries of a group used last; null: not known here. */
  laneOfGroup(group: DueGroup): LaneState | null
  /** Progress of a delivery that this process holds; null: it does not. */
  progressOf(id: string): { lane: LaneState | null; begun: boolean } | null
  /** Limits of the shaping have changed: lanes get theirs at once. */
  shapingChanged(): void
  /** The lane that a delivery would use now; may query DNS. Never rejects. */
  laneFor(delivery: Routed): Promise<LaneInfo>
  /** Gives back what has not begun, and begins nothing until `run` has ended. Attempts in progress go on. */
  whileIdle<T>(run: () => Promise<T>): Promise<T>
  /** Another process was asked to slow the lane down. */
  slowDown(lane: string, why: string, how: SlowDown): void
  /** Other processes have taken over all that this one held. */
  leasesLost(): Promise<void>
  /** Stops claiming, gives back what has not begun, waits for running attempts up to `drainMs`. */
  stop(drainMs: number): Promise<void>
}

/** A slot in a lane; exactly one of `enter` and `cancel` must follow. */
export interface Reservation {
  /** What the row is inserted with; `lease_until` is a value of the store's `leaseTimes`. */
  lease: { lease_owner: string; lease_token: string; lease_until: number }
  /** The row is on disk. */
  enter(row: DeliveryRow): void
  /** The row was not inserted; `mayExist`: the database went away before it answered, so the row may be there all the same. */
  cancel(mayExist?: DeliveryRow): void
}

export interface LaneState {
  info: LaneInfo
  waiting: number
  running: number
  connectionsMax: number
  messagesPerSecond: number | null
  /** Unix milliseconds until which the lane is slower than its set limits; null: it is not. */
  backedOffUntil: number | null
  why: string | null
}
