/** Sums increments per row of figures, and per entry of packs. */
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Statement } from '../../../platform/store/store.ts'
import type { Counter, PlainValues } from '../counters.ts'
import { type RowUnit, startOf } from '../intervals.ts'
import { addStatements, type RowOfCounts } from './figure-rows.ts'
import { type DayOfScope, nameOf, type PackedEntry, packStatement, WHOLE } from './packs.ts'
import type { LongUnit, Places } from './places.ts'
import type { NumberOfScope, ScopeName } from './scopes.ts'
import { addCount, COUNTER_PLACES, type CounterCounts, SPLITS, type Split } from './splits.ts'

export interface Addition {
  accountId: string
  domainName: string
  /** In lower case, distinct. */
  tags: readonly string[]
  values: PlainValues
  /** Unix milliseconds. */
  at: number
  counters: readonly Counter[]
}

/** What is counted of a domain, or of an account as a whole. */
interface Scope extends ScopeName {
  /** By the place of the split in `splits` and that of the unit; then by start; then by the name of the values. */
  rows: ByStart<Row>[][]
  /** By the start of the day and the entry's name. */
  packs: ByStart<PackedEntry>
}

/** Its scope gets a number when it is written. */
type Row = Omit<RowOfCounts, 'scope'>

/** By start, in Unix milliseconds, and by name. */
type ByStart<T> = Map<number, Map<string, T>>

/** Starts of the intervals that contain a time: each is used by several splits. */
type Starts = Readonly<Record<RowUnit, number>>

/**
 * `written` and `arePacked`: see places.ts. `splits`: those that have what is counted.
 *
 * Events of one domain and hour with the same values are added to the same rows, which are found for the first of them only.
 */
export function createTally(
  { written, arePacked }: Pick<Places, 'written' | 'arePacked'>,
  splits: readonly Split[] = SPLITS,
) {
  const scopes = new Map<string, Map<string, Scope>>()
  /** The counts that an event is added to, by what `nameOf` names. */
  const known = new Map<string, readonly CounterCounts[]>()
  let size = 0

  function scopeOf(accountId: string, domainName: string): Scope {
    let domains = scopes.get(accountId)
    if (!domains) {
      domains = new Map()
      scopes.set(accountId, domains)
    }
    let scope = domains.get(domainName)
    if (!scope) {
      scope = { accountId, domainName, rows: splits.map(() => []), packs: new Map() }
      domains.set(domainName, scope)
    }
    return scope
  }

  /** The sums of the row of each unit with these values. */
  function* countsOfRows(
    { rows: bySplit }: Scope,
    { at, units }: Rows,
    of: Combination,
    { starts, values }: Entry,
  ): Generator<CounterCounts> {
    const split = splits[at] as Split
    const byUnit = bySplit[at] as ByStart<Row>[]
    for (const [index, unit] of units.entries()) {
      const start = starts[unit]
      const isMade = index > 0 || split.source !== undefined
      if (isMade && start >= written[unit as LongUnit]) continue
      byUnit[index] ??= new Map()
      const rows = namesAt(byUnit[index], start)
      let row = rows.get(of.name)
      if (!row) {
        row = { split, unit, start, tag: of.tag, values, counts: [] }
        rows.set(of.name, row)
        size++
      }
      yield row.counts
    }
  }

  function countsInPack({ packs }: Scope, { tags, values }: Addition, { starts }: Entry): CounterCounts {
    const entries = namesAt(packs, starts.day)
    if (entries.size === 0) size++
    const hour = (starts.hour - starts.day) / HOUR_MS
    const tag = tagList(tags)
    const name = nameOf(hour, tag, values)
    let entry = entries.get(name)
    if (!entry) {
      entry = { hour, values: { ...values, tag }, counts: [] }
      entries.set(name, entry)
    }
    return entry.counts
  }

  function* countsFor(addition: Addition): Generator<CounterCounts> {
    const { accountId, domainName, at, values } = addition
    const domain = scopeOf(accountId, domainName)
    const account = scopeOf(accountId, '')
    const entry = { starts: startsOf(at), values }
    for (const [place, split] of splits.entries()) {
      // Most events: nothing is made of their day yet.
      if (split.source !== undefined && entry.starts.day >= written.day) continue
      if (split.name === 'all' && arePacked) yield countsInPack(domain, addition, entry)
      else
        for (const combination of combinationsIn(split, addition)) {
          yield* countsOfRows(domain, { at: place, units: split.ofDomain }, combination, entry)
          yield* countsOfRows(account, { at: place, units: split.ofAccount }, combination, entry)
        }
    }
  }

  const all = () => [...scopes.values()].flatMap((domains) => [...domains.values()])
  const numbered = (numberOf: NumberOfScope) =>
    all().flatMap((counted) => {
      const scope = numberOf(counted.accountId, counted.domainName)
      return scope === null ? [] : [{ scope, counted }]
    })
  const packsOf = (numberOf: NumberOfScope) =>
    numbered(numberOf).flatMap(({ scope, counted }) =>
      [...counted.packs].map(([start, entries]) => ({ scope, start, entries })),
    )

  return {
    add(addition: Addition): void {
      const { accountId, domainName, at, tags, values, counters } = addition
      const name = `${accountId}\n${domainName}\n${nameOf(startOf('hour', at), tagList(tags), values)}`
      let found = known.get(name)
      if (!found) {
        found = [...countsFor(addition)]
        known.set(name, found)
      }
      for (const counts of found) for (const counter of counters) addCount(counts, COUNTER_PLACES[counter], 1)
    },
    /** Rows that the statements write, packs included. */
    get size() {
      return size
    },
    /** Whose rows and packs the statements write. */
    scopes: (): ScopeName[] => all().map(({ accountId, domainName }) => ({ accountId, domainName })),
    /** The days that the statements add packs of. */
    days: (numberOf: NumberOfScope): DayOfScope[] =>
      packsOf(numberOf).map(({ scope, start }) => ({ scope, start })),
    /** Their transaction begins with WAIT_FOR_COUNTING or the follower's position, so that two cannot lock each other out. */
    statements(numberOf: NumberOfScope): Statement[] {
      const rows = numbered(numberOf).flatMap(({ scope, counted }) => [...rowsOf(counted, scope)])
      const packs = packsOf(numberOf).map(({ entries, ...day }) =>
        packStatement({ ...day, unit: 'hour', entries: [...entries.values()] }),
      )
      return [...addStatements(rows), ...packs]
    },
  }
}

