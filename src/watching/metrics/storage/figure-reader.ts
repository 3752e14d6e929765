/**
 * Reads the rows that a query of figures needs. The database groups and filters; what several reads found is added up
 * here. A read covers so much time that it occupies a reader for some milliseconds only.
 */
import { Turns } from '../../../base/flow/gate.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counts, noCounts } from '../counters.ts'
import {
  comparingRows,
  countersFor,
  type Dimension,
  type FigurePage,
  type FigureQuery,
  type FigureRow,
  METRICS,
  type Metric,
  type PagedFigures,
  type Paging,
} from '../figures.ts'
import { matches, matchesAny } from '../filter.ts'
import { startOf } from '../intervals.ts'
import { pageOf } from '../order.ts'
import { PageReading, wayOf } from './figure-page.ts'
import { planOf, type Segment } from './figure-plan.ts'
import {
  areDistinct,
  columnOf,
  conditionsOf,
  domainScopes,
  type Piece,
  type Wanted,
  whole,
} from './figure-sql.ts'
import { addPacks } from './pack-reading.ts'
import { pairsSince, placesOf } from './places.ts'
import { ATTEMPTED, Budget, byScopes, byTime, checkItems, endsOf, ROWS_MAX } from './reading.ts'

/** Queries of an account run one after the other; more than this wait no longer. */
const WAITING_MAX = 20

/** @param rowsMax rows of figures that a query may read; fewer for tests */
export function createFigures(store: Store, rowsMax = ROWS_MAX): PagedFigures {
  const turns = new Turns(WAITING_MAX)
  const inTurn = <T>(query: FigureQuery, read: (reading: Reading) => Promise<T>, more?: Metric) =>
    turns.run(query.accountIds[0] ?? '', () => read(new Reading(store, query, new Budget(rowsMax), more)))
  return {
    read: (query) => inTurn(query, (reading) => reading.rows()),
    page: (query, paging) =>
      inTurn(
        query,
        (reading) => reading.page(paging),
        METRICS.find((name) => name === paging.order.by),
      ),
  }
}

class Reading {
  readonly #store: Store
  readonly #query: FigureQuery
  readonly #wanted: Wanted
  readonly #found = new Map<string, FigureRow>()
  readonly #budget: Budget

  /** `more`: a metric that is needed beside those of the query. */
  constructor(store: Store, query: FigureQuery, budget: Budget, more?: Metric) {
    this.#store = store
    this.#query = query
    this.#budget = budget
    const conditions = query.filter.filter(({ attribute }) => attribute === 'subaccount')
    const accountIds = query.accountIds.filter((id) => conditions.every((entry) => matches(entry, id)))
    const { metrics } = query
    const counters =
      this.#ignoresAccepted || !metrics ? COUNTERS : countersFor(more ? [...metrics, more] : metrics)
    this.#wanted = { query, accountIds, counters, kind: store.kind }
  }

