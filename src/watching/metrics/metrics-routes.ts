/** Metrics over HTTP (metrics-logs.md section 1). */
import type { Clock } from '../../base/time/clock.ts'
import type { Core } from '../../core.ts'
import { csvReply, prefersCsv, type Reply } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Store } from '../../platform/store/store.ts'
import { after } from './count/intervals.ts'
import type { Dimension, Figures, Metric, PagedFigures } from './figures/figures.ts'
import { ACCOUNT_METRICS, type MetricSet, USAGE_METRICS } from './figures/metric-sets.ts'
import { type MetricsPage, type MetricsResult, metricsAnswer, orderIn, usagePage } from './metrics-answer.ts'
import { ATTRIBUTES, type MetricsRequest, readMetricsRequest } from './metrics-request.ts'
import { CSV, METRICS_RESULT, metricsQuery } from './shapes.ts'
import { addUsage } from './usage.ts'

export interface MetricsRouteParts {
  figures: Figures & PagedFigures
  accounts: Core['accounts']
  clock: Clock
  store: Store
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

export function metricsRoutes(parts: MetricsRouteParts): Operation[] {
  const { clock } = parts
  return [
    operation({
      ...COMMON,
      path: '/v1/analytics/metrics',
      id: 'readMetrics',
      summary: 'Counts and rates of sending by up to three dimensions',
      body: metricsQuery(ACCOUNT_METRICS, ATTRIBUTES),
      async handler({ params, caller, headers }) {
        const request = readMetricsRequest(params.json(), clock.now(), ACCOUNT_METRICS)
        const result = await answer(parts, ACCOUNT_METRICS, request, caller)
        return prefersCsv(headers.accept) ? metricsCsv(request, result) : result
      },
    }),
    operation({
      ...COMMON,
      path: '/v1/analytics/usage/metrics',
      id: 'readUsageMetrics',
      summary: 'Usage of the account by day or month',
      body: metricsQuery(USAGE_METRICS, ATTRIBUTES),
      async handler({ params, caller, headers }) {
        const request = readMetricsRequest(params.json(), clock.now(), USAGE_METRICS)
        const result = await answer(parts, USAGE_METRICS, request, caller)
        return prefersCsv(headers.accept) ? metricsCsv(request, result) : result
      },
    }),
  ]
}

async function answer(
  { store, figures, accounts }: MetricsRouteParts,
  set: MetricSet,
  request: MetricsRequest,
  { accountId }: Caller,
): Promise<MetricsResult> {
  const { start, end, resolution, dimensions, filter, metrics } = request
  const children = request.includeSubaccounts ? await accounts.childrenOf(accountId) : []
  const query = {
    accountIds: [accountId, ...children],
    startMs: start,
    endMs: after(resolution, end),
    // Usage is kept by day.
    resolution: set === USAGE_METRICS && resolution === 'hour' ? ('day' as const) : resolution,
    dimensions,
    filter,
    metrics: metrics.map(set.metricOf).filter((metric) => metric !== null),
  }
  const nameOf = async (dimension: Dimension, value: string) =>
    dimension === 'subaccount' ? ((await accounts.byId(value))?.name ?? value) : value
  return metricsAnswer(request, set, await pageFor(), nameOf)

  async function pageFor(): Promise<MetricsPage> {
    if (set === USAGE_METRICS) {
      const rows = await figures.rows(query)
      await addUsage(store, query, rows)
      return usagePage(request, set, rows)
    }
    const order = orderIn(request, set.metricOf(request.sort.column) as Metric)
    const { skip, limit, includeAggregates: withSum } = request
    const { sum, ...page } = await figures.page(query, { order, skip, limit, withSum })
    return { ...page, sum: { counts: sum } }
  }
}

function metricsCsv({ dimensions, metrics }: MetricsRequest, { items }: MetricsResult): Reply {
  const rows = items.map((item) => [
    ...item.dimensions.map(({ value }) => value),
    ...metrics.map((name) => item.metrics[name] ?? null),
  ])
  return csvReply('metrics.csv', [...dimensions, ...metrics], rows)
}
