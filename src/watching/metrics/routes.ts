/** Metrics over HTTP (metrics-logs.md section 1). */
import type { Of } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import { csvReply, prefersCsv, type Reply } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { COUNTERS, noCounts } from './counters.ts'
import {
  ACCOUNT_METRICS,
  comparingRows,
  type Dimension,
  type FigureQuery,
  type FigureRow,
  type Metric,
  type MetricSet,
  metricValue,
  type PagedFigures,
  USAGE_METRICS,
} from './figures.ts'
import { after } from './intervals.ts'
import { comparing, pageOf } from './order.ts'
import { ATTRIBUTES, type MetricsRequest, readMetricsRequest } from './request.ts'
import { CSV, METRICS_RESULT, metricsQuery } from './shapes.ts'
import { addUsage } from './usage.ts'

export interface MetricsParts extends Pick<Core, 'clock' | 'store'> {
  figures: PagedFigures
  accounts: Core['accounts']
}

const COMMON = {
  method: 'POST',
  tag: 'Metrics',
  auth: { area: 'events', access: 'read' },
  rateLimit: 'analytics',
  answers: {
    200: [METRICS_RESULT, CSV],
    400: 'An unknown dimension, metric, attribute, comparator or resolution, more than 3 dimensions, a limit over the maximum, a start after the end, or a query that reads too much',
  },
} as const

export function metricsRoutes(parts: MetricsParts): Operation[] {
  const metricsRoute = (path: string, id: string, summary: string, set: MetricSet) =>
    operation({
      ...COMMON,
      ...{ path, id, summary },
      body: metricsQuery(set, ATTRIBUTES),
      async handler({ params, caller, headers }) {
        const request = readMetricsRequest(params.json(), parts.clock.now(), set)
        const result = await readMetricsResult(parts, set, request, caller.accountId)
        return prefersCsv(headers.accept) ? metricsCsv(request, result) : result
      },
    })
  return [
    metricsRoute(
      '/v1/analytics/metrics',
      'readMetrics',
      'Counts and rates of sending by up to three dimensions',
      ACCOUNT_METRICS,
    ),
    metricsRoute(
      '/v1/analytics/usage/metrics',
      'readUsageMetrics',
      'Usage of the account by day or month',
      USAGE_METRICS,
    ),
  ]
}

type MetricsResult = Of<typeof METRICS_RESULT>
type Values = Pick<FigureRow, 'counts' | 'usage'>

/** Rules 6 to 14. */
export async function readMetricsResult(
  parts: MetricsParts,
  set: MetricSet,
  request: MetricsRequest,
  accountId: string,
): Promise<MetricsResult> {
  const { accounts } = parts
  const { start, end, resolution, duration, dimensions, filter, metrics, sort, skip, limit } = request
  const children = request.includeSubaccounts ? await accounts.childrenOf(accountId) : []
  const page = await pageFor(parts, set, request, {
    accountIds: [accountId, ...children],
    startMs: start,
    endMs: after(resolution, end),
    // Usage is kept by day.
    resolution: set === USAGE_METRICS && resolution === 'hour' ? ('day' as const) : resolution,
    dimensions,
    filter,
    metrics: metrics.map(set.metricOf).filter((metric) => metric !== null),
  })
  const by = [...dimensions, ...filter.map(({ attribute }) => attribute)]
  const figureOf = (name: string, { counts, usage }: Values) => {
    const metric = set.metricOf(name)
    return metric === null ? (usage?.[name] ?? 0) : metricValue(metric, counts, by)
  }
  const metricsOf = (row: Values) => Object.fromEntries(metrics.map((name) => [name, figureOf(name, row)]))
  const nameOf = async (dimension: Dimension, value: string) =>
    dimension === 'subaccount' ? ((await accounts.byId(value))?.name ?? value) : value
  const items: MetricsResult['items'][number][] = []
  for (const row of page.rows) {
    const values: MetricsResult['items'][number]['dimensions'][number][] = []
    for (const [at, dimension] of dimensions.entries()) {
      const text = row.values[at] as string
      const value = dimension === 'time' ? formatRfc2822(new Date(Number(text))) : text
      values.push({ dimension, value, display_value: await nameOf(dimension, value) })
    }
    items.push({ dimensions: values, metrics: metricsOf(row) })
  }
  return {
    start: formatRfc2822(new Date(start)),
    end: formatRfc2822(new Date(end)),
    resolution,
    duration,
    dimensions,
    pagination: { sort: sort.asked, skip, limit, total: page.total },
    items,
    aggregates: { metrics: request.includeAggregates ? metricsOf(page.sum) : {} },
  }
}

/** Items of a page, how many there are, and the sum of all. */
async function pageFor(
  { store, figures }: MetricsParts,
  set: MetricSet,
  { sort, dimensions, skip, limit, includeAggregates }: MetricsRequest,
  query: FigureQuery,
): Promise<{ rows: FigureRow[]; total: number; sum: Values }> {
  const { column, descending } = sort
  const by = dimensions.find((name) => name === column) ?? (set.metricOf(column) as Metric | null)
  if (set !== USAGE_METRICS) {
    const order = { by: by as Dimension | Metric, descending }
    const { sum, ...page } = await figures.page(query, { order, skip, limit, withSum: includeAggregates })
    return { ...page, sum: { counts: sum } }
  }
  const rows = await figures.read(query)
  await addUsage(store, query, rows)
  const compare =
    by === null
      ? comparing<FigureRow>(dimensions, ({ usage }) => usage?.[column] ?? 0, descending)
      : comparingRows(dimensions, { by, descending })
  return { sum: sumOf(rows), ...pageOf(rows, compare, { skip, limit }) }
}

function sumOf(rows: readonly FigureRow[]): Values {
  const counts = noCounts()
  const usage: Record<string, number> = {}
  for (const row of rows) {
    for (const name of COUNTERS) counts[name] += row.counts[name]
    for (const [name, count] of Object.entries(row.usage ?? {})) usage[name] = (usage[name] ?? 0) + count
  }
  return { counts, usage }
}

function metricsCsv({ dimensions, metrics }: MetricsRequest, { items }: MetricsResult): Reply {
  const rows = items.map((item) => [
    ...item.dimensions.map(({ value }) => value),
    ...metrics.map((name) => item.metrics[name] ?? null),
  ])
  return csvReply('metrics.csv', [...dimensions, ...metrics], rows)
}
