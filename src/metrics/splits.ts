/**
 * Which combinations of values are counted (decision 66). A full table of all combinations would have about a row per
 * event and unit; so there are a few narrow ones, which answer nearly all questions, and one with all values by the hour,
 * which answers the rest.
 */
import type { FigureValues } from '../store/counter-rows.ts'
import type { Unit } from './intervals.ts'

export type ValueName = keyof FigureValues

export const VALUE_NAMES = [
  'tag',
  'recipient_domain',
  'provider',
  'ip',
  'pool',
  'country',
  'device',
  'bot',
] as const satisfies readonly ValueName[]

/** In the columns `split` and `unit`. */
export const SPLIT_NUMBERS = { none: 0, tag: 1, path: 2, visit: 3, recipient: 4, all: 5 } as const
export type SplitName = keyof typeof SPLIT_NUMBERS
export const UNIT_NUMBERS: Readonly<Record<Unit, number>> = { hour: 0, day: 1, month: 2 }

export interface Split {
  name: SplitName
  values: readonly ValueName[]
  /** Units of the rows of each domain, shortest first. Events are added to the first; the others are made (roll-up.ts). */
  ofDomain: readonly Unit[]
  /** The same for the account as a whole. */
  ofAccount: readonly Unit[]
}

const EACH = ['hour', 'day', 'month'] as const
const LONG = ['day', 'month'] as const

/** Fewest rows first. Most of what is left out is left out by domain and hour, where rows would be as many as events. */
export const SPLITS: readonly Split[] = [
  { name: 'none', values: [], ofDomain: EACH, ofAccount: EACH },
  { name: 'path', values: ['provider', 'ip', 'pool'], ofDomain: LONG, ofAccount: EACH },
  { name: 'visit', values: ['country', 'device', 'bot'], ofDomain: LONG, ofAccount: EACH },
  { name: 'tag', values: ['tag'], ofDomain: LONG, ofAccount: LONG },
  { name: 'recipient', values: ['recipient_domain', 'provider'], ofDomain: [], ofAccount: LONG },
  // Rows of an hour become rows of a day, and those a row of a month, when their time has passed (compaction.ts).
  { name: 'all', values: VALUE_NAMES, ofDomain: ['hour'], ofAccount: [] },
]
