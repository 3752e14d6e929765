/**
 * Figures of sending: counts of events by up to three dimensions (metrics-logs.md sections 1 to 3). This file is what
 * other areas use; storage/figure-store.ts keeps them.
 */
import type { Counts } from './counters.ts'
import type { Condition } from './filter.ts'
import type { Unit } from './intervals.ts'
import { type Compare, comparing } from './order.ts'

export const DIMENSIONS = [
  'time',
  'domain',
  'subaccount',
  'ip',
  'ip_pool',
  'tag',
  'recipient_domain',
  'recipient_provider',
  'country',
  'device',
  'bot',
] as const
export type Dimension = (typeof DIMENSIONS)[number]
/** What can be filtered. */
export type Attribute = Exclude<Dimension, 'time'>

export type FilterEntry = Condition<Attribute>

export interface FigureQuery {
  accountIds: readonly string[]
  /** Unix milliseconds, inclusive; rounded down to an interval of the resolution. */
  startMs: number
  /** Unix milliseconds, exclusive; rounded up to an interval of the resolution. */
  endMs: number
  resolution: Unit
  /** Distinct, at most three. */
  dimensions: readonly Dimension[]
  /** All entries must match. */
  filter: readonly FilterEntry[]
  /** What the counts are for; those that no formula of these needs may be 0. Default: all. */
  metrics?: readonly Metric[]
}

export interface FigureRow {
  /**
   * In the order of the query's dimensions: names as they are stored, for `subaccount` the account's id, for `time` the
   * start of the interval in Unix milliseconds. An event without the value has the one of section 2, such as `none`.
   */
  values: readonly string[]
  counts: Counts
  /** Counts of what is no event, by name of metric. */
  usage?: Readonly<Record<string, number>>
}

/** By a dimension or a metric; ties by the values of the dimensions. */
export interface FigureOrder {
  by: Dimension | Metric
  descending: boolean
}

/** Items `skip` to `skip + limit` of an order. */
export interface Paging {
  order: FigureOrder
  skip: number
  limit: number
  /** Whether `sum` is wanted. */
  withSum: boolean
}

export interface FigurePage {
  /** In order. */
  rows: FigureRow[]
  /** Items before paging. */
  total: number
  /** The sum of all items, those of other pages included; zeros if it is not wanted. */
  sum: Counts
}

export interface Figures {
  /**
   * One row for each combination of values with an event, in no order; without dimensions one row, of zeros if there was no event.
   * @throws BadRequest for a query with more rows than can be held, or that would read too much
   */
  read(query: FigureQuery): Promise<FigureRow[]>
}

export interface PagedFigures extends Figures {
  /**
   * The rows of a page, without holding those of other pages where that can be avoided.
   * @throws BadRequest for a query with more rows up to the end of the page than can be held, or that would read too much
   */
  page(query: FigureQuery, paging: Paging): Promise<FigurePage>
}

type Formula = (counts: Counts) => number

const delivered: Formula = (c) => c.delivered_smtp + c.delivered_http
const suppressed: Formula = (c) =>
  c.failed_suppress_bounce + c.failed_suppress_unsubscribe + c.failed_suppress_complaint

/** Section 3, in its order. */
const COUNT_METRICS = {
  accepted_incoming_count: (c) => c.accepted_incoming,
  accepted_outgoing_count: (c) => c.accepted_outgoing,
  accepted_count: (c) => c.accepted_incoming + c.accepted_outgoing,
  delivered_smtp_count: (c) => c.delivered_smtp,
  delivered_http_count: (c) => c.delivered_http,
  delivered_optimized_count: (c) => c.delivered_optimized,
  delivered_count: delivered,
  stored_count: (c) => c.stored,
  permanent_failed_count: (c) => c.failed_permanent,
  temporary_failed_count: (c) => c.failed_temporary,
  failed_count: (c) => c.failed_permanent + c.failed_temporary,
  suppressed_bounces_count: (c) => c.failed_suppress_bounce,
  suppressed_unsubscribed_count: (c) => c.failed_suppress_unsubscribe,
  suppressed_complaints_count: (c) => c.failed_suppress_complaint,
  bounced_count: (c) => c.failed_permanent - suppressed(c),
  hard_bounces_count: (c) => c.failed_bounce,
  soft_bounces_count: (c) => c.failed_soft,
  delayed_bounce_count: (c) => c.failed_delayed_bounce,
  permanent_failed_old_count: (c) => c.failed_old,
  permanent_failed_optimized_count: (c) => c.failed_optimized,
  temporary_failed_esp_block_count: (c) => c.failed_temporary_espblock,
  permanent_failed_esp_block_count: (c) => c.failed_permanent_espblock,
  rate_limit_count: (c) => c.rate_limited,
  webhook_count: (c) => c.failed_webhook,
  processed_count: (c) => delivered(c) + c.failed_permanent - c.failed_webhook - c.failed_delayed_bounce,
  sent_count: (c) => delivered(c) + c.failed_permanent - suppressed(c),
  opened_count: (c) => c.opened,
  clicked_count: (c) => c.clicked,
  unsubscribed_count: (c) => c.unsubscribed,
  complained_count: (c) => c.complained,
  unique_opened_count: (c) => c.opened_unique,
  unique_clicked_count: (c) => c.clicked_unique,
  delivered_first_attempt_count: (c) => c.delivered_first,
  delivered_two_plus_attempts_count: (c) => c.delivered_later,
  delivered_subsequent_count: (c) => c.delivered_later,
  delayed_first_attempt_count: (c) => c.delivered_later + c.failed_old,
} as const satisfies Record<string, Formula>

