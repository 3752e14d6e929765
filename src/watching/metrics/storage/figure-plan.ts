/**
 * Chooses what a query of figures reads (decision 66). Pure.
 *
 * 1. The range is divided into the longest units: whole months, the days beside them, the hours beside those; whole weeks
 *    instead of days where rows of weeks are kept. With the dimension time it stays one segment of the resolution.
 * 2. Each segment is read from the first split that has its unit and the values that dimensions and filters name, of the
 *    account as a whole if no domain is named.
 * 3. Where the rows of a unit are not made yet (roll-up.ts), those of the next shorter unit are read, then of other splits.
 */

import { VALUE_NAMES, type ValueName } from '../counters.ts'
import type { Attribute, Dimension, FigureQuery, FilterEntry } from '../figures.ts'
import { type RowUnit, roundUp, startOf, UNITS, type Unit } from '../intervals.ts'
import type { LongUnit, Until } from './places.ts'
import { SPLITS, type Split, splitOf } from './splits.ts'

export const VALUE_OF: Readonly<Record<Exclude<Dimension, 'time' | 'domain' | 'subaccount'>, ValueName>> = {
  ip: 'ip',
  ip_pool: 'pool',
  tag: 'tag',
  recipient_domain: 'recipient_domain',
  recipient_provider: 'provider',
  country: 'country',
  device: 'device',
  bot: 'bot',
}

export interface Segment {
  split: Split
  level: 'domain' | 'account'
  /** The units of rows that count; several only where all values are kept, whose rows become longer with time. */
  units: readonly RowUnit[]
  /** The unit that the range is made of. */
  unit: RowUnit
  /** Unix milliseconds; the end is exclusive. */
  start: number
  end: number
}

/** `until`: see places.ts. `pairsSince`: pairs of a tag and another value are made of later days only; Unix milliseconds. */
export function planOf(query: FigureQuery, until: Until, pairsSince = 0): Segment[] {
  const named = [...query.dimensions, ...query.filter.map(({ attribute }) => attribute)]
  const values = named.flatMap((name) => (isValue(name) ? VALUE_OF[name] : []))
  const level = named.includes('domain') ? 'domain' : 'account'
  const byTag = query.dimensions.includes('tag') || tagSelectsRows(query.filter)
  const fits = SPLITS.filter(
    ({ values: kept }) =>
      values.every((value) => kept.includes(value)) &&
      (!kept.includes('tag') || kept.length === VALUE_NAMES.length || byTag),
  )
  const plan = new Plan(level, { until, pairsSince, withWeeks: !query.dimensions.includes('time') })
  return rangesOf(query).flatMap((range) => plan.segmentsOf(range, fits))
}

interface Made {
  until: Until
  pairsSince: number
  /** Whether whole weeks may be read instead of days. */
  withWeeks: boolean
}

const SHORTER: Readonly<Record<RowUnit, RowUnit | null>> = {
  hour: null,
  day: 'hour',
  week: 'day',
  month: 'day',
}

class Plan {
  readonly #level: Segment['level']
  readonly #made: Made

  constructor(level: Segment['level'], made: Made) {
    this.#level = level
    this.#made = made
  }

  /** Reads the first of the splits that has rows of the range's unit. */
  segmentsOf(range: Range, splits: readonly Split[]): Segment[] {
    if (range.start >= range.end) return []
    const at = splits.findIndex((split) => split.name !== 'all' && this.#unitsOf(split).includes(range.unit))
    const split = splits[at]
    // Rows of all values are not by week.
    const unit = range.unit === 'week' ? 'day' : range.unit
    if (split) return this.#rowsOf(split, range, splits.slice(at + 1))
    const all = splitOf('all')
    return [{ split: all, level: 'domain', units: UNITS.slice(0, UNITS.indexOf(unit) + 1), ...range, unit }]
  }

  #unitsOf(split: Split): readonly RowUnit[] {
    return this.#level === 'account' ? split.ofAccount : split.ofDomain
  }

  #rowsOf(split: Split, range: Range, others: readonly Split[]): Segment[] {
    const { unit, start, end } = range
    if (unit !== 'day' || !this.#made.withWeeks || !this.#unitsOf(split).includes('week'))
      return this.#madeOf(split, range, others)
    const [from, to] = [roundUp('week', start), startOf('week', end)]
    if (from >= to) return this.#madeOf(split, range, others)
    return [
      ...this.#madeOf(split, { unit, start, end: from }, others),
      ...this.#madeOf(split, { unit: 'week', start: from, end: to }, others),
      ...this.#madeOf(split, { unit, start: to, end }, others),
    ]
  }

  /** Rows of the range's unit as far as they are made, then those of shorter units, or of other splits. */
  #madeOf(split: Split, { unit, start, end }: Range, others: readonly Split[]): Segment[] {
    if (start >= end) return []
    const isCounted = this.#unitsOf(split)[0] === unit && split.source === undefined
    const { until, pairsSince } = this.#made
    const since = split.source === 'all' ? roundUp(unit, pairsSince) : start
    const from = isCounted ? start : Math.min(Math.max(start, since), end)
    const to = isCounted ? end : Math.max(from, Math.min(end, roundUp(unit, until[unit as LongUnit])))
    const before = { start, end: from }
    const segments =
      unit === 'week'
        ? this.#madeOf(split, { unit: 'day', ...before }, others)
        : this.segmentsOf({ unit, ...before }, others)
    if (from < to) segments.push({ split, level: this.#level, units: [unit], unit, start: from, end: to })
    const shorter = SHORTER[unit]
    const rest = { start: to, end }
    if (shorter !== null && this.#unitsOf(split).includes(shorter)) {
      const read = unit === 'month' ? this.#rowsOf : this.#madeOf
      segments.push(...read.call(this, split, { unit: shorter, ...rest }, others))
    } else segments.push(...this.segmentsOf({ unit, ...rest }, others))
    return segments
  }
}

/** Whether it is a column of figures. */
export const isValue = (name: Dimension | Attribute): name is keyof typeof VALUE_OF =>
  Object.hasOwn(VALUE_OF, name)

/**
 * Without the dimension tag a message counts once, whichever of its tags matches: rows of tags tell that only if exactly one
 * tag is asked for.
 */
function tagSelectsRows(filter: readonly FilterEntry[]): boolean {
  const [entry, ...more] = filter.filter(({ attribute }) => attribute === 'tag')
  return entry !== undefined && more.length === 0 && entry.comparator === '=' && entry.values.length === 1
}

type Range = Pick<Segment, 'unit' | 'start' | 'end'>

function rangesOf({ dimensions, resolution, startMs, endMs }: FigureQuery): Range[] {
  const start = startOf(resolution, startMs)
  const end = roundUp(resolution, endMs)
  if (start >= end) return []
  if (dimensions.includes('time')) return [{ unit: resolution, start, end }]
  return dividedBy('month', start, end)
}

/** Whole units in the middle, shorter ones on both sides. */
function dividedBy(unit: Unit, start: number, end: number): Range[] {
  if (unit === 'hour') return start < end ? [{ unit, start, end }] : []
  const shorter = UNITS[UNITS.indexOf(unit) - 1] as Unit
  const [from, to] = [roundUp(unit, start), startOf(unit, end)]
  if (from >= to) return dividedBy(shorter, start, end)
  return [...dividedBy(shorter, start, from), { unit, start: from, end: to }, ...dividedBy(shorter, to, end)]
}
