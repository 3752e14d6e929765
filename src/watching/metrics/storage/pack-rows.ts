/** Writes rows of `figure_packs`. */
import { randomInt } from 'node:crypto'
import { insert, type Statement } from '../../../platform/store/store.ts'
import type { Unit } from '../intervals.ts'
import { type PackedEntry, pack } from './packs.ts'
import { UNIT_NUMBERS } from './splits.ts'

/** A domain's day. */
export interface DayOfScope {
  /** A number of `figure_scopes`. */
  scope: number
  /** Of the day; Unix milliseconds. */
  start: number
}

/** Two rows of one interval must not have the same. */
const newPart = (): number => randomInt(2 ** 48 - 1)

export interface PackOfScope {
  /** A number of `figure_scopes`. */
  scope: number
  unit: Unit
  /** Of the day that hours are in, or of the interval; Unix milliseconds. */
  start: number
  entries: readonly PackedEntry[]
}

/** One row: the database joins such inserts. */
export const packStatement = ({ scope, unit, start, entries }: PackOfScope): Statement =>
  insert('figure_packs', {
    scope,
    unit: UNIT_NUMBERS[unit],
    start_at: start,
    part: newPart(),
    entries: entries.length,
    packed: pack(entries),
  })
