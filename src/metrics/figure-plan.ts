/**
 * Chooses what a query of figures reads (decision 66). Pure.
 *
 * 1. The range is divided into the longest units: whole months, the days beside them, the hours beside those. With the
 *    dimension time it stays one segment of the resolution.
 * 2. Each segment is read from the first split that has its unit and the values that dimensions and filters name, of the
 *    account as a whole if no domain is named.
 * 3. Where the rows of a unit are not made yet (roll-up.ts), those of the next shorter unit are read.
 */
import type { Attribute, Dimension, FigureQuery, FilterEntry } from './figures.ts'
import { after, startOf, UNITS, type Unit } from './intervals.ts'
import type { LongUnit, Until } from './places.ts'
import { SPLITS, type Split, type ValueName } from './splits.ts'

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
  units: readonly Unit[]
  /** The unit that the range is made of. */
  unit: Unit
  /** Unix milliseconds; the end is exclusive. */
  start: number
  end: number
}

/** `until`: see places.ts. */
export function planOf(query: FigureQuery, until: Until): Segment[] {
  const named = [...query.dimensions, ...query.filter.map(({ attribute }) => attribute)]
  const values = named.flatMap((name) => (isValue(name) ? VALUE_OF[name] : []))
  const byDomain = named.includes('domain')
  return rangesOf(query).flatMap((range): Segment[] => {
    const whole = query.dimensions.includes('tag') || tagSelectsRows(query.filter)
    const fits = SPLITS.filter(
      ({ name, values: kept }) => values.every((value) => kept.includes(value)) && (name !== 'tag' || whole),
    )
    for (const split of fits) {
      if (!byDomain && split.ofAccount.includes(range.unit)) return existing(split, 'account', range, until)
      if (split.name === 'all') break
      if (split.ofDomain.includes(range.unit)) return existing(split, 'domain', range, until)
    }
    const all = SPLITS.find(({ name }) => name === 'all') as Split
    return [{ split: all, level: 'domain', units: UNITS.slice(0, UNITS.indexOf(range.unit) + 1), ...range }]
  })
}

/** Rows of the range's unit as far as they are made, then those of shorter units. */
function existing(split: Split, level: Segment['level'], range: Range, until: Until): Segment[] {
  const { unit, start, end } = range
  const units = level === 'account' ? split.ofAccount : split.ofDomain
  const shorter = units[units.indexOf(unit) - 1]
  const made = shorter === undefined ? end : Math.min(end, roundUp(unit, until[unit as LongUnit]))
  const segments: Segment[] = start < made ? [{ split, level, units: [unit], unit, start, end: made }] : []
  const from = Math.max(start, made)
  if (shorter !== undefined && from < end)
    segments.push(...existing(split, level, { unit: shorter, start: from, end }, until))
  return segments
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

function roundUp(unit: Unit, time: number): number {
  const start = startOf(unit, time)
  return start === time ? time : after(unit, start)
}
