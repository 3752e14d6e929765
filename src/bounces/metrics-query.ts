/** Reads the request of the metrics operation (bounce-classification.md section 3; metrics-logs.md section 1). */
import { formatRfc2822, isGoZeroTime, parseDate } from '../base/dates.ts'
import { BadRequest } from '../base/errors.ts'
import { invalidFormat, isPlainObject, jsonText, quotable } from '../base/values.ts'

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

export const COMPARATORS = ['=', '!=', 'contains', 'not contains'] as const
export type Comparator = (typeof COMPARATORS)[number]

export interface Condition {
  attribute: Attribute
  comparator: Comparator
  /** Lower case. */
  values: string[]
}

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

const UNIT_MS = { hour: 3_600_000, day: 86_400_000 } as const
const DEFAULT_DAYS = 7
const LIMIT_DEFAULT = 10
const LIMIT_MAX = 50
const CONDITIONS_MAX = 20
const VALUES_MAX = 100
const VALUE_LENGTH_MAX = 500
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
  const dimensions = names('dimension', body['dimensions'], DIMENSIONS)
  const metrics = names('metric', body['metrics'], METRICS)
  const pagination = isPlainObject(body['pagination']) ? body['pagination'] : {}
  return {
    start: cut(from),
    end: cut(end),
    resolution,
    unitMs,
    duration: duration || null,
    dimensions,
    filter: conditionsOf(body['filter']),
    includeSubaccounts: body['include_subaccounts'] === true || body['include_subaccounts'] === 'true',
    sort: sortOf(textOf(pagination['sort']), dimensions, metrics),
    skip: numberOf('skip', pagination['skip'], 0),
    limit: limitOf(pagination['limit']),
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value.trim() : '')

function oneOf<const V extends string>(what: string, value: string, known: readonly V[]): V {
  const found = known.find((candidate) => candidate === value)
  if (found === undefined) throw new BadRequest(`invalid ${what}: ${quotable(value)}`)
  return found
}

function names<const V extends string>(what: string, value: unknown, known: readonly V[]): V[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new BadRequest(`${what}s must be a list`)
  return [...new Set(value.slice(0, 2 * known.length).map((name) => oneOf(what, jsonText(name), known)))]
}

function dateOf(name: string, value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : textOf(value)
  if (text === '') return undefined
  const date = parseDate(text)
  if (!date) throw invalidFormat(name, text)
  return isGoZeroTime(date) ? undefined : date.getTime()
}

/** `48h`, `60m` (minutes here), `30s`, `24h0m0s`; days too, as the other metrics have them. */
function durationOf(text: string): number {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,8})m)?(?:(\d{1,9})s)?$/.exec(text)
  if (!match || text === '') throw invalidFormat('duration', text)
  const [days, hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0)) as number[]
  const all =
    (days ?? 0) * UNIT_MS.day + (hours ?? 0) * UNIT_MS.hour + (minutes ?? 0) * 60_000 + (seconds ?? 0) * 1000
  if (all > DURATION_MAX_MS) throw invalidFormat('duration', text)
  return all
}

function numberOf(name: string, value: unknown, otherwise: number): number {
  if (value === undefined || value === null) return otherwise
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalidFormat(name, jsonText(value))
  return value as number
}

function limitOf(value: unknown): number {
  const limit = numberOf('limit', value, 0) || LIMIT_DEFAULT
  if (limit > LIMIT_MAX) throw new BadRequest(`limit must not exceed ${LIMIT_MAX}`)
  return limit
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
  const [name = '', order = 'asc', ...rest] = asked.split(':')
  const column = [...dimensions, ...(metrics.length > 0 ? metrics : METRICS)].find((known) => known === name)
  if (column === undefined) throw new BadRequest('sort should be either one of metrics or dimensions')
  if (!/^(asc|desc)$/i.test(order) || rest.length > 0) {
    throw new BadRequest(`invalid sort: ${quotable(asked)}`)
  }
  return { column, descending: order.toLowerCase() === 'desc', asked }
}

function conditionsOf(filter: unknown): Condition[] {
  const entries = isPlainObject(filter) ? filter['AND'] : undefined
  if (entries === undefined || entries === null) return []
  if (!Array.isArray(entries)) throw new BadRequest('filter.AND must be a list')
  if (entries.length > CONDITIONS_MAX) throw new BadRequest(`filter has more than ${CONDITIONS_MAX} entries`)
  return entries.map((entry: unknown) => {
    const { attribute, comparator, values } = isPlainObject(entry) ? entry : {}
    const name = oneOf('attribute', jsonText(attribute), DIMENSIONS)
    if (name === 'timestamp') throw new BadRequest('invalid attribute: timestamp')
    return {
      attribute: name,
      comparator: oneOf('comparator', jsonText(comparator), COMPARATORS),
      values: valuesOf(name, values),
    }
  })
}

/** `[{label?, value}]`, or the values as they are. */
function valuesOf(attribute: string, values: unknown): string[] {
  const found = (Array.isArray(values) ? values : []).map((entry: unknown) =>
    jsonText(isPlainObject(entry) ? entry['value'] : entry).toLowerCase(),
  )
  if (found.length === 0) throw new BadRequest(`filter ${attribute}: values must not be empty`)
  if (found.length > VALUES_MAX || found.some(({ length }) => length > VALUE_LENGTH_MAX)) {
    throw new BadRequest(
      `filter ${attribute}: at most ${VALUES_MAX} values of ${VALUE_LENGTH_MAX} characters`,
    )
  }
  return found
}
