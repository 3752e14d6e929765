/**
 * Reads the rows that a query of figures needs. The database groups and filters; what several reads found is added up
 * here. A read covers so much time that it occupies a reader for some milliseconds only.
 */
import { BadRequest } from '../base/errors.ts'
import { Turns } from '../base/turns.ts'
import { DAY_MS } from '../events/event-retention.ts'
import type { Counts } from '../store/counter-rows.ts'
import type { SqlValue, Statement, Store } from '../store/store.ts'
import { COUNTERS, type Counter, noCounts } from './counters.ts'
import { isValue, planOf, type Segment, VALUE_OF } from './figure-plan.ts'
import {
  countersFor,
  type Dimension,
  type FigureQuery,
  type FigureRow,
  type Figures,
  type FilterEntry,
} from './figures.ts'
import { after, startOf, type Unit } from './intervals.ts'
import { placesOf } from './places.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'

/**
 * Rows of figures per read: 20 to 40 ms. With fewer the groups of each read, which are transferred, are as many as its
 * rows: at 10,000 all pairs of domain and provider in 30 days took four times as long.
 */
const ROWS_PER_READ = 40_000
/** Domains in the first read of a query that is read by domains. */
const SCOPES_FIRST = 16
/** Rows of figures per query: a second or two in all. */
const ROWS_MAX = 1_000_000
/** Rows of an answer, which are held in memory: up to 40 MB. */
const ANSWER_ROWS_MAX = 100_000
/** Queries of an account run one after the other; more than this wait no longer. */
const WAITING_MAX = 20

/** Shown for an event that has no such value (metrics-logs.md section 2). */
const ABSENT: Readonly<Partial<Record<Dimension, string>>> = {
  ip: 'none',
  ip_pool: 'none',
  recipient_domain: 'none',
  country: 'Unknown',
  device: 'unknown',
  bot: 'None',
}

export function createFigures(store: Store): Figures {
  const turns = new Turns(WAITING_MAX)
  return {
    rows: (query) => turns.run(query.accountIds[0] ?? '', () => new Reading(store, query).rows()),
  }
}

class Reading {
  readonly #store: Store
  readonly #query: FigureQuery
  readonly #accountIds: readonly string[]
  readonly #counters: readonly Counter[]
  readonly #found = new Map<string, FigureRow>()
  #rowsRead = 0

  constructor(store: Store, query: FigureQuery) {
    this.#store = store
    this.#query = query
    const conditions = query.filter.filter(({ attribute }) => attribute === 'subaccount')
    this.#accountIds = query.accountIds.filter((id) => conditions.every((entry) => matches(entry, id)))
    this.#counters = this.#ignoresAccepted || !query.metrics ? COUNTERS : countersFor(query.metrics)
  }

