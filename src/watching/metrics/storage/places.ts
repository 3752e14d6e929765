/** Up to where rows of days, weeks and months exist (decision 71): what counting adds to, and what queries may read. */

import { DAY_MS } from '../../../base/time/durations.ts'
import { listOf } from '../../../platform/store/lists.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'

const LONG_UNITS = ['day', 'week', 'month'] as const
export type LongUnit = (typeof LONG_UNITS)[number]

/** Per unit: events of intervals that begin before this time are added to its rows. Unix milliseconds. */
type Written = Readonly<Record<LongUnit, number>>
/** Per unit: rows of intervals that begin before this time are complete. */
export type Until = Readonly<Record<LongUnit, number>>

/** The number of a row that is no unit: whether counting writes packs. */
const PACKS = 4

export interface Places {
  written: Written
  until: Until
  /** Whether counts of all values are written as packs (packs.ts), not as rows. */
  arePacked: boolean
}

export async function placesOf(store: Store): Promise<Places> {
  const rows = await store.read({ sql: 'SELECT unit, written, until FROM figure_places', values: [] })
  const of = (column: 'written' | 'until') => {
    const at = (unit: LongUnit) =>
      Number(rows.find((row) => Number(row['unit']) === UNIT_NUMBERS[unit])?.[column])
    return { day: at('day'), week: at('week'), month: at('month') }
  }
  const packs = rows.find((row) => Number(row['unit']) === PACKS)
  return { written: of('written'), until: of('until'), arePacked: Number(packs?.['until']) === 1 }
}

/** Counting writes packs once no node runs that was started before there were any: it would not read them. */
export const startPacks: Statement = {
  sql: `UPDATE figure_places SET until = 1
    WHERE unit = ${PACKS} AND until = 0 AND NOT EXISTS (SELECT 1 FROM nodes WHERE started_at < written)`,
  values: [],
}

/** Since when rows of pairs of a tag and another value are made of days of all these accounts; Unix milliseconds. */
export async function pairsSince(store: Store, accountIds: readonly string[]): Promise<number> {
  const ids = listOf(store.kind, accountIds)
  const [row] = await store.read({
    sql: `SELECT max(pairs_since) AS since FROM figure_scopes WHERE account_id IN ${ids.sql} AND domain_name = ''`,
    values: ids.values,
  })
  return Number(row?.['since'] ?? 0)
}

/** Fails the transaction (`StaleWrite`) if events are to be added to other rows by now. */
export function unmoved({ written }: Pick<Places, 'written'>): Statement {
  return {
    sql: `UPDATE figure_places SET written = written
      WHERE ${LONG_UNITS.map(() => '(unit = ? AND written = ?)').join(' OR ')}`,
    values: LONG_UNITS.flatMap((unit) => [UNIT_NUMBERS[unit], written[unit]]),
    expectRows: LONG_UNITS.length,
  }
}

/**
 * Conditions of SQL on `figure_scopes CROSS JOIN figures` for mail as a whole. Each event is in one row of the two
 * together: of a day that is complete, or of an hour of another day.
 */
const DAYS_UNTIL = `(SELECT until FROM figure_places WHERE unit = ${UNIT_NUMBERS.day})`
export const OF_DAYS = `scope = no AND split = ${SPLIT_NUMBERS.none} AND unit = ${UNIT_NUMBERS.day}
  AND start_at < ${DAYS_UNTIL}`
export const OF_HOURS = `scope = no AND split = ${SPLIT_NUMBERS.none} AND unit = ${UNIT_NUMBERS.hour}
  AND start_at - start_at % ${DAY_MS} >= ${DAYS_UNTIL}`