  /** Mail is accepted before it has an address: alone it makes no row there. */
  get #ignoresAccepted(): boolean {
    return this.#query.dimensions.some((name) => name === 'ip' || name === 'ip_pool')
  }

  async rows(): Promise<FigureRow[]> {
    for (const segment of await this.#plan()) await this.#segment(segment)
    const all = [...this.#found.values()]
    const rows = this.#ignoresAccepted ? all.filter(isAttempted) : all
    const { dimensions } = this.#query
    return rows.length === 0 && dimensions.length === 0 ? [{ values: [], counts: noCounts() }] : rows
  }

  async page(paging: Paging): Promise<FigurePage> {
    const segments = await this.#plan()
    const way = wayOf(this.#wanted, segments)
    if (way !== null && segments.length > 0)
      return new PageReading(this.#store, this.#wanted, paging, this.#budget).page(way, segments)
    const rows = await this.rows()
    const sum = noCounts()
    if (paging.withSum) for (const { counts } of rows) for (const name of COUNTERS) sum[name] += counts[name]
    return { ...pageOf(rows, comparingRows(this.#query.dimensions, paging.order), paging), sum }
  }

  async #plan(): Promise<Segment[]> {
    if (this.#wanted.accountIds.length === 0) return []
    const { until } = await placesOf(this.#store)
    return planOf(this.#query, until, await pairsSince(this.#store, this.#wanted.accountIds))
  }

  async #segment(segment: Segment): Promise<void> {
    const { dimensions } = this.#query
    const isByDomain = segment.level === 'domain' && dimensions.includes('domain')
    // Slices of time would find each pair of domain and value again and again. A domain's hours may be too much for one read.
    if (isByDomain && !dimensions.includes('time') && segment.split.name !== 'all')
      return byScopes(await domainScopes(this.#store, this.#wanted), (some) =>
        this.#read({ ...whole(segment), scopes: endsOf(some) }),
      )
    if (segment.split.name === 'all') {
      await addPacks({
        ...{ store: this.#store, wanted: this.#wanted, segment, budget: this.#budget },
        countsOf: (values) => this.#countsOf(values),
      })
      if (!(await this.#hasRows(segment))) return
    }
    // A month of all values may be too much for one read.
    const step = segment.split.name === 'all' && segment.unit === 'month' ? 'day' : segment.unit
    await byTime(step, segment.start, segment.end, (from, to) => this.#read({ segment, from, to }))
  }

  /** Rows of all values are written while nodes of an earlier release run, and become packs later (packing.ts). */
  async #hasRows(segment: Segment): Promise<boolean> {
    // A filter of values that matches nothing would look at every row.
    const filter = this.#query.filter.filter(({ attribute }) => ['domain', 'subaccount'].includes(attribute))
    const wanted = { ...this.#wanted, query: { ...this.#query, filter } }
    const { sql, values } = conditionsOf(whole(segment), wanted)
    return (await this.#store.read({ sql: `SELECT 1 AS one ${sql} LIMIT 1`, values })).length > 0
  }

  /** Returns how many rows of figures were read. */
  async #read(piece: Piece): Promise<number> {
    let read = 0
    for (const row of await this.#store.read(this.#statement(piece))) {
      read += Number(row['n'])
      // Without dimensions there is one row, even of nothing.
      if (row['n'] !== 0) this.#add(row, piece.segment)
    }
    this.#budget.spend(read)
    return read
  }

  #statement(piece: Piece): Statement {
    const { segment } = piece
    const names = groupedBy(this.#query, segment)
    const columns = names.map((name) => `${columnOf(name, this.#query.resolution)} AS d_${name}`)
    const isDistinct = areDistinct(this.#query, segment)
    const { counters } = this.#wanted
    const sums = counters.map((name) => (isDistinct ? `f.${name}` : `sum(f.${name}) AS ${name}`))
    const { sql, values } = conditionsOf(piece, this.#wanted)
    return {
      sql: `SELECT ${[...columns, `${isDistinct ? 1 : 'count(*)'} AS n`, ...sums].join(', ')} ${sql}
        ${names.length > 0 && !isDistinct ? `GROUP BY ${names.map((_, at) => at + 1)}` : ''}`,
      values,
    }
  }

  #add(row: Record<string, unknown>, segment: Segment): void {
    for (const tag of this.#tagsOf(row, segment)) {
      const values = this.#query.dimensions.map((name) => this.#valueOf(name, row, tag))
      const counts = this.#countsOf(values)
      for (const name of this.#wanted.counters) {
        const count = row[name]
        if (count) counts[name] += Number(count)
      }
    }
  }

  /** The counts of the item with these values, which is new if there is none. */
  #countsOf(values: readonly string[]): Counts {
    const key = values.join('\n')
    let found = this.#found.get(key)
    if (!found) {
      found = { values, counts: noCounts() }
      this.#found.set(key, found)
      checkItems(this.#found.size)
    }
    return found.counts
  }

  #valueOf(name: Dimension, row: Record<string, unknown>, tag: string): string {
    if (name === 'tag') return tag
    const value = row[`d_${name}`]
    return String(name === 'time' ? startOf(this.#query.resolution, Number(value)) : value)
  }

  /** The tags to count a row for. Where the row lists the tags of messages, filters of tags are applied here. */
  #tagsOf(row: Record<string, unknown>, { split }: Segment): readonly string[] {
    const text = row['d_tag']
    if (text === undefined) return ['']
    if (split.name !== 'all') return [String(text)]
    const tags = text === '' ? [] : (JSON.parse(String(text)) as string[])
    const conditions = this.#query.filter.filter(({ attribute }) => attribute === 'tag')
    if (this.#query.dimensions.includes('tag'))
      return tags.filter((tag) => conditions.every((entry) => matches(entry, tag)))
    return conditions.every((entry) => matchesAny(entry, tags)) ? [''] : []
  }
}

const isAttempted = ({ counts }: FigureRow) => ATTEMPTED.some((name) => counts[name] !== 0)

/** The dimensions, and the lists of tags where those are filtered afterwards. */
function groupedBy({ dimensions, filter }: FigureQuery, { split }: Segment): Dimension[] {
  const filtersLists = split.name === 'all' && filter.some(({ attribute }) => attribute === 'tag')
  return filtersLists ? [...new Set<Dimension>([...dimensions, 'tag'])] : [...dimensions]
}
