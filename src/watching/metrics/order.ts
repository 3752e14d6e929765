/** The order of items (metrics-logs.md section 1, rule 12), here and in SQL. */
import type { Store } from '../../platform/store/store.ts'
import { COUNTERS, type Counts, noCounts } from './counters.ts'
import {
  type CountMetric,
  countOf,
  type Dimension,
  type FigureOrder,
  type FigureRow,
  isRate,
  type Metric,
  RATES,
} from './figures.ts'
import { numberOf } from './metric-sets.ts'

export type CompareRows = (a: FigureRow, b: FigureRow) => number

export function comparing(dimensions: readonly Dimension[], { by, descending }: FigureOrder): CompareRows {
  const sign = descending ? -1 : 1
  const ties = comparingValues(dimensions)
  if ('metric' in by) {
    const { metric } = by
    return (a, b) => sign * (numberOf(metric, a.counts) - numberOf(metric, b.counts)) || ties(a, b)
  }
  const first = compareAt(dimensions, dimensions.indexOf(by.dimension))
  return (a, b) => sign * first(a, b) || ties(a, b)
}

export function comparingValues(dimensions: readonly Dimension[]): CompareRows {
  const each = dimensions.map((_, at) => compareAt(dimensions, at))
  return (a, b) => {
    for (const compare of each) {
      const next = compare(a, b)
      if (next !== 0) return next
    }
    return 0
  }
}

function compareAt(dimensions: readonly Dimension[], at: number): CompareRows {
  if (dimensions[at] === 'time') return (a, b) => Number(a.values[at]) - Number(b.values[at])
  return (a, b) => compareTexts(a.values[at] as string, b.values[at] as string)
}

/** By code points, as the databases compare. JavaScript's own order is another for characters outside the BMP. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const [length, other] = [a.length, b.length]
  for (let at = 0; at < length && at < other; at++) {
    const [one, two] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (one === two) continue
    const [isSurrogate, isOther] = [isHalf(one), isHalf(two)]
    return isSurrogate === isOther ? one - two : isSurrogate ? 1 : -1
  }
  return length - other
}

const isHalf = (code: number) => code >= 0xd800 && code <= 0xdfff

/** ORDER BY of the same order on columns `d_<dimension>` and of sums by the names of counters. */
export function orderOf(
  dimensions: readonly Dimension[],
  { by, descending }: FigureOrder,
  kind: Store['kind'],
): string {
  const column = (name: Dimension) =>
    `d_${name}${kind === 'postgres' && name !== 'time' ? ' COLLATE "C"' : ''}`
  const first = 'metric' in by ? numberText(by.metric) : column(by.dimension)
  return [`${first} ${descending ? 'DESC' : 'ASC'}`, ...dimensions.map(column)].join(', ')
}

function numberText(metric: Metric): string {
  if (!isRate(metric)) return sumText(metric)
  const [count, volume] = RATES[metric].map(sumText) as [string, string]
  return `CASE WHEN ${volume} = 0 THEN 0 ELSE CAST(${count} AS DOUBLE PRECISION) / ${volume} END`
}

/** Metrics are sums and differences of counters. */
function sumText(metric: CountMetric): string {
  const terms = COUNTERS.flatMap((name) => {
    const factor = countOf(metric, { ...noCounts(), [name]: 1 } as Counts)
    return factor === 0 ? [] : [`${factor} * coalesce(${name}, 0)`]
  })
  return `(${terms.join(' + ')})`
}
