/** The search parameters of the metrics page, and the spans and queries that they stand for. Pure. */
import type { MetricsFilter, MetricsQuery } from '../shared/charts/metrics-api.ts'
import { DAY_MS, floorTo, type Resolution } from '../shared/charts/spans.ts'

export const COUNTS = [
  { id: 'accepted', metric: 'accepted_count', color: 2, good: true },
  { id: 'delivered', metric: 'delivered_count', color: 1, good: true },
  { id: 'deferred', metric: 'temporary_failed_count', color: 7, good: false },
  { id: 'bounced', metric: 'bounced_count', color: 3, good: false },
  { id: 'suppressed', metric: 'suppressed_bounces_count', color: 8, good: false },
  { id: 'opened', metric: 'unique_opened_count', color: 4, good: true },
  { id: 'clicked', metric: 'unique_clicked_count', color: 6, good: true },
  { id: 'unsubscribed', metric: 'unsubscribed_count', color: 8, good: false },
  { id: 'complained', metric: 'complained_count', color: 5, good: false },
] as const

export type CountId = (typeof COUNTS)[number]['id']

export const RATES = [
  { id: 'delivery_rate', metric: 'delivered_rate', color: 1, good: true },
  { id: 'bounce_rate', metric: 'bounce_rate', color: 3, good: false },
  { id: 'open_rate', metric: 'unique_opened_rate', color: 4, good: true },
  { id: 'click_rate', metric: 'unique_clicked_rate', color: 6, good: true },
  { id: 'complaint_rate', metric: 'complained_rate', color: 5, good: false },
] as const

export const SHOWN = [...COUNTS, ...RATES] as const
export type ShownId = (typeof SHOWN)[number]['id']
export const isRate = (id: ShownId) => RATES.some((rate) => rate.id === id)

const SHOWN_MAX = 4 // more lines cannot be told apart
const DEFAULT_SHOWN: readonly ShownId[] = ['delivered', 'bounced', 'opened']

export const SPANS = ['24h', '7d', '14d', '30d', '90d', '12m'] as const
export type SpanName = (typeof SPANS)[number]

export const DIMENSIONS = [
  'recipient_provider',
  'domain',
  'tag',
  'recipient_domain',
  'country',
  'device',
  'bot',
  'ip',
  'ip_pool',
  'subaccount',
  'time',
] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** recipient providers that the service tells apart (metrics-logs.md section 2). */
export const PROVIDERS = [
  ...[
    'Gmail',
    'Google Workspace',
    'Outlook 365',
    'Outlook US',
    'Outlook EU',
    'Yahoo US',
    'Yahoo EU',
    'Apple',
  ],
  ...['Proton', 'Chinese', 'French', 'German', 'Italian', 'UK', 'Canadian', 'Other US', 'Other EU', 'Other'],
] as const

export interface StatisticsSearch {
  /** Default 30d. */
  span?: SpanName
  /** First and last day of a span of one's own, `2026-01-31`; they replace `span`. */
  from?: string
  to?: string
  /** Ids of the curves, with commas. */
  show?: string
  by?: Dimension
  /** Beside the span before. */
  compare?: 'yes'
  /** Without opens and clicks of machines. */
  people?: 'yes'
  domain?: string
  provider?: string
  tag?: string
  /** What the picture by hour and weekday counts; without it the picture is closed. */
  week?: CountId
  /** The window that makes a link for others is open. */
  share?: 'yes'
  /** `<column>:<asc|desc>` of the table. */
  sort?: string
  /** Rows of the table that are skipped. */
  at?: string
}

/** Changes parameters of the URL; undefined removes one. */
export type Change = (
  changed: { [Name in keyof StatisticsSearch]?: StatisticsSearch[Name] | undefined },
) => void

const DAY = /^\d{4}-\d\d-\d\d$/

