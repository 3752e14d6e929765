/** Reads the request of the metrics operation (bounce-classification.md section 3; metrics-logs.md section 1). */

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Condition as ConditionOn } from '../../watching/metrics/filter.ts'
import { type Request, readRequest } from '../../watching/metrics/request.ts'

export const DIMENSIONS = [
  'entity-name',
  'domain.name',
  'envelope.sending-ip',
  'account.name',
  'envelope.i-ip-pool-name',
  'tags',
  'tag',
  'recipient-domain',
  'group-id',
  'criticality',
  'severity',
  'category',
  'timestamp',
] as const
export type Dimension = (typeof DIMENSIONS)[number]
export type Attribute = Exclude<Dimension, 'timestamp'>
const ATTRIBUTES = DIMENSIONS.filter((name): name is Attribute => name !== 'timestamp')

export const METRICS = [
  'critical_bounce_count',
  'non_critical_bounce_count',
  'critical_delay_count',
  'non_critical_delay_count',
  'classified_failures_count',
  'delivered_smtp_count',
  'critical_bounce_rate',
  'non_critical_bounce_rate',
  'critical_delay_rate',
  'non_critical_delay_rate',
] as const
export type Metric = (typeof METRICS)[number]

export type Condition = ConditionOn<Attribute>

export interface MetricsQuery extends Omit<Request<Dimension, Attribute, Metric, 'day' | 'hour'>, 'metrics'> {
  unitMs: number
}

const UNIT_MS = { hour: HOUR_MS, day: DAY_MS } as const
/** A decade: more than anything is kept. */
const DURATION_MAX_MS = 3_653 * DAY_MS

/**
 * @param keepMs how long failures are kept
 * @throws BadRequest naming what is not understood, or for a range that ends before everything that is kept
 */
export function readMetricsQuery(document: unknown, now: number, keepMs: number): MetricsQuery {
  const { metrics: _, ...query } = readRequest(document, now, {
    dimensions: DIMENSIONS,
    dimensionsMax: DIMENSIONS.length,
    time: 'timestamp',
    attributes: ATTRIBUTES,
    metrics: METRICS,
    sortMetric: 'classified_failures_count',
    resolutions: ['day', 'hour'],
    limits: () => ({ otherwise: 10, maximum: 50 }),
    backFrom: (end, duration) => end - durationOf(duration),
    keptSince: now - keepMs,
    unknownSort: () => 'sort should be either one of metrics or dimensions',
  })
  return { ...query, unitMs: UNIT_MS[query.resolution] }
}

/** `48h`, `60m` (minutes here), `30s`, `24h0m0s`; days too, as the other metrics have them. */
function durationOf(text: string): number {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?$/.exec(text)
  if (!match) throw invalidFormat('duration', text)
  const units = [DAY_MS, HOUR_MS, MINUTE_MS, 1000]
  const all = units.reduce((sum, unit, at) => sum + unit * Number(match[at + 1] ?? 0), 0)
  if (all > DURATION_MAX_MS) throw invalidFormat('duration', text)
  return all
}
