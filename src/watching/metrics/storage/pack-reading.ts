/** Reads packs (packs.ts) for a query of figures: counts of all values. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { COUNTERS, type Counter, type Counts, VALUE_NAMES } from '../counters.ts'
import type { Dimension, FilterEntry } from '../figures.ts'
import { matches, matchesAny } from '../filter.ts'
import { startOf } from '../intervals.ts'
import { type Segment, VALUE_OF } from './figure-plan.ts'
import { areOfDomains, domainScopes, shownValue, type Wanted } from './figure-sql.ts'
import { PackReader, WHOLE } from './packs.ts'
import { type Budget, byScopes, endsOf } from './reading.ts'
import { UNIT_NUMBERS } from './splits.ts'

/** Others have a turn after this time, which is looked at after each few entries: a filter may have 2,000 values. */
const TURN_MS = 5
const ENTRIES_PER_LOOK = 50
/** Bytes of packs that count as one row of figures: four entries take less time than a row. */
const BYTES_PER_ROW = 64
/** An entry has some 15 bytes. */
const BYTES_PER_ENTRY = 16
/** Packs of several domains in one read. */
const READ_MAX_BYTES = 8 * 1024 * 1024
const TAG = VALUE_NAMES.indexOf('tag')
/** The hours of a day, and the whole of it. */
const HOURS = 25

interface PackQuery {
  store: Store
  wanted: Wanted
  segment: Segment
  budget: Budget
  /** Where counts of the item with these values are added. */
  countsOf(values: readonly string[]): Counts
}

/**
 * Adds the counts of a segment's packs.
 * @throws BadRequest before it reads more than the budget allows
 */
export async function addPacks(query: PackQuery): Promise<void> {
  const { store, wanted, segment, budget } = query
  const adder = new PackAdder(query)

  /** Returns how many bytes were read. */
  async function read(scopes: readonly number[]): Promise<number> {
    const limits = endsOf(scopes)
    const [sum] = await store.read(statementOf('sum(length(p.packed)) AS bytes', segment, wanted, limits))
    const bytes = Number(sum?.['bytes'] ?? 0)
    if (bytes > READ_MAX_BYTES && scopes.length > 1) {
      const half = Math.ceil(scopes.length / 2)
      return (await read(scopes.slice(0, half))) + (await read(scopes.slice(half)))
    }
    budget.spend(bytes / BYTES_PER_ROW)
    if (bytes > 0) {
      const columns = 's.account_id, s.domain_name, p.start_at, p.packed'
      for (const row of await store.read(statementOf(columns, segment, wanted, limits)))
        await adder.add(row as unknown as PackRow)
    }
    return bytes
  }

  await byScopes(await domainScopes(store, wanted), async (some) => (await read(some)) / BYTES_PER_ENTRY)
}

interface PackRow {
  account_id: string
  domain_name: string
  start_at: number
  packed: Uint8Array
}

/** Packs of the domains from the first to the last number. */
function statementOf(
  columns: string,
  { units, start, end }: Segment,
  wanted: Wanted,
  scopes: readonly [number, number],
): Statement {
  const domains = areOfDomains(wanted)
  const ofDomains = `${domains.sql} AND s.no >= ? AND s.no <= ?`
  // Hours are in the pack of their day.
  const ofScope = `p.scope = s.no AND p.unit IN (${units.map((unit) => UNIT_NUMBERS[unit])})
    AND p.start_at >= ? AND p.start_at < ?`
  // As in figure-sql.ts.
  const from =
    wanted.kind === 'postgres'
      ? `(SELECT * FROM figure_scopes s WHERE ${ofDomains}) AS s
          CROSS JOIN LATERAL (SELECT * FROM figure_packs p WHERE ${ofScope} OFFSET 0) AS p`
      : `figure_scopes s CROSS JOIN figure_packs p WHERE ${ofDomains} AND ${ofScope}`
  return {
    sql: `SELECT ${columns} FROM ${from}`,
    values: [...domains.values, ...scopes, startOf('day', start), end],
  }
}

/** What is known of a text of a pack. */
const [UNKNOWN, PASSES, FAILS] = [0, 1, 2] as const

/** The place of a dimension in VALUE_NAMES; -1: the time. */
const placeOf = (name: Exclude<Dimension, 'domain' | 'subaccount'>): number =>
  name === 'time' ? -1 : VALUE_NAMES.indexOf(VALUE_OF[name])

