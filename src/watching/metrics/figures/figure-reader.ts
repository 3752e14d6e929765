/**
 * Reads the rows that a query of figures needs. The database groups and filters; what several reads found is added up
 * here. A read covers so much time that it occupies a reader for some milliseconds only.
 */
import { Turns } from '../../../base/flow/gate.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counts, noCounts } from '../count/counters.ts'
import { after, startOf } from '../count/intervals.ts'
import { addPacks } from '../count/pack-reading.ts'
import { pairsSince, placesOf } from '../count/places.ts'
import { comparing } from './figure-order.ts'
import { PageReading, wayOf } from './figure-page.ts'
import { planOf, type Segment } from './figure-plan.ts'
import { areDistinct, columnOf, conditionsOf, domainScopes, type Piece, type Wanted } from './figure-sql.ts'
import {
  countersFor,
  type Dimension,
  type FigurePage,
  type FigureQuery,
  type FigureRow,
  type Figures,
  type Metric,
  type PagedFigures,
  type Paging,
} from './figures.ts'
import { matches, matchesAny } from './matching.ts'
import {
  ANSWER_ROWS_MAX,
  ATTEMPTED,
  checkRowsRead,
  nextWidth,
  ROWS_MAX,
  SCOPES_FIRST,
  tooMuch,
} from './reading.ts'

/** Queries of an account run one after the other; more than this wait no longer. */
const WAITING_MAX = 20

/** @param rowsMax rows of figures that a query may read; fewer for tests */
export function createFigures(store: Store, rowsMax = ROWS_MAX): Figures & PagedFigures {
  const turns = new Turns(WAITING_MAX)
  const inTurn = <T>(query: FigureQuery, read: () => Promise<T>) => turns.run(query.accountIds[0] ?? '', read)
  return {
    rows: (query) => inTurn(query, () => new Reading(store, query, rowsMax).rows()),
    page(query, paging) {
      const { by } = paging.order
      const more = 'metric' in by ? [by.metric] : []
      return inTurn(query, () => new Reading(store, query, rowsMax, more).page(paging))
    },
  }
}

class Reading {
  readonly #store: Store
  readonly #query: FigureQuery
  readonly #wanted: Wanted
  readonly #found = new Map<string, FigureRow>()
  readonly #rowsMax: number
  #rowsRead = 0

  /** `more`: a metric that is needed beside those of the query. */
  constructor(store: Store, query: FigureQuery, rowsMax: number, more: readonly Metric[] = []) {
    this.#rowsMax = rowsMax
    this.#store = store
    this.#query = query
    const conditions = query.filter.filter(({ attribute }) => attribute === 'subaccount')
    const accountIds = query.accountIds.filter((id) => conditions.every((entry) => matches(entry, id)))
    const { metrics } = query
    const counters = this.#ignoresAccepted || !metrics ? COUNTERS : countersFor([...metrics, ...more])
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
      return new PageReading(this.#store, this.#wanted, paging, this.#rowsMax).page(way, segments)
    return pageOf(await this.rows(), this.#query.dimensions, paging)
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
      await this.#slicesOfDomains(segment)
    else if (segment.split.name !== 'all') await this.#slicesOfTime(segment)
    else {
      await this.#packs(segment)
      if (await this.#hasRows(segment)) await this.#slicesOfTime(segment)
    }
  }

  async #packs(segment: Segment): Promise<void> {
    this.#rowsRead += await addPacks({
      store: this.#store,
      wanted: this.#wanted,
      segment,
      rowsMax: this.#rowsMax - this.#rowsRead,
      countsOf: (values) => this.#countsOf(values),
    })
  }

  /** Rows of all values are written while nodes of an earlier release run, and become packs later (packing.ts). */
  async #hasRows(segment: Segment): Promise<boolean> {
    // A filter of values that matches nothing would look at every row.
    const filter = this.#query.filter.filter(({ attribute }) => ['domain', 'subaccount'].includes(attribute))
    const wanted = { ...this.#wanted, query: { ...this.#query, filter } }
    const { sql, values } = conditionsOf({ segment, from: segment.start, to: segment.end }, wanted)
    return (await this.#store.read({ sql: `SELECT 1 AS one ${sql} LIMIT 1`, values })).length > 0
  }

  async #slicesOfDomains(segment: Segment): Promise<void> {
    const scopes = await domainScopes(this.#store, this.#wanted)
    let width = SCOPES_FIRST
    for (let at = 0; at < scopes.length; ) {
      const slice = scopes.slice(at, at + width)
      const limits = [slice[0], slice.at(-1)] as [number, number]
      const read = await this.#read(
        segment,
        this.#statement({ segment, from: segment.start, to: segment.end, scopes: limits }),
      )
      at += slice.length
      width = nextWidth(width, read)
    }
  }

  async #slicesOfTime(segment: Segment): Promise<void> {
    // A month of all values may be too much for one read.
    const step = segment.split.name === 'all' && segment.unit === 'month' ? 'day' : segment.unit
    let width = 1
    for (let from = segment.start; from < segment.end; ) {
      const to = Math.min(after(step, from, width), segment.end)
      const read = await this.#read(segment, this.#statement({ segment, from, to }))
      from = to
      width = nextWidth(width, read)
    }
  }

  /** Returns how many rows of figures were read. */
  async #read(segment: Segment, statement: Statement): Promise<number> {
    let read = 0
    for (const row of await this.#store.read(statement)) {
      read += Number(row['n'])
      // Without dimensions there is one row, even of nothing.
      if (row['n'] !== 0) this.#add(row, segment)
    }
    this.#rowsRead += read
    checkRowsRead(this.#rowsRead, this.#rowsMax)
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

  /** Of the item with these values, which is new if there is none. */
  #countsOf(values: readonly string[]): Counts {
    const key = values.join('\n')
    let found = this.#found.get(key)
    if (!found) {
      found = { values, counts: noCounts() }
      this.#found.set(key, found)
      if (this.#found.size > ANSWER_ROWS_MAX) throw tooMuch(`more than ${ANSWER_ROWS_MAX} items`)
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

/** A page of all items. */
export function pageOf(rows: FigureRow[], dimensions: readonly Dimension[], paging: Paging): FigurePage {
  const { order, skip, limit } = paging
  const sum = noCounts()
  if (paging.withSum) for (const { counts } of rows) for (const name of COUNTERS) sum[name] += counts[name]
  const sorted = rows.sort(comparing(dimensions, order))
  return { rows: sorted.slice(skip, skip + limit), total: rows.length, sum }
}

/** The dimensions, and the lists of tags where those are filtered afterwards. */
function groupedBy({ dimensions, filter }: FigureQuery, { split }: Segment): Dimension[] {
  const filtersLists = split.name === 'all' && filter.some(({ attribute }) => attribute === 'tag')
  return filtersLists ? [...new Set<Dimension>([...dimensions, 'tag'])] : [...dimensions]
}
