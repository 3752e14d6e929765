/** The result of the metrics operations (metrics-logs.md section 1, rules 6 to 14). */

import type { Of } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { COUNTERS, noCounts } from './counters.ts'
import type { Dimension, FigureOrder, FigureRow, Metric } from './figures.ts'
import { type MetricSet, metricValue } from './metric-sets.ts'
import { type CompareRows, comparing, comparingValues } from './order.ts'
import type { MetricsRequest } from './request.ts'
import type { METRICS_ITEM, METRICS_RESULT } from './shapes.ts'

type MetricsItem = Of<typeof METRICS_ITEM>
export type MetricsResult = Of<typeof METRICS_RESULT>

/** @param nameOf the name shown for a value */
export async function metricsAnswer(
  request: MetricsRequest,
  set: MetricSet,
  page: MetricsPage,
  nameOf: (dimension: Dimension, value: string) => Promise<string>,
): Promise<MetricsResult> {
  const { dimensions, sort, skip, limit, start, end, resolution, duration } = request
  const figureOf = (name: string, { counts, usage }: Values) => {
    const metric = set.metricOf(name)
    return metric === null ? (usage?.[name] ?? 0) : metricValue(metric, counts, dimensions)
  }
  const metricsOf = (row: Values) =>
    Object.fromEntries(request.metrics.map((name) => [name, figureOf(name, row)]))
  const items: MetricsItem[] = []
  for (const row of page.rows)
    items.push({ dimensions: await itemValues(dimensions, row.values, nameOf), metrics: metricsOf(row) })
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

async function itemValues(
  dimensions: readonly Dimension[],
  values: readonly string[],
  nameOf: (dimension: Dimension, value: string) => Promise<string>,
): Promise<MetricsItem['dimensions']> {
  const shown: MetricsItem['dimensions'][number][] = []
  for (const [at, dimension] of dimensions.entries()) {
    const value = values[at] as string
    if (dimension === 'time') {
      const time = formatRfc2822(new Date(Number(value)))
      shown.push({ dimension, value: time, display_value: time })
    } else shown.push({ dimension, value, display_value: await nameOf(dimension, value) })
  }
  return shown
}

type Values = Pick<FigureRow, 'counts' | 'usage'>

/** Items of a page, how many there are, and the sum of all. */
export interface MetricsPage {
  rows: readonly FigureRow[]
  total: number
  sum: Values
}

/** The page of rows with usage. */
export function usagePage(request: MetricsRequest, set: MetricSet, rows: FigureRow[]): MetricsPage {
  const { skip, limit } = request
  return {
    rows: rows.sort(comparingUsage(request, set)).slice(skip, skip + limit),
    total: rows.length,
    sum: sumOf(rows),
  }
}

function sumOf(rows: readonly FigureRow[]): Values {
  const sum = noCounts()
  const usage: Record<string, number> = {}
  for (const row of rows) {
    for (const name of COUNTERS) sum[name] += row.counts[name]
    for (const [name, count] of Object.entries(row.usage ?? {})) usage[name] = (usage[name] ?? 0) + count
  }
  return { counts: sum, usage }
}

/** How a request orders figures. */
export function orderIn({ dimensions, sort }: MetricsRequest, metric: Metric): FigureOrder {
  const dimension = dimensions.find((name) => name === sort.column)
  return { by: dimension ? { dimension } : { metric }, descending: sort.descending }
}

function comparingUsage(request: MetricsRequest, set: MetricSet): CompareRows {
  const { dimensions, sort } = request
  const metric = set.metricOf(sort.column)
  const isUsage = metric === null && !dimensions.some((name) => name === sort.column)
  if (!isUsage) return comparing(dimensions, orderIn(request, metric as Metric))
  const sign = sort.descending ? -1 : 1
  const ties = comparingValues(dimensions)
  const numberAt = ({ usage }: Values) => usage?.[sort.column] ?? 0
  return (a, b) => sign * (numberAt(a) - numberAt(b)) || ties(a, b)
}