class PackAdder {
  readonly #query: PackQuery
  /** Filters of values, with their place in VALUE_NAMES. */
  readonly #filters: { entry: FilterEntry; at: number }[]
  /** Where tags are a dimension, each tag is filtered alone. */
  readonly #tagFilters: readonly FilterEntry[]
  /** Places of those dimensions in which entries of a pack may differ. */
  readonly #places: readonly number[]
  /** By place; undefined: not wanted. */
  readonly #counters: readonly (Counter | undefined)[]
  #entries = 0
  #turnBeganAt = performance.now()

  constructor(query: PackQuery) {
    const { counters } = query.wanted
    const { dimensions, filter } = query.wanted.query
    this.#query = query
    this.#counters = COUNTERS.map((name) => (counters.includes(name) ? name : undefined))
    this.#places = dimensions.flatMap((name) =>
      name === 'domain' || name === 'subaccount' ? [] : [placeOf(name)],
    )
    const isByTag = dimensions.includes('tag')
    this.#tagFilters = isByTag ? filter.filter(({ attribute }) => attribute === 'tag') : []
    this.#filters = filter.flatMap((entry) => {
      const { attribute } = entry
      if (attribute === 'domain' || attribute === 'subaccount' || (attribute === 'tag' && isByTag)) return []
      return [{ entry, at: placeOf(attribute) }]
    })
  }

  async add(row: PackRow): Promise<void> {
    const { start, end } = this.#query.segment
    const reader = new PackReader(row.packed)
    const passing = this.#filters.map(() => new Uint8Array(reader.texts.length))
    /** By the texts of the dimensions: entries with the same are looked up once. */
    const items = new Map<number, readonly Counts[]>()
    while (reader.next()) {
      if (++this.#entries % ENTRIES_PER_LOOK === 0 && performance.now() - this.#turnBeganAt > TURN_MS) {
        await nextTurn()
        this.#turnBeganAt = performance.now()
      }
      const time = timeOf(row, reader)
      if (time < start || time >= end || !this.#passes(reader, passing)) continue
      const key = this.#keyOf(reader)
      let found = items.get(key)
      if (!found) {
        found = this.#itemsOf(row, reader)
        items.set(key, found)
      }
      for (const counts of found) this.#addCounts(counts, reader)
    }
  }

  #addCounts(counts: Counts, reader: PackReader): void {
    for (let at = 0; at < reader.size; at += 2) {
      const name = this.#counters[reader.counts[at] as number]
      if (name !== undefined) counts[name] += reader.counts[at + 1] as number
    }
  }

  #passes({ texts, values }: PackReader, passing: readonly Uint8Array[]): boolean {
    for (const [index, { entry, at }] of this.#filters.entries()) {
      const known = passing[index] as Uint8Array
      const place = values[at] as number
      if (known[place] === UNKNOWN) {
        const text = texts[place] as string
        const passes =
          at === TAG ? matchesAny(entry, tagsIn(text)) : matches(entry, shownValue(entry.attribute, text))
        known[place] = passes ? PASSES : FAILS
      }
      if (known[place] === FAILS) return false
    }
    return true
  }

  #keyOf({ texts, values, hour }: PackReader): number {
    const factor = Math.max(texts.length, HOURS)
    let key = 0
    for (const at of this.#places) key = key * factor + (at < 0 ? hour + 1 : (values[at] as number))
    return key
  }

  /** The counts of the items that an entry belongs to: one, or one for each tag. */
  #itemsOf(row: PackRow, reader: PackReader): Counts[] {
    const { wanted, countsOf } = this.#query
    const { dimensions, resolution } = wanted.query
    const textOf = (at: number) => reader.texts[reader.values[at] as number] as string
    const shown = (name: Dimension, tag: string) => {
      switch (name) {
        case 'time':
          return String(startOf(resolution, timeOf(row, reader)))
        case 'domain':
          return row.domain_name
        case 'subaccount':
          return row.account_id
        case 'tag':
          return tag
        default:
          return shownValue(name, textOf(placeOf(name)))
      }
    }
    const tags = dimensions.includes('tag') ? tagsIn(textOf(TAG)) : ['']
    return tags
      .filter((tag) => this.#tagFilters.every((entry) => matches(entry, tag)))
      .map((tag) => countsOf(dimensions.map((name) => shown(name, tag))))
  }
}

const timeOf = ({ start_at }: PackRow, { hour }: PackReader): number =>
  Number(start_at) + (hour === WHOLE ? 0 : hour * HOUR_MS)

const tagsIn = (list: string): string[] => (list === '' ? [] : (JSON.parse(list) as string[]))