export function readStatisticsSearch(search: Record<string, unknown>): StatisticsSearch {
  const text = (name: string, form = /./) => {
    const value = search[name]
    return typeof value === 'string' && form.test(value) ? { [name]: value } : {}
  }
  const oneOf = (name: string, values: readonly string[]) =>
    values.includes(String(search[name])) ? { [name]: search[name] } : {}
  return {
    ...oneOf('span', SPANS),
    ...oneOf('by', DIMENSIONS),
    ...oneOf('compare', ['yes']),
    ...oneOf('people', ['yes']),
    ...oneOf('share', ['yes']),
    ...oneOf(
      'week',
      COUNTS.map(({ id }) => id),
    ),
    ...text('from', DAY),
    ...text('to', DAY),
    ...text('show'),
    ...text('domain'),
    ...text('provider'),
    ...text('tag'),
    ...text('sort', /^[a-z_]+:(?:asc|desc)$/),
    ...text('at', /^\d{1,6}$/),
  }
}

/** The curves to draw: known ones, no rate beside counts. */
export function shownOf(show: string | undefined): ShownId[] {
  const ids = (show ?? '')
    .split(',')
    .flatMap((id) => SHOWN.filter((one) => one.id === id).map((one) => one.id))
  const [first] = ids
  if (first === undefined) return [...DEFAULT_SHOWN]
  return [...new Set(ids.filter((id) => isRate(id) === isRate(first)))].slice(0, SHOWN_MAX)
}

/** `show` after a click on one of them. A rate and counts have no scale in common, so one replaces the others. */
export function toggled(shown: readonly ShownId[], id: ShownId): string {
  if (shown.includes(id)) return shown.length === 1 ? id : shown.filter((one) => one !== id).join(',')
  const kept = shown.filter((one) => isRate(one) === isRate(id))
  return [...kept.slice(-(SHOWN_MAX - 1)), id].join(',')
}

export interface Span {
  startMs: number
  endMs: number
  resolution: Resolution
}

const HOURS_BY_HOUR_MAX = 3 * 24
const DAYS_BY_DAY_MAX = 190

/** The span in intervals of the API, which are cut in UTC. */
export function spanOf({ span = '30d', from, to }: StatisticsSearch, nowMs: number): Span {
  if (from !== undefined && to !== undefined) {
    const startMs = Date.parse(`${from}T00:00:00Z`)
    const endMs = Math.min(Date.parse(`${to}T23:59:59Z`), Math.max(nowMs, startMs + DAY_MS))
    if (Number.isFinite(startMs) && Number.isFinite(endMs) && startMs < endMs) {
      const hours = (endMs - startMs) / 3_600_000
      const isRecent = nowMs - startMs < 60 * DAY_MS // hours are kept so long
      const resolution =
        hours <= HOURS_BY_HOUR_MAX && isRecent ? 'hour' : hours / 24 <= DAYS_BY_DAY_MAX ? 'day' : 'month'
      return { startMs, endMs, resolution }
    }
  }
  if (span === '24h')
    return { startMs: floorTo(nowMs, 'hour') - 23 * 3_600_000, endMs: nowMs, resolution: 'hour' }
  if (span === '12m') {
    const now = new Date(nowMs)
    return {
      startMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11, 1),
      endMs: nowMs,
      resolution: 'month',
    }
  }
  const days = Number.parseInt(span, 10)
  return { startMs: floorTo(nowMs, 'day') - (days - 1) * DAY_MS, endMs: nowMs, resolution: 'day' }
}

