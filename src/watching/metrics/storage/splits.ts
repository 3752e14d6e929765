/**
 * How figures are stored (decision 66). Its words:
 *
 * - A *scope* is what a row counts: a domain, or an account as a whole.
 * - A *split* is a combination of values that rows are kept by, such as country and device. Rows of all combinations would
 *   be as many as events; so there are a few narrow splits, which answer nearly all questions.
 * - A *pack* holds the counts of all combinations of a domain's day in one row (packs.ts). It answers the rest.
 * - A *place* is the time up to which rows of days, weeks and months are made from those of shorter units (places.ts).
 */
import { COUNTERS, type Counter, VALUE_NAMES, type ValueName } from '../counters.ts'
import type { RowUnit } from '../intervals.ts'

/** In the columns `split` and `unit`. */
export const SPLIT_NUMBERS = {
  none: 0,
  tag: 1,
  path: 2,
  visit: 3,
  recipient: 4,
  all: 5,
  country: 6,
  tag_country: 7,
  tag_provider: 8,
} as const
export type SplitName = keyof typeof SPLIT_NUMBERS
export const UNIT_NUMBERS: Readonly<Record<RowUnit, number>> = { hour: 0, day: 1, month: 2, week: 3 }

export interface Split {
  name: SplitName
  values: readonly ValueName[]
  /** Units of the rows of each domain, shortest first. Events are added to the first; the others are made (roll-up.ts). */
  ofDomain: readonly RowUnit[]
  /** The same for the account as a whole. */
  ofAccount: readonly RowUnit[]
  /** Set: rows of the first unit are made too, from those of this split, which is read for the time without them. */
  source?: SplitName
}

const EACH = ['hour', 'day', 'month'] as const
const LONG = ['day', 'month'] as const
const WITH_WEEKS = ['day', 'week', 'month'] as const

/**
 * Fewest rows first. By domain and hour most splits have no rows: they would be as many as events. Weeks are kept in splits
 * whose rows of seven days are many more than one row of the week.
 */
export const SPLITS: readonly Split[] = [
  { name: 'none', values: [], ofDomain: ['hour', ...WITH_WEEKS], ofAccount: EACH },
  { name: 'country', values: ['country'], ofDomain: WITH_WEEKS, ofAccount: [], source: 'visit' },
  { name: 'path', values: ['provider', 'ip', 'pool'], ofDomain: WITH_WEEKS, ofAccount: EACH },
  { name: 'visit', values: ['country', 'device', 'bot'], ofDomain: LONG, ofAccount: EACH },
  { name: 'tag', values: ['tag'], ofDomain: WITH_WEEKS, ofAccount: WITH_WEEKS },
  { name: 'recipient', values: ['recipient_domain', 'provider'], ofDomain: [], ofAccount: LONG },
  { name: 'tag_country', values: ['tag', 'country'], ofDomain: [], ofAccount: WITH_WEEKS, source: 'all' },
  { name: 'tag_provider', values: ['tag', 'provider'], ofDomain: [], ofAccount: WITH_WEEKS, source: 'all' },
  // Rows of an hour become rows of a day, and those a row of a month, when their time has passed (packing.ts).
  { name: 'all', values: VALUE_NAMES, ofDomain: ['hour'], ofAccount: [] },
]

export const splitOf = (name: SplitName) => SPLITS.find((split) => split.name === name) as Split
/** Pairs of a tag and another value, of accounts: made from rows of all values, whose tags are lists (tag-pairs.ts). */
export const TAG_PAIRS = SPLITS.filter(({ source }) => source === 'all')

/**
 * Counts of few counters: pairs of a counter's place in COUNTERS and its count, which is not 0. An object with all counters
 * would be most of the memory that counting needs.
 */
export type CounterCounts = number[]

/** Packs name counters by these: the list of counters may only grow at its end. */
export const COUNTER_PLACES = Object.fromEntries(COUNTERS.map((name, at) => [name, at])) as Readonly<
  Record<Counter, number>
>

export function addCount(counts: CounterCounts, place: number, count: number): void {
  for (let at = 0; at < counts.length; at += 2)
    if (counts[at] === place) {
      counts[at + 1] = (counts[at + 1] as number) + count
      return
    }
  counts.push(place, count)
}

/** Null: it is 0. */
export function countAt(counts: CounterCounts, place: number): number | null {
  for (let at = 0; at < counts.length; at += 2) if (counts[at] === place) return counts[at + 1] as number
  return null
}
