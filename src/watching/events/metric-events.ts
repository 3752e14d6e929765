/**
 * The events that each metric counts (metrics-logs.md section 3), by the name of the metric without `_count`. Pure.
 * What is unique among opens and clicks depends on earlier events: `isUnique` says that the caller has to check it.
 */
import type { EventName } from './event.ts'

type Payload = Readonly<Record<string, unknown>>

export interface MetricFacts {
  /** Whether the rule that classified a reply stands for a limit of the receiver's rate. */
  isRateLimit(ruleId: string): boolean
}

export interface MetricEvents {
  /** Only these can match. */
  events: readonly EventName[]
  /** Absent: all of them match. */
  matches?(payload: Payload, facts: MetricFacts): boolean
  /** Only the first of its message, recipient and bot class within seven days counts. */
  isUnique?: true
}

const within = (payload: Payload, name: string): Payload => {
  const value = payload[name]
  return typeof value === 'object' && value !== null ? (value as Payload) : {}
}

/** Routed, forwarded, or the copy for a member of a mailing list. */
const isIncoming = (payload: Payload): boolean =>
  payload['mailing-list'] !== undefined || within(payload, 'flags')['is-routed'] === true

const isOptimized = (payload: Payload) => payload['i-delivery-optimizer'] !== undefined
const isHttp = (payload: Payload) => within(payload, 'envelope')['transport'] === 'http'
const isPermanent = ({ severity }: Payload) => severity === 'permanent'
const isCallback = (payload: Payload) => within(payload, 'flags')['is-callback'] === true
const isDelayed = (payload: Payload) => within(payload, 'flags')['is-delayed-bounce'] === true
const isSuppressed = ({ reason }: Payload) => String(reason).startsWith('suppress-')
const attemptOf = (payload: Payload) => Number(within(payload, 'delivery-status')['attempt-no'])

const SOFT_REASONS: ReadonlySet<unknown> = new Set(['generic', 'greylisted', 'blacklisted', 'espblock'])

const all = (...events: EventName[]): MetricEvents => ({ events })
const unique = (event: EventName): MetricEvents => ({ events: [event], isUnique: true })
const accepted = (matches: (payload: Payload) => boolean): MetricEvents => ({ events: ['accepted'], matches })
const delivered = (matches: (payload: Payload) => boolean): MetricEvents => ({
  events: ['delivered'],
  matches,
})
const permanent = (matches: (payload: Payload) => boolean = () => true): MetricEvents => ({
  events: ['failed'],
  matches: (payload) => isPermanent(payload) && matches(payload),
})
const temporary = (matches: (payload: Payload, facts: MetricFacts) => boolean): MetricEvents => ({
  events: ['failed'],
  matches: (payload, facts) => !isPermanent(payload) && matches(payload, facts),
})
/** Delivered, or failed for good and passing the test. */
const final = (matches: (payload: Payload) => boolean): MetricEvents => ({
  events: ['delivered', 'failed'],
  matches: (payload) => payload['event'] === 'delivered' || (isPermanent(payload) && matches(payload)),
})
const permanentFor = (reason: string) => permanent((payload) => payload['reason'] === reason)
/** A breakdown of permanent failures, which delayed bounces do not count in. */
const atOnce = (matches: (payload: Payload) => boolean) =>
  permanent((payload) => !isDelayed(payload) && matches(payload))

const isEspBlock = ({ reason }: Payload) => reason === 'espblock'
const temporaryEspBlock = temporary(isEspBlock)

export const METRIC_EVENTS = {
  accepted_incoming: accepted(isIncoming),
  accepted_outgoing: accepted((payload) => !isIncoming(payload)),
  accepted: all('accepted'),
  delivered_smtp: delivered((payload) => !isHttp(payload)),
  delivered_http: delivered(isHttp),
  delivered_optimized: delivered((payload) => !isHttp(payload) && isOptimized(payload)),
  delivered: all('delivered'),
  stored: all('stored'),
  opened: all('opened'),
  clicked: all('clicked'),
  unique_opened: unique('opened'),
  unique_clicked: unique('clicked'),
  complained: all('complained'),
  unsubscribed: all('unsubscribed'),
  failed: all('failed'),
  temporary_failed: temporary(() => true),
  permanent_failed: permanent(),
  processed: final((payload) => !isCallback(payload) && !isDelayed(payload)),
  sent: final((payload) => !isSuppressed(payload)),
  bounced: permanent((payload) => !isSuppressed(payload)),
  hard_bounces: atOnce(({ reason }) => reason === 'bounce'),
  soft_bounces: atOnce(({ reason }) => SOFT_REASONS.has(reason)),
  delayed_bounce: permanent(isDelayed),
  suppressed_bounces: permanentFor('suppress-bounce'),
  suppressed_unsubscribed: permanentFor('suppress-unsubscribe'),
  suppressed_complaints: permanentFor('suppress-complaint'),
  permanent_failed_old: permanentFor('old'),
  permanent_failed_optimized: atOnce((payload) => payload['reason'] === 'bounce' && isOptimized(payload)),
  esp_block: temporaryEspBlock,
  temporary_failed_esp_block: temporaryEspBlock,
  permanent_failed_esp_block: permanent(isEspBlock),
  webhook_failure: permanent(isCallback),
  rate_limit: temporary((payload, { isRateLimit }) => {
    const ruleId = payload['i-classification-rule-id']
    return typeof ruleId === 'string' && isRateLimit(ruleId)
  }),
  delivered_first_attempt: delivered((payload) => attemptOf(payload) === 1),
  delivered_two_plus_attempts: delivered((payload) => attemptOf(payload) >= 2),
} as const satisfies Record<string, MetricEvents>

export type MetricEventName = keyof typeof METRIC_EVENTS

export const METRIC_EVENT_NAMES = Object.keys(METRIC_EVENTS) as MetricEventName[]

/** Whether the metric counts this event; a `unique_` one among all opens or clicks, of which not all are unique. */
export function isCounted(
  name: MetricEventName,
  event: string,
  payload: Payload,
  facts: MetricFacts,
): boolean {
  const metric: MetricEvents = METRIC_EVENTS[name]
  if (!metric.events.some((known) => known === event)) return false
  return metric.matches?.({ ...payload, event }, facts) ?? true
}