function namesAt<T>(starts: ByStart<T>, start: number): Map<string, T> {
  let names = starts.get(start)
  if (!names) {
    names = new Map()
    starts.set(start, names)
  }
  return names
}

function* rowsOf({ rows }: Scope, scope: number): Generator<RowOfCounts> {
  // An array with holes: of made units there are rows of late events only.
  for (const byUnit of rows)
    for (const byStart of byUnit)
      for (const names of byStart?.values() ?? []) for (const row of names.values()) yield { scope, ...row }
}

/** The units of a split, by its place. */
interface Rows {
  at: number
  units: readonly RowUnit[]
}

interface Entry {
  starts: Starts
  values: PlainValues
}

const startsOf = (at: number): Starts => ({
  hour: startOf('hour', at),
  day: startOf('day', at),
  week: startOf('week', at),
  month: startOf('month', at),
})

/** The values of a row in a split. */
interface Combination {
  /** Different for different values of one split. */
  name: string
  tag: string
}

const NONE: readonly Combination[] = [{ name: '', tag: '' }]

/** The rows of a split that an event belongs to: one, or one for each tag. */
function combinationsIn(split: Split, { tags, values }: Addition): readonly Combination[] {
  if (split.name === 'none') return NONE
  if (split.name === 'all') {
    const tag = tagList(tags)
    return [{ name: nameOf(WHOLE, tag, values), tag }]
  }
  let name = ''
  let isByTag = false
  for (const value of split.values)
    if (value === 'tag') isByTag = true
    else name += `\n${values[value]}`
  return isByTag ? tags.map((tag) => ({ name: `${name}\n${tag}`, tag })) : [{ name, tag: '' }]
}

const tagList = (tags: readonly string[]) => (tags.length === 0 ? '' : JSON.stringify([...tags].sort()))
