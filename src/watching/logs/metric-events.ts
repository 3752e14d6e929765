/**
 * The events that a metric counts, by the name of the metric without `_count`: those that its formula counts
 * (metrics/figures.ts). What is unique among opens and clicks depends on earlier events, which the caller looks at.
 */
import type { EventName } from '../events/event.ts'
import { countersOf, noCounts, type Payload } from '../metrics/counters.ts'
import { type CountMetric, countOf } from '../metrics/figures.ts'

export interface MetricFacts {
  /** Whether the rule that classified a reply stands for a limit of the receiver's rate. */
  isRateLimit(ruleId: string): boolean
}

/** Only these can count. */
export const METRIC_EVENTS = {
  accepted_incoming: ['accepted'],
  accepted_outgoing: ['accepted'],
  accepted: ['accepted'],
  delivered_smtp: ['delivered'],
  delivered_http: ['delivered'],
  delivered_optimized: ['delivered'],
  delivered: ['delivered'],
  stored: ['stored'],
  opened: ['opened'],
  clicked: ['clicked'],
  unique_opened: ['opened'],
  unique_clicked: ['clicked'],
  complained: ['complained'],
  unsubscribed: ['unsubscribed'],
  failed: ['failed'],
  temporary_failed: ['failed'],
  permanent_failed: ['failed'],
  processed: ['delivered', 'failed'],
  sent: ['delivered', 'failed'],
  bounced: ['failed'],
  hard_bounces: ['failed'],
  soft_bounces: ['failed'],
  delayed_bounce: ['failed'],
  suppressed_bounces: ['failed'],
  suppressed_unsubscribed: ['failed'],
  suppressed_complaints: ['failed'],
  permanent_failed_old: ['failed'],
  permanent_failed_optimized: ['failed'],
  esp_block: ['failed'],
  temporary_failed_esp_block: ['failed'],
  permanent_failed_esp_block: ['failed'],
  webhook_failure: ['failed'],
  rate_limit: ['failed'],
  delivered_first_attempt: ['delivered'],
  delivered_two_plus_attempts: ['delivered'],
} as const satisfies Record<string, readonly EventName[]>

export type MetricEventName = keyof typeof METRIC_EVENTS
export const METRIC_EVENT_NAMES = Object.keys(METRIC_EVENTS) as MetricEventName[]

/** Whether only the first of its message, recipient and bot class within seven days counts. */
export const isUniqueMetric = (name: MetricEventName): boolean => name.startsWith('unique_')

/** Whether all events of its names count. */
export const isWhole = (name: MetricEventName): boolean => METRIC_EVENTS[name].some((event) => event === name)

/** Names of logs that are others than those of metrics. */
const OTHER_NAMES: Partial<Record<MetricEventName, CountMetric>> = {
  esp_block: 'temporary_failed_esp_block_count',
  webhook_failure: 'webhook_count',
}

/** Whether the metric counts this event; a `unique_` one among all opens or clicks, of which not all are unique. */
export function isCounted(
  name: MetricEventName,
  event: string,
  payload: Payload,
  { isRateLimit }: MetricFacts,
): boolean {
  if (!METRIC_EVENTS[name].some((known) => known === event)) return false
  if (isWhole(name) || isUniqueMetric(name)) return true
  const counts = noCounts()
  for (const counter of countersOf(event, payload, isRateLimit)) counts[counter]++
  return countOf(OTHER_NAMES[name] ?? (`${name}_count` as CountMetric), counts) > 0
}