/** Only usage metrics have these. */
const USAGE_COUNTS = {
  archived_count: (c) => c.archived,
} as const satisfies Record<string, Formula>

const COUNTS = { ...COUNT_METRICS, ...USAGE_COUNTS }
export type CountMetric = keyof typeof COUNTS

/** Numerator and denominator. */
export const RATES = {
  delivered_rate: ['delivered_count', 'sent_count'],
  opened_rate: ['opened_count', 'delivered_count'],
  clicked_rate: ['clicked_count', 'delivered_count'],
  unique_opened_rate: ['unique_opened_count', 'delivered_count'],
  unique_clicked_rate: ['unique_clicked_count', 'delivered_count'],
  unsubscribed_rate: ['unsubscribed_count', 'delivered_count'],
  complained_rate: ['complained_count', 'delivered_count'],
  bounce_rate: ['bounced_count', 'processed_count'],
  hard_bounce_rate: ['hard_bounces_count', 'processed_count'],
  soft_bounce_rate: ['soft_bounces_count', 'processed_count'],
  permanent_fail_rate: ['permanent_failed_count', 'processed_count'],
  temporary_fail_rate: ['temporary_failed_count', 'processed_count'],
  fail_rate: ['failed_count', 'processed_count'],
  delayed_rate: ['delivered_two_plus_attempts_count', 'delivered_count'],
  delayed_first_attempt_rate: ['delayed_first_attempt_count', 'sent_count'],
} as const satisfies Record<string, readonly [CountMetric, CountMetric]>
export type RateMetric = keyof typeof RATES

export type Metric = CountMetric | RateMetric
/** Account metrics. */
export const METRICS = [...Object.keys(COUNT_METRICS), ...Object.keys(RATES)] as Metric[]

export const isRate = (metric: Metric): metric is RateMetric => Object.hasOwn(RATES, metric)

/** The counters that some formulas read. */
export function countersFor(metrics: readonly Metric[]): (keyof Counts)[] {
  const read = new Set<keyof Counts>()
  const observed = new Proxy({} as Counts, {
    get(_, name) {
      read.add(name as keyof Counts)
      return 0
    },
  })
  for (const metric of metrics)
    for (const count of isRate(metric) ? RATES[metric] : [metric]) countOf(count, observed)
  return [...read]
}

export const countOf = (metric: CountMetric, counts: Counts): number => COUNTS[metric](counts)

/** A fraction, not rounded; above 1 for openings of mail delivered before the range. 0 where there is nothing to divide by. */
export function rateOf(metric: RateMetric, counts: Counts): number {
  const volume = volumeOf(metric, counts)
  return volume === 0 ? 0 : countOf(RATES[metric][0], counts) / volume
}

/** The denominator of a rate. */
export const volumeOf = (metric: RateMetric, counts: Counts): number => countOf(RATES[metric][1], counts)

/** For sorting. */
export const numberOf = (metric: Metric, counts: Counts): number =>
  isRate(metric) ? rateOf(metric, counts) : countOf(metric, counts)

export function comparingRows(
  dimensions: readonly Dimension[],
  { by, descending }: FigureOrder,
): Compare<FigureRow> {
  const dimension = dimensions.find((name) => name === by)
  return comparing(dimensions, dimension ?? (({ counts }) => numberOf(by as Metric, counts)), descending)
}

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

/** Known from the first attempt on: mail has no sending address and no MX host yet when it is accepted (decision 234). */
const KNOWN_AT_ATTEMPT: ReadonlySet<Dimension> = new Set(['ip', 'ip_pool', 'recipient_provider'])

/**
 * Rule 8: rates with four decimals, rounded half up. Null: accepted mail cannot be counted so. `by`: what the counts are split or
 * filtered by.
 */
export function metricValue(
  metric: Metric,
  counts: Counts,
  by: readonly Dimension[],
): number | string | null {
  if (isRate(metric)) return rateText(rateOf(metric, counts))
  const isUnknown = metric.startsWith('accepted_') && by.some((name) => KNOWN_AT_ATTEMPT.has(name))
  return isUnknown ? null : countOf(metric, counts)
}

/** The product is rounded to what a double holds, so that 0.00005 is not a little less. */
const rateText = (rate: number) =>
  (Math.floor(Number((rate * 10_000).toPrecision(15)) + 0.5) / 10_000).toFixed(4)
