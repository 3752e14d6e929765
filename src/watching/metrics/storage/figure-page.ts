/**
 * Reads one page of items in the database's own order, so that items of other pages are neither transferred nor held.
 *
 * That needs statements that find all of an item: each covers some intervals of all that is asked, or all the time of some
 * domains, or, where rows are of accounts as a whole, everything. Rows of all values are too many for the last two, and
 * several domains without the dimension are; those queries are read by figure-reader.ts.
 */
import type { Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counts, noCounts } from '../counters.ts'
import {
  type CountMetric,
  comparingRows,
  countOf,
  type Dimension,
  type FigureOrder,
  type FigurePage,
  type FigureRow,
  isRate,
  type Metric,
  type Paging,
  RATES,
} from '../figures.ts'
import { after, startOf } from '../intervals.ts'
import { pageOf } from '../order.ts'
import type { Segment } from './figure-plan.ts'
import { areDistinct, domainScopes, type Piece, rowsOf, type Wanted, whole } from './figure-sql.ts'
import { ATTEMPTED, type Budget, byScopes, byTime, checkItems, endsOf, itemsWanted } from './reading.ts'

type Way = 'time' | 'domains' | 'whole'

/** How pages of these segments are read; null: not this way. */
export function wayOf({ query }: Wanted, segments: readonly Segment[]): Way | null {
  const { dimensions } = query
  const isNarrow = segments.every(({ split }) => split.name !== 'all')
  if (dimensions.length === 0 || !isNarrow) return null
  if (dimensions.includes('time')) return 'time'
  if (dimensions.includes('domain')) return 'domains'
  return segments.every(({ level }) => level === 'account') ? 'whole' : null
}

export class PageReading {
  readonly #store: Store
  readonly #wanted: Wanted
  readonly #paging: Paging
  readonly #budget: Budget
  /** What may be on the page. */
  #held: FigureRow[] = []
  #total = 0
  readonly #sum = noCounts()

  constructor(store: Store, wanted: Wanted, paging: Paging, budget: Budget) {
    this.#store = store
    this.#wanted = wanted
    this.#paging = paging
    this.#budget = budget
  }

  async page(way: Way, segments: readonly Segment[]): Promise<FigurePage> {
    if (way === 'time') await this.#intervals(segments)
    else if (way === 'whole') await this.#read(segments.map(whole), way)
    else
      await byScopes(await domainScopes(this.#store, this.#wanted), (some) =>
        this.#read(
          segments.map((segment) => ({ ...whole(segment), scopes: endsOf(some) })),
          way,
        ),
      )
    return { rows: this.#sorted(this.#paging.skip), total: this.#total, sum: this.#sum }
  }

  #intervals(segments: readonly Segment[]): Promise<void> {
    const start = Math.min(...segments.map((segment) => segment.start))
    const end = Math.max(...segments.map((segment) => segment.end))
    return byTime(this.#wanted.query.resolution, start, end, (from, to) =>
      this.#read(
        segments.flatMap((segment) => this.#piecesIn(segment, from, to)),
        'time',
      ),
    )
  }

