/**
 * Which combinations of values are counted (decision 66). A full table of all combinations would have about a row per
 * event and unit; so there are a few narrow ones, which answer nearly all questions, and one with all values by the hour,
 * which answers the rest.
 */
import type { FigureRow } from '../../../platform/store/schema.ts'
import type { RowUnit } from '../intervals.ts'

export const VALUE_NAMES = [
  'tag',
  'recipient_domain',
  'provider',
  'ip',
  'pool',
  'country',
  'device',
  'bot',
] as const satisfies readonly (keyof FigureRow)[]
export type ValueName = (typeof VALUE_NAMES)[number]

/**
 * Empty: the row is not split by this value, or its events have none. Tags are in lower case; in rows with all values they
 * are a JSON list.
 */
export type FigureValues = Record<ValueName, string>

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
  /** Set: rows of the first unit are made too, from those of this split; it answers for the time of which they are not. */
  source?: SplitName
}

const EACH = ['hour', 'day', 'month'] as const
const LONG = ['day', 'month'] as const
const WITH_WEEKS = ['day', 'week', 'month'] as const

/**
 * Fewest rows first. Most of what is left out is left out by domain and hour, where rows would be as many as events. Weeks
 * are kept where a week has far fewer rows than its days, and where a range of 30 days has most.
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