/** The span of as many intervals just before. */
export function spanBefore({ startMs, endMs, resolution }: Span): Span {
  if (resolution === 'month') {
    const [start, end] = [new Date(startMs), new Date(endMs)]
    const months =
      (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth() + 1
    return {
      startMs: Date.UTC(start.getUTCFullYear(), start.getUTCMonth() - months, 1),
      endMs: startMs - 1,
      resolution,
    }
  }
  const unit = resolution === 'hour' ? 3_600_000 : DAY_MS
  const intervals = Math.floor(endMs / unit) - Math.floor(startMs / unit) + 1
  return { startMs: startMs - intervals * unit, endMs: startMs - 1, resolution }
}

const equal = (attribute: string, value: string): MetricsFilter => ({
  attribute,
  comparator: '=',
  values: [{ value, label: '' }],
})

function rangeOf({ startMs, endMs, resolution }: Span, search: StatisticsSearch) {
  const filters = [
    ...(search.domain ? [equal('domain', search.domain)] : []),
    ...(search.provider ? [equal('recipient_provider', search.provider)] : []),
    ...(search.tag ? [equal('tag', search.tag)] : []),
    ...(search.people ? [equal('bot', 'None')] : []),
  ]
  return {
    start: String(Math.floor(startMs / 1000)),
    end: String(Math.floor(endMs / 1000)),
    resolution,
    ...(filters.length > 0 && { filter: { AND: filters } }),
    ...(search.by === 'subaccount' && { include_subaccounts: true }),
  }
}

export function curveQuery(span: Span, search: StatisticsSearch): MetricsQuery {
  const shown = shownOf(search.show)
  const metrics = SHOWN.filter(({ id }) => shown.includes(id)).map(({ metric }) => metric)
  return { ...rangeOf(span, search), dimensions: ['time'], metrics, include_aggregates: true }
}

const HOURS_KEPT_DAYS = 60

/** Counts by the hour, of what the service still has of them in the span; undefined: nothing. */
export function weekQuery(span: Span, search: StatisticsSearch, nowMs: number): MetricsQuery | undefined {
  const { week } = search
  const startMs = Math.max(span.startMs, floorTo(nowMs, 'hour') - HOURS_KEPT_DAYS * DAY_MS)
  const count = COUNTS.find(({ id }) => id === week)
  if (count === undefined || startMs >= span.endMs) return undefined
  return {
    ...rangeOf({ ...span, startMs, resolution: 'hour' }, search),
    dimensions: ['time'],
    metrics: [count.metric],
    pagination: { limit: (HOURS_KEPT_DAYS + 1) * 24 },
  }
}

/** Columns of the table. */
export const TABLE_COUNTS = COUNTS.filter(({ id }) => id !== 'suppressed')
export const ROWS_SHOWN = 25
/** The most that one response holds, for the file and for the span compared with. */
export const ROWS_MAX = 1_000

export function tableQuery(span: Span, search: StatisticsSearch, limit = ROWS_SHOWN): MetricsQuery {
  const { by = 'recipient_provider', at } = search
  const metrics = [
    ...TABLE_COUNTS.map(({ metric }) => metric as string),
    ...(limit === ROWS_MAX ? RATES.map(({ metric }) => metric) : ['delivered_rate', 'bounce_rate']),
  ]
  return {
    ...rangeOf(span, search),
    dimensions: [by],
    metrics,
    include_aggregates: true,
    pagination: {
      sort: sortOf(search),
      limit,
      ...(limit === ROWS_SHOWN && at !== undefined && { skip: Number(at) }),
    },
  }
}

/** So many intervals, and the one of now. */
const DURATIONS: Record<SpanName, string> = {
  '24h': '23h',
  '7d': '6d',
  '14d': '13d',
  '30d': '29d',
  '90d': '89d',
  '12m': '11m',
}
const SHARED_METRICS = ['delivered_count', 'delivered_rate', 'bounced_count', 'unique_opened_count']

/** What a link shows: the curves or the table, of the last days as they go by, or of days of one's own. */
export function shareQuery(span: Span, search: StatisticsSearch, what: 'chart' | 'table'): MetricsQuery {
  const { by = 'recipient_provider', from, to } = search
  const { include_subaccounts: _, start, end, ...range } = rangeOf(span, search)
  const isOwn = from !== undefined && to !== undefined
  const shown = shownOf(search.show)
  const metrics = SHOWN.filter(({ id }) => shown.includes(id)).map(({ metric }) => metric)
  return {
    ...range,
    ...(isOwn ? { start, end } : { duration: DURATIONS[search.span ?? '30d'] }),
    ...(what === 'chart'
      ? { dimensions: ['time'], metrics }
      : { dimensions: [by], metrics: SHARED_METRICS, pagination: { sort: 'delivered_count:desc' } }),
  }
}

/** Times one after another, else the most mail first. */
export function sortOf({ by, sort }: StatisticsSearch): string {
  return sort ?? (by === 'time' ? 'time:desc' : 'delivered_count:desc')
}