  /** SQL cannot tell the month that a day is in. */
  #piecesIn(segment: Segment, start: number, end: number): Piece[] {
    const { resolution } = this.#wanted.query
    const [from, to] = [Math.max(segment.start, start), Math.min(segment.end, end)]
    if (from >= to) return []
    if (resolution !== 'month') return [{ segment, from, to }]
    const pieces: Piece[] = []
    for (let at = from; at < to; ) {
      const time = startOf(resolution, at)
      const next = Math.min(after(resolution, time), to)
      pieces.push({ segment, from: at, to: next, time })
      at = next
    }
    return pieces
  }

  /** Returns how many rows of figures were read. */
  async #read(pieces: readonly Piece[], way: Way): Promise<number> {
    if (pieces.length === 0) return 0
    const rows = await this.#store.read(this.#statement(pieces, way))
    let read = 0
    for (const row of rows) {
      if (Number(row['is_total']) === 0) this.#held.push(this.#itemOf(row))
      else {
        read = Number(row['n'])
        this.#total += Number(row['items'])
        if (this.#paging.withSum)
          for (const name of this.#wanted.counters) this.#sum[name] += Number(row[name] ?? 0)
      }
    }
    this.#budget.spend(read)
    this.#held = this.#sorted(0)
    checkItems(this.#held.length)
    return read
  }

  /** What is held from an item to the end of the page. */
  #sorted(from: number): FigureRow[] {
    const { order, skip, limit } = this.#paging
    const compare = comparingRows(this.#wanted.query.dimensions, order)
    return pageOf(this.#held, compare, { skip: from, limit: skip + limit - from }).rows
  }

  #itemOf(row: Record<string, unknown>): FigureRow {
    const counts = noCounts()
    for (const name of this.#wanted.counters) {
      const count = row[name]
      if (count) counts[name] = Number(count)
    }
    return { values: this.#wanted.query.dimensions.map((name) => String(row[`d_${name}`])), counts }
  }

  /** The first items, and a row of their number, of the rows read, and of sums. */
  #statement(pieces: readonly Piece[], way: Way): Statement {
    const { query, counters, kind } = this.#wanted
    const { dimensions } = query
    const { order, withSum } = this.#paging
    const most = itemsWanted(this.#paging.skip + this.#paging.limit)
    const names = dimensions.map((name) => `d_${name}`)
    const byAddress = dimensions.some((name) => name === 'ip' || name === 'ip_pool')
    const [piece, ...more] = pieces
    const isDistinct = more.length === 0 && !byAddress && areDistinct(query, (piece as Piece).segment)
    const parts = pieces.map((one) => rowsOf(one, dimensions, this.#wanted))
    const sums = counters.map((name) => `sum(${name}) AS ${name}`)
    // SQLite reads rows twice in less time than it stores them.
    const once = kind === 'postgres' ? 'MATERIALIZED' : 'NOT MATERIALIZED'
    const items = isDistinct
      ? `items AS ${once} (SELECT *, 1 AS n FROM parts)`
      : `items AS MATERIALIZED (SELECT ${[...names, ...sums, 'count(*) AS n'].join(', ')} FROM parts
          GROUP BY ${names.map((_, at) => at + 1)} ${byAddress ? `HAVING ${isAttempted}` : ''})`
    const union = parts.map(({ sql }) => sql).join(' UNION ALL ')
    // One statement for everything is not cut into slices, whose sizes follow from what was read.
    const bounded =
      way === 'whole' ? `SELECT * FROM (${union}) AS every LIMIT ${this.#budget.rowsMax + 1}` : union
    // Rows of items that are not shown count too: the limit may have cut them or others off.
    const rowsRead = way === 'whole' && byAddress ? '(SELECT count(*) FROM parts)' : 'sum(n)'
    const totals = counters.map((name) => `${withSum ? `sum(${name})` : 'NULL'} AS ${name}`)
    const nothing = dimensions.map((name) => `${name === 'time' ? '0' : `''`} AS d_${name}`)
    return {
      sql: `WITH parts AS NOT MATERIALIZED (${bounded}), ${items}
        SELECT * FROM (SELECT ${[...names, ...counters].join(', ')}, 0 AS n, 0 AS items, 0 AS is_total FROM items
          ORDER BY ${orderOf(dimensions, order, kind)} LIMIT ${most}) AS page
        UNION ALL
        SELECT ${[...nothing, ...totals].join(', ')}, ${rowsRead} AS n, count(*) AS items, 1 AS is_total FROM items`,
      values: parts.flatMap(({ values }) => values),
    }
  }
}

const isAttempted = ATTEMPTED.map((name) => `coalesce(sum(${name}), 0)`)
  .join(' + ')
  .concat(' > 0')

/** ORDER BY of `comparingRows` on columns `d_<dimension>` and sums by the names of counters. */
function orderOf(
  dimensions: readonly Dimension[],
  { by, descending }: FigureOrder,
  kind: Store['kind'],
): string {
  const column = (name: Dimension) =>
    `d_${name}${kind === 'postgres' && name !== 'time' ? ' COLLATE "C"' : ''}`
  const dimension = dimensions.find((name) => name === by)
  const first = dimension ? column(dimension) : numberText(by as Metric)
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
