/**
 * Reads one page of items in the database's own order, so that items of other pages are neither transferred nor held.
 *
 * That needs statements that find all of an item: each covers some intervals of all that is asked, or all the time of some
 * domains, or, where rows are of accounts as a whole, everything. Rows of all values are too many for the last two, and
 * several domains without the dimension are; those queries are read by figure-reader.ts.
 */
import type { Statement, Store } from '../../../platform/store/store.ts'
import { noCounts } from '../counters.ts'
import type { FigurePage, FigureRow, Paging } from '../figures.ts'
import { after, startOf } from '../intervals.ts'
import { comparing, orderOf } from '../order.ts'
import type { Segment } from './figure-plan.ts'
import { areDistinct, domainScopes, type Piece, rowsOf, type Wanted } from './figure-sql.ts'
import { ANSWER_ROWS_MAX, ATTEMPTED, checkRowsRead, nextWidth, SCOPES_FIRST, tooMuch } from './reading.ts'

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
  readonly #rowsMax: number
  /** What may be on the page. */
  #held: FigureRow[] = []
  #total = 0
  #rowsRead = 0
  readonly #sum = noCounts()

  constructor(store: Store, wanted: Wanted, paging: Paging, rowsMax: number) {
    this.#rowsMax = rowsMax
    this.#store = store
    this.#wanted = wanted
    this.#paging = paging
  }

  async page(way: Way, segments: readonly Segment[]): Promise<FigurePage> {
    if (way === 'time') await this.#intervals(segments)
    else if (way === 'domains') await this.#domains(segments)
    else await this.#read(segments.map(whole), 'whole')
    const { skip, limit } = this.#paging
    return { rows: this.#first().slice(skip, skip + limit), total: this.#total, sum: this.#sum }
  }

  async #intervals(segments: readonly Segment[]): Promise<void> {
    const { resolution } = this.#wanted.query
    const end = Math.max(...segments.map((segment) => segment.end))
    let width = 1
    for (let from = Math.min(...segments.map(({ start }) => start)); from < end; ) {
      const to = Math.min(after(resolution, startOf(resolution, from), width), end)
      const read = await this.#read(
        segments.flatMap((segment) => this.#piecesIn(segment, from, to)),
        'time',
      )
      from = to
      width = nextWidth(width, read)
    }
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

  async #domains(segments: readonly Segment[]): Promise<void> {
    const scopes = await domainScopes(this.#store, this.#wanted)
    let width = SCOPES_FIRST
    for (let at = 0; at < scopes.length; ) {
      const slice = scopes.slice(at, at + width)
      const limits = [slice[0], slice.at(-1)] as [number, number]
      const read = await this.#read(
        segments.map((segment) => ({ ...whole(segment), scopes: limits })),
        'domains',
      )
      at += slice.length
      width = nextWidth(width, read)
    }
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
    this.#rowsRead += read
    checkRowsRead(this.#rowsRead, this.#rowsMax)
    this.#held = this.#first()
    if (this.#held.length > ANSWER_ROWS_MAX) throw tooMuch(`more than ${ANSWER_ROWS_MAX} items`)
    return read
  }

  #first(): FigureRow[] {
    const { order, skip, limit } = this.#paging
    const sorted = this.#held.sort(comparing(this.#wanted.query.dimensions, order))
    return sorted.slice(0, skip + limit)
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
    const most = Math.min(this.#paging.skip + this.#paging.limit, ANSWER_ROWS_MAX + 1)
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
    const bounded = way === 'whole' ? `SELECT * FROM (${union}) AS every LIMIT ${this.#rowsMax + 1}` : union
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

const whole = (segment: Segment): Piece => ({ segment, from: segment.start, to: segment.end })
