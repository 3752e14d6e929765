/** Reads the request of the metrics operations (metrics-logs.md section 1). */
import { BadRequest } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { invalidFormat, isPlainObject, quotable } from '../../base/values.ts'
import { type Attribute, DIMENSIONS, type Dimension, type FilterEntry } from './figures.ts'
import { before, startOf, UNITS, type Unit } from './intervals.ts'
import type { MetricSet } from './metric-sets.ts'
import {
  conditionsOf,
  dateOf,
  directionOf,
  isTrue,
  namesOf,
  numberOf,
  oneOf,
  pageLimitOf,
  textOf,
} from './request-fields.ts'

export interface MetricsRequest {
  /** Unix milliseconds, starts of the first and of the last interval, both included. */
  start: number
  end: number
  resolution: Unit
  /** As asked, else in days. */
  duration: string
  dimensions: Dimension[]
  /** Distinct names of the set. */
  metrics: string[]
  filter: FilterEntry[]
  includeSubaccounts: boolean
  includeAggregates: boolean
  sort: { column: string; descending: boolean; asked: string }
  skip: number
  limit: number
}

const DEFAULT_DAYS = 7
/** Rule 15. */
const DIMENSIONS_MAX = 3
/** Rule 13. */
const LIMITS = { plain: { otherwise: 10, maximum: 1000 }, byTime: { otherwise: 1500, maximum: 1500 } }
export const ATTRIBUTES = DIMENSIONS.filter((name): name is Attribute => name !== 'time')
/** The response's dates have four-digit years. */
const TIME_END = Date.UTC(10_000, 0, 1)

const DURATION_UNITS = { h: 'hour', d: 'day', m: 'month' } as const

/** @throws BadRequest naming what is not understood (rules 13, 15, 16) */
export function readMetricsRequest(document: unknown, now: number, set: MetricSet): MetricsRequest {
  const body = isPlainObject(document) ? document : {}
  const resolution = oneOf('resolution', textOf(body['resolution']) || 'day', UNITS)
  const dimensions = namesOf('dimension', body['dimensions'], set.dimensions)
  if (dimensions.length > DIMENSIONS_MAX) throw new BadRequest(`more than ${DIMENSIONS_MAX} dimensions`)
  const asked = namesOf('metric', body['metrics'], set.names)
  const metrics = asked.length > 0 ? asked : [...set.names]
  const pagination = isPlainObject(body['pagination']) ? body['pagination'] : {}
  const limits = dimensions.includes('time') ? LIMITS.byTime : LIMITS.plain
  return {
    ...rangeOf(body, now, resolution),
    resolution,
    dimensions,
    metrics,
    filter: conditionsOf(body['filter'], ATTRIBUTES),
    includeSubaccounts: isTrue(body['include_subaccounts']),
    includeAggregates: isTrue(body['include_aggregates']),
    sort: sortOf(textOf(pagination['sort']), dimensions, metrics),
    skip: numberOf('skip', pagination['skip'], 0),
    limit: pageLimitOf(pagination['limit'], limits.otherwise, limits.maximum),
  }
}

/** Rules 1 to 5. */
function rangeOf(body: Record<string, unknown>, now: number, resolution: Unit) {
  const last = timeOf('end', body['end']) ?? now
  const asked = textOf(body['duration'])
  const first =
    asked === '' ? (timeOf('start', body['start']) ?? last - DEFAULT_DAYS * DAY_MS) : backFrom(last, asked)
  if (first > last) throw new BadRequest('start must not be after end')
  const [start, end] = [startOf(resolution, first), startOf(resolution, last)]
  return { start, end, duration: asked || `${Math.floor((end - start) / DAY_MS)}d` }
}

function timeOf(name: string, value: unknown): number | undefined {
  const time = dateOf(name, value)
  if (time !== undefined && time >= TIME_END) throw invalidFormat(name, String(value))
  return time
}

/** Nothing is older than 1970. */
function backFrom(last: number, text: string): number {
  const match = /^(\d{1,9})([hdm])$/.exec(text)
  if (!match) throw invalidFormat('duration', text)
  const time = before(DURATION_UNITS[match[2] as 'h'], last, Number(match[1]))
  return time > 0 ? time : 0
}

/** Rule 12. */
function sortOf(
  asked: string,
  dimensions: readonly Dimension[],
  metrics: readonly string[],
): MetricsRequest['sort'] {
  if (asked === '') {
    if (dimensions.includes('time')) return { column: 'time', descending: false, asked }
    return { column: metrics[0] as string, descending: true, asked }
  }
  const { name, descending } = directionOf(asked)
  const column = name === 'timestamp' ? 'time' : name
  if (![...dimensions, ...metrics].includes(column)) throw new BadRequest(`invalid sort: ${quotable(asked)}`)
  return { column, descending, asked }
}
