/** Reads the request of the metrics operation (bounce-classification.md section 3; metrics-logs.md section 1). */

import { BadRequest } from '../../base/process/errors.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { invalidFormat, isPlainObject } from '../../base/values.ts'
import {
  type Condition as ConditionOn,
  conditionsOf,
  dateOf,
  directionOf,
  isTrue,
  namesOf,
  numberOf,
  oneOf,
  pageLimitOf,
  textOf,
} from '../../watching/metrics/request-fields.ts'

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

export interface MetricsQuery {
  /** Unix milliseconds, rounded down to the unit; `end` is the start of the last interval, which counts in full. */
  start: number
  end: number
  resolution: 'day' | 'hour'
  unitMs: number
  /** As asked; null: not given. */
  duration: string | null
  dimensions: Dimension[]
  filter: Condition[]
  includeSubaccounts: boolean
  sort: { column: Dimension | Metric; descending: boolean; asked: string }
  skip: number
  limit: number
}

const UNIT_MS = { hour: HOUR_MS, day: DAY_MS } as const
const DEFAULT_DAYS = 7
const LIMIT_DEFAULT = 10
const LIMIT_MAX = 50
/** A decade: more than anything is kept. */
const DURATION_MAX_MS = 3_653 * UNIT_MS.day

/**
 * @param keepMs how long failures are kept
 * @throws BadRequest naming what is not understood, or for a range that ends before everything that is kept
 */
export function readMetricsQuery(document: unknown, now: number, keepMs: number): MetricsQuery {
  const body = isPlainObject(document) ? document : {}
  const resolution = oneOf('resolution', textOf(body['resolution']) || 'day', ['day', 'hour'] as const)
  const unitMs = UNIT_MS[resolution]
  const cut = (time: number) => Math.floor(time / unitMs) * unitMs
  const end = dateOf('end', body['end']) ?? now
  const duration = textOf(body['duration'])
  const from = duration
    ? end - durationOf(duration)
    : (dateOf('start', body['start']) ?? end - DEFAULT_DAYS * UNIT_MS.day)
  if (from > end) throw new BadRequest('start must not be after end')
  if (cut(end) + unitMs <= now - keepMs) {
    throw new BadRequest(`${formatRfc2822(new Date(from))} is out of permitted log retention`)
  }
  const dimensions = namesOf('dimension', body['dimensions'], DIMENSIONS)
  const metrics = namesOf('metric', body['metrics'], METRICS)
  const pagination = isPlainObject(body['pagination']) ? body['pagination'] : {}
  return {
    start: cut(from),
    end: cut(end),
    resolution,
    unitMs,
    duration: duration || null,
    dimensions,
    filter: conditionsOf(body['filter'], ATTRIBUTES),
    includeSubaccounts: isTrue(body['include_subaccounts']),
    sort: sortOf(textOf(pagination['sort']), dimensions, metrics),
    skip: numberOf('skip', pagination['skip'], 0),
    limit: pageLimitOf(pagination['limit'], LIMIT_DEFAULT, LIMIT_MAX),
  }
}

/** `48h`, `60m` (minutes here), `30s`, `24h0m0s`; days too, as the other metrics have them. */
function durationOf(text: string): number {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?$/.exec(text)
  if (!match || text === '') throw invalidFormat('duration', text)
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0)) as number[]
  const all =
    (days ?? 0) * UNIT_MS.day +
    (hours ?? 0) * UNIT_MS.hour +
    (minutes ?? 0) * MINUTE_MS +
    (seconds ?? 0) * 1000
  if (all > DURATION_MAX_MS) throw invalidFormat('duration', text)
  return all
}

/** Default: by time where time is asked, else most of the first asked metric first (metrics-logs.md rule 12). */
function sortOf(
  asked: string,
  dimensions: readonly Dimension[],
  metrics: readonly Metric[],
): MetricsQuery['sort'] {
  if (asked === '') {
    if (dimensions.includes('timestamp')) return { column: 'timestamp', descending: false, asked }
    return { column: metrics[0] ?? 'classified_failures_count', descending: true, asked }
  }
  const { name, descending } = directionOf(asked)
  const column = [...dimensions, ...(metrics.length > 0 ? metrics : METRICS)].find((known) => known === name)
  if (column === undefined) throw new BadRequest('sort should be either one of metrics or dimensions')
  return { column, descending, asked }
}
