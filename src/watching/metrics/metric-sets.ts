/** The metrics that an operation serves, and their values (metrics-logs.md section 3). */
import type { Counts } from './counters.ts'
import { countOf, DIMENSIONS, type Dimension, isRate, METRICS, type Metric, rateOf } from './figures.ts'

export interface MetricSet {
  names: readonly string[]
  dimensions: readonly Dimension[]
  /** The figure that a name stands for; null: its value is a count of usage (usage.ts), 0 without one. */
  metricOf(name: string): Metric | null
}

const OLD_NAMES: Readonly<Record<string, Metric>> = { esp_block_count: 'temporary_failed_esp_block_count' }

export const ACCOUNT_METRICS: MetricSet = {
  names: [...METRICS, ...Object.keys(OLD_NAMES)],
  dimensions: DIMENSIONS,
  metricOf: (name) => OLD_NAMES[name] ?? (name as Metric),
}

export const USAGE_METRICS: MetricSet = {
  names: [
    'accessibility_count',
    'accessibility_failed_count',
    'archived_count',
    'domain_blocklist_monitoring_count',
    'email_preview_count',
    'email_preview_failed_count',
    'email_validation_bulk_count',
    'email_validation_count',
    'email_validation_list_count',
    'email_validation_mailgun_count',
    'email_validation_mailjet_count',
    'email_validation_public_count',
    'email_validation_single_count',
    'email_validation_valid_count',
    'image_validation_count',
    'image_validation_failed_count',
    'ip_blocklist_monitoring_count',
    'link_validation_count',
    'link_validation_failed_count',
    'processed_count',
    'seed_test_count',
  ],
  dimensions: ['subaccount', 'time'],
  metricOf: (name) => (name === 'processed_count' || name === 'archived_count' ? name : null),
}

/** Rule 8: rates with four decimals, rounded half up. Null: mail has no address when it is accepted. */
export function metricValue(
  metric: Metric,
  counts: Counts,
  dimensions: readonly Dimension[],
): number | string | null {
  if (isRate(metric)) return rateText(rateOf(metric, counts))
  const isAccepted = metric.startsWith('accepted_')
  const byAddress = dimensions.some((name) => name === 'ip' || name === 'ip_pool')
  return isAccepted && byAddress ? null : countOf(metric, counts)
}

/** The product is rounded to what a double holds, so that 0.00005 is not a little less. */
const rateText = (rate: number) =>
  (Math.floor(Number((rate * 10_000).toPrecision(15)) + 0.5) / 10_000).toFixed(4)
