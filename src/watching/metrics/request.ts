/** Reads the requests for metrics (metrics-logs.md section 1; bounce-classification.md section 3). */
import { BadRequest } from '../../base/process/errors.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { invalidFormat, isPlainObject, jsonText, quotable } from '../../base/values.ts'
import { type Attribute, DIMENSIONS, type Dimension, type MetricSet } from './figures.ts'
import { COMPARATORS, type Condition } from './filter.ts'
import { after, before, parseDuration, startOf, TIME_END, UNITS, type Unit } from './intervals.ts'
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

export interface Request<D extends string, A extends string, M extends string, U extends Unit> {
  /** Unix milliseconds, starts of the first and of the last interval, both included. */
  start: number
  end: number
  resolution: U
  /** As asked; null: not given. */
  duration: string | null
  dimensions: D[]
  /** Distinct; as asked, else all. */
  metrics: M[]
  filter: Condition<A>[]
  includeSubaccounts: boolean
  sort: { column: D | M; descending: boolean; asked: string }
  skip: number
  limit: number
}

/** What an operation serves. */
interface RequestRules<D extends string, A extends string, M extends string, U extends Unit> {
  dimensions: readonly D[]
  dimensionsMax: number
  /** The dimension that is time; items are in its order by default. */
  time: D
  attributes: readonly A[]
  metrics: readonly M[]
  /** By which items are sorted where no metric is asked for. */
  sortMetric: M
  resolutions: readonly U[]
  limits(byTime: boolean): { otherwise: number; maximum: number }
  /** The time so long before the end, in Unix milliseconds. @throws BadRequest */
  backFrom(end: number, duration: string): number
  /** Unix milliseconds: ranges that end before it are refused. */
  keptSince: number
  /** What is said of a column that is neither a dimension nor a metric of the request. */
  unknownSort(asked: string): string
}

const DEFAULT_DAYS = 7

/** @throws BadRequest naming what is not understood (rules 13, 15, 16) */
export function readRequest<D extends string, A extends string, M extends string, U extends Unit>(
  document: unknown,
  now: number,
  rules: RequestRules<D, A, M, U>,
): Request<D, A, M, U> {
  const body = isPlainObject(document) ? document : {}
  const resolution = oneOf('resolution', textOf(body['resolution']) || 'day', rules.resolutions)
  const dimensions = namesOf('dimension', body['dimensions'], rules.dimensions)
  if (dimensions.length > rules.dimensionsMax)
    throw new BadRequest(`more than ${rules.dimensionsMax} dimensions`)
  const asked = namesOf('metric', body['metrics'], rules.metrics)
  const metrics = asked.length > 0 ? asked : [...rules.metrics]
  const pagination = isPlainObject(body['pagination']) ? body['pagination'] : {}
  const limits = rules.limits(dimensions.includes(rules.time))
  return {
    ...rangeOf(body, now, resolution, rules),
    resolution,
    dimensions,
    metrics,
    filter: conditionsOf(body['filter'], {
      attributeOf: (name) => rules.attributes.find((known) => known === name),
      comparators: COMPARATORS,
      textOf: jsonText,
      supports: () => true,
    }),
    includeSubaccounts: isTrue(body['include_subaccounts']),
    sort: sortOf(textOf(pagination['sort']), dimensions, metrics, asked[0] ?? rules.sortMetric, rules),
    skip: numberOf('skip', pagination['skip'], 0),
    limit: pageLimitOf(pagination['limit'], limits.otherwise, limits.maximum),
  }
}

/** Rules 1 to 5. */
function rangeOf(
  body: Record<string, unknown>,
  now: number,
  resolution: Unit,
  { backFrom, keptSince }: Pick<RequestRules<string, string, string, Unit>, 'backFrom' | 'keptSince'>,
) {
  const last = timeOf('end', body['end']) ?? now
  const duration = textOf(body['duration']) || null
  const first =
    duration === null
      ? (timeOf('start', body['start']) ?? last - DEFAULT_DAYS * DAY_MS)
      : backFrom(last, duration)
  if (first > last) throw new BadRequest('start must not be after end')
  const [start, end] = [startOf(resolution, first), startOf(resolution, last)]
  if (after(resolution, end) <= keptSince)
    throw new BadRequest(`${formatRfc2822(new Date(first))} is out of permitted log retention`)
  return { start, end, duration }
}

function timeOf(name: string, value: unknown): number | undefined {
  const time = dateOf(name, value)
  if (time !== undefined && time >= TIME_END) throw invalidFormat(name, String(value))
  return time
}

/** Rule 12. */
function sortOf<D extends string, M extends string>(
  asked: string,
  dimensions: readonly D[],
  metrics: readonly M[],
  first: M,
  { time, unknownSort }: { time: D; unknownSort(asked: string): string },
): { column: D | M; descending: boolean; asked: string } {
  if (asked === '') {
    const byTime = dimensions.includes(time)
    return { column: byTime ? time : first, descending: !byTime, asked }
  }
  const { name, descending } = directionOf(asked)
  const wanted = name === 'timestamp' ? time : name
  const column = [...dimensions, ...metrics].find((known) => known === wanted)
  if (column === undefined) throw new BadRequest(unknownSort(asked))
  return { column, descending, asked }
}

/** A request for figures of sending, or of usage. */
export type MetricsRequest = Request<Dimension, Attribute, string, Unit> & {
  /** As asked, else in days. */
  duration: string
  includeAggregates: boolean
}

export const ATTRIBUTES = DIMENSIONS.filter((name): name is Attribute => name !== 'time')

export function readMetricsRequest(document: unknown, now: number, set: MetricSet): MetricsRequest {
  const request = readRequest(document, now, {
    dimensions: set.dimensions,
    // Rule 15.
    dimensionsMax: 3,
    time: 'time',
    attributes: ATTRIBUTES,
    metrics: set.names,
    sortMetric: set.names[0] as string,
    resolutions: UNITS,
    // Rule 13.
    limits: (byTime) => (byTime ? { otherwise: 1500, maximum: 1500 } : { otherwise: 10, maximum: 1000 }),
    backFrom,
    keptSince: Number.NEGATIVE_INFINITY,
    unknownSort: (asked) => `invalid sort: ${quotable(asked)}`,
  })
  const days = Math.floor((request.end - request.start) / DAY_MS)
  const includeAggregates = isPlainObject(document) && isTrue(document['include_aggregates'])
  return { ...request, duration: request.duration ?? `${days}d`, includeAggregates }
}

/** Nothing is older than 1970. */
function backFrom(last: number, text: string): number {
  const { count, unit } = parseDuration(text)
  const time = before(unit, last, count)
  return time > 0 ? time : 0
}
