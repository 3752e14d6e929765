/** The result of the metrics operations (metrics-logs.md section 1, rules 6 to 14). */
import { formatRfc2822 } from '../base/dates.ts'
import { COUNTERS, noCounts } from './counters.ts'
import type { Dimension, FigureRow } from './figures.ts'
import { type MetricSet, metricValue, numberOf } from './metric-sets.ts'
import type { MetricsRequest } from './metrics-request.ts'

export interface MetricsItem {
  dimensions: { dimension: Dimension; value: string; display_value: string }[]
  metrics: Record<string, number | string | null>
}

export interface MetricsResult {
  start: string
  end: string
  resolution: string
  duration: string
  dimensions: readonly string[]
  pagination: { sort: string; skip: number; limit: number; total: number }
  items: MetricsItem[]
  aggregates: { metrics: MetricsItem['metrics'] }
}

/** @param nameOf the name shown for a value */
export async function metricsAnswer(
  request: MetricsRequest,
  set: MetricSet,
  rows: FigureRow[],
  nameOf: (dimension: Dimension, value: string) => Promise<string>,
): Promise<MetricsResult> {
  const { dimensions, sort, skip, limit, start, end, resolution, duration } = request
  const figureOf = (name: string, { counts, usage }: Values) => {
    const metric = set.metricOf(name)
    return metric === null ? (usage?.[name] ?? 0) : metricValue(metric, counts, dimensions)
  }
  const metricsOf = (row: Values) =>
    Object.fromEntries(request.metrics.map((name) => [name, figureOf(name, row)]))
  const page = rows.sort(comparing(request, set)).slice(skip, skip + limit)
  const items: MetricsItem[] = []
  for (const row of page)
    items.push({ dimensions: await itemValues(dimensions, row.values, nameOf), metrics: metricsOf(row) })
  return {
    start: formatRfc2822(new Date(start)),
    end: formatRfc2822(new Date(end)),
    resolution,
    duration,
    dimensions,
    pagination: { sort: sort.asked, skip, limit, total: rows.length },
    items,
    aggregates: { metrics: request.includeAggregates ? metricsOf(sumOf(rows)) : {} },
  }
}

async function itemValues(
  dimensions: readonly Dimension[],
  values: readonly string[],
  nameOf: (dimension: Dimension, value: string) => Promise<string>,
): Promise<MetricsItem['dimensions']> {
  const shown: MetricsItem['dimensions'] = []
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

function sumOf(rows: readonly FigureRow[]): Values {
  const sum = noCounts()
  const usage: Record<string, number> = {}
  for (const row of rows) {
    for (const name of COUNTERS) sum[name] += row.counts[name]
    for (const [name, count] of Object.entries(row.usage ?? {})) usage[name] = (usage[name] ?? 0) + count
  }
  return { counts: sum, usage }
}

/** Rule 12. */
function comparing({ dimensions, sort }: MetricsRequest, set: MetricSet) {
  const at = (dimensions as readonly string[]).indexOf(sort.column)
  const metric = at < 0 ? set.metricOf(sort.column) : null
  const numberAt = ({ counts, usage }: Values) =>
    metric === null ? (usage?.[sort.column] ?? 0) : numberOf(metric, counts)
  const sign = sort.descending ? -1 : 1
  const isTime = dimensions.map((name) => name === 'time')
  const compareAt = (a: FigureRow, b: FigureRow, index: number) => {
    const [one, two] = [a.values[index] as string, b.values[index] as string]
    if (isTime[index]) return Number(one) - Number(two)
    return one < two ? -1 : one > two ? 1 : 0
  }
  return (a: FigureRow, b: FigureRow): number => {
    const first = at < 0 ? numberAt(a) - numberAt(b) : compareAt(a, b, at)
    if (first !== 0) return sign * first
    for (const index of dimensions.keys()) {
      const next = compareAt(a, b, index)
      if (next !== 0) return next
    }
    return 0
  }
}