  /** Mail is accepted before it has an address: alone it makes no row there. */
  get #ignoresAccepted(): boolean {
    return this.#query.dimensions.some((name) => name === 'ip' || name === 'ip_pool')
  }

  async rows(): Promise<FigureRow[]> {
    if (this.#accountIds.length > 0) {
      const { until } = await placesOf(this.#store)
      for (const segment of planOf(this.#query, until)) await this.#segment(segment)
    }
    const all = [...this.#found.values()]
    const rows = this.#ignoresAccepted ? all.filter(isAttempted) : all
    const { dimensions } = this.#query
    return rows.length === 0 && dimensions.length === 0 ? [{ values: [], counts: noCounts() }] : rows
  }

  async #segment(segment: Segment): Promise<void> {
    const { dimensions } = this.#query
    const isByDomain = segment.level === 'domain' && dimensions.includes('domain')
    // Slices of time would find each pair of domain and value again and again. A domain's hours may be too much for one read.
    if (isByDomain && !dimensions.includes('time') && segment.split.name !== 'all')
      await this.#slicesOfDomains(segment)
    else await this.#slicesOfTime(segment)
  }

  async #slicesOfDomains(segment: Segment): Promise<void> {
    const scopes = await this.#domainScopes()
    let width = SCOPES_FIRST
    for (let at = 0; at < scopes.length; ) {
      const slice = scopes.slice(at, at + width)
      const limits = [slice[0], slice.at(-1)] as [number, number]
      const read = await this.#read(segment, this.#statement(segment, segment.start, segment.end, limits))
      at += slice.length
      width = nextWidth(width, read)
    }
  }

  /** Of the domains that the query is about, in ascending order. */
  async #domainScopes(): Promise<number[]> {
    const conditions = this.#query.filter
      .filter(({ attribute }) => attribute === 'domain')
      .map((entry) => conditionOf(entry, this.#store.kind))
    const rows = await this.#store.read({
      sql: `SELECT s.no FROM figure_scopes s
        WHERE s.account_id IN (${this.#accountIds.map(() => '?')}) AND s.domain_name <> ''
          ${conditions.map(({ sql }) => `AND ${sql}`).join(' ')} ORDER BY s.no`,
      values: [...this.#accountIds, ...conditions.flatMap(({ values }) => values)],
    })
    return rows.map(({ no }) => Number(no))
  }

  async #slicesOfTime(segment: Segment): Promise<void> {
    // A month of all values may be too much for one read.
    const step = segment.split.name === 'all' && segment.unit === 'month' ? 'day' : segment.unit
    let width = 1
    for (let from = segment.start; from < segment.end; ) {
      const to = Math.min(after(step, from, width), segment.end)
      const read = await this.#read(segment, this.#statement(segment, from, to))
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
    if (this.#rowsRead > ROWS_MAX) throw tooMuch('the query reads too many counters')
    return read
  }

  /** `scopes`: of the domains from the first to the last number only. */
  #statement(segment: Segment, from: number, to: number, scopes?: [number, number]): Statement {
    const { split, level, units } = segment
    const names = groupedBy(this.#query, segment)
    const columns = names.map((name) => `${columnOf(name, this.#query.resolution)} AS d_${name}`)
    const isDistinct = areDistinct(this.#query, segment)
    const sums = this.#counters.map((name) => (isDistinct ? `f.${name}` : `sum(f.${name}) AS ${name}`))
    const conditions = this.#query.filter
      .filter(({ attribute }) => attribute !== 'subaccount' && !(attribute === 'tag' && split.name === 'all'))
      .map((entry) => conditionOf(entry, this.#store.kind))
    const sql = `SELECT ${[...columns, `${isDistinct ? 1 : 'count(*)'} AS n`, ...sums].join(', ')}
      FROM figure_scopes s CROSS JOIN figures f
      WHERE s.account_id IN (${this.#accountIds.map(() => '?')}) AND s.domain_name ${level === 'account' ? '=' : '<>'} ''
        ${scopes ? 'AND s.no >= ? AND s.no <= ?' : ''} AND f.scope = s.no AND f.split = ${SPLIT_NUMBERS[split.name]}
        AND f.unit IN (${units.map((unit) => UNIT_NUMBERS[unit])}) AND f.start_at >= ? AND f.start_at < ?
        ${conditions.map((condition) => `AND ${condition.sql}`).join(' ')}
      ${names.length > 0 && !isDistinct ? `GROUP BY ${names.map((_, at) => at + 1)}` : ''}`
    const given = conditions.flatMap(({ values }) => values)
    return { sql, values: [...this.#accountIds, ...(scopes ?? []), from, to, ...given] }
  }

  #add(row: Record<string, unknown>, segment: Segment): void {
    for (const tag of this.#tagsOf(row, segment)) {
      const values = this.#query.dimensions.map((name) => this.#valueOf(name, row, tag))
      const key = values.join('\n')
      let found = this.#found.get(key)
      if (!found) {
        found = { values, counts: noCounts() }
        this.#found.set(key, found)
        if (this.#found.size > ANSWER_ROWS_MAX) throw tooMuch(`more than ${ANSWER_ROWS_MAX} items`)
      }
      const counts: Counts = found.counts
      for (const name of this.#counters) {
        const count = row[name]
        if (count) counts[name] += Number(count)
      }
    }
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

const isAttempted = ({ counts }: FigureRow) =>
  COUNTERS.some((name) => counts[name] !== 0 && !name.startsWith('accepted_'))

const tooMuch = (what: string) =>
  new BadRequest(`${what}: ask for fewer dimensions, a shorter time or a domain`)

/** So that the next read has about ROWS_PER_READ rows. */
function nextWidth(width: number, read: number): number {
  const fitting = Math.floor((width * ROWS_PER_READ) / Math.max(1, read))
  return Math.max(1, Math.min(fitting, width * 8))
}

/** Section 2: without regard to case. */
export function matches({ comparator, values }: FilterEntry, value: string): boolean {
  const text = value.toLowerCase()
  const isPart = comparator === 'contains' || comparator === 'not contains'
  const found = values.some((one) => (isPart ? text.includes(one.toLowerCase()) : text === one.toLowerCase()))
  return comparator === '=' || comparator === 'contains' ? found : !found
}

/** A message with several values has one of them, or none. */
function matchesAny(entry: FilterEntry, values: readonly string[]): boolean {
  const isDenied = entry.comparator === '!=' || entry.comparator === 'not contains'
  return isDenied
    ? values.every((value) => matches(entry, value))
    : values.some((value) => matches(entry, value))
}

/** Whether no two rows of the segment belong to one item, so that the database need not sort them into groups. */
function areDistinct(query: FigureQuery, { split, level, unit }: Segment): boolean {
  const { accountIds, dimensions, resolution } = query
  const ofOne = level === 'account' && (accountIds.length === 1 || dimensions.includes('subaccount'))
  return (
    split.name !== 'all' &&
    unit === resolution &&
    dimensions.includes('time') &&
    (ofOne || dimensions.includes('domain')) &&
    split.values.every((value) => dimensions.some((name) => isValue(name) && VALUE_OF[name] === value))
  )
}

/** The dimensions, and the lists of tags where those are filtered afterwards. */
function groupedBy({ dimensions, filter }: FigureQuery, { split }: Segment): Dimension[] {
  const filtersLists = split.name === 'all' && filter.some(({ attribute }) => attribute === 'tag')
  return filtersLists ? [...new Set<Dimension>([...dimensions, 'tag'])] : [...dimensions]
}

function columnOf(name: Dimension, resolution: Unit = 'hour'): string {
  switch (name) {
    case 'time':
      // Rows of all values may be of shorter units.
      return resolution === 'hour' ? 'f.start_at' : `f.start_at - f.start_at % ${DAY_MS}`
    case 'domain':
      return 's.domain_name'
    case 'subaccount':
      return 's.account_id'
    default: {
      const absent = ABSENT[name]
      const column = `f.${VALUE_OF[name]}`
      return absent === undefined ? column : `coalesce(nullif(${column}, ''), '${absent}')`
    }
  }
}

function conditionOf(
  { attribute, comparator, values }: FilterEntry,
  kind: Store['kind'],
): { sql: string; values: SqlValue[] } {
  // Names of domains are stored in lower case, and found by an index.
  const column = attribute === 'domain' ? columnOf(attribute) : `lower(${columnOf(attribute)})`
  const find = kind === 'sqlite' ? 'instr' : 'strpos'
  const isPart = comparator === 'contains' || comparator === 'not contains'
  const isDenied = comparator === '!=' || comparator === 'not contains'
  const sql = isPart
    ? `(${values.map(() => `${find}(${column}, ?) > 0`).join(' OR ')})`
    : `${column} IN (${values.map(() => '?')})`
  return { sql: isDenied ? `NOT ${sql}` : sql, values: values.map((value) => value.toLowerCase()) }
}
