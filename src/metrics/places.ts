/** Up to where rows of days and months exist (decision 71): what counting adds to, and what queries may read. */
import { DAY_MS } from '../events/event-retention.ts'
import type { Statement, Store } from '../store/store.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'

export type LongUnit = 'day' | 'month'

/** Per unit: events of intervals that begin before this time are added to its rows. Unix milliseconds. */
export type Written = Readonly<Record<LongUnit, number>>
/** Per unit: rows of intervals that begin before this time are complete. */
export type Until = Readonly<Record<LongUnit, number>>

export async function placesOf(store: Store): Promise<{ written: Written; until: Until }> {
  const rows = await store.read({ sql: 'SELECT unit, written, until FROM figure_places', values: [] })
  const of = (column: 'written' | 'until') => {
    const at = (unit: LongUnit) =>
      Number(rows.find((row) => Number(row['unit']) === UNIT_NUMBERS[unit])?.[column])
    return { day: at('day'), month: at('month') }
  }
  return { written: of('written'), until: of('until') }
}

/** Fails the transaction (`StaleWrite`) if events are to be added to other rows by now. */
export const unmoved = ({ day, month }: Written): Statement => ({
  sql: 'UPDATE figure_places SET written = written WHERE (unit = ? AND written = ?) OR (unit = ? AND written = ?)',
  values: [UNIT_NUMBERS.day, day, UNIT_NUMBERS.month, month],
  expectRows: 2,
})

/**
 * Conditions of SQL on `figure_scopes CROSS JOIN figures` for mail as a whole. Each event is in one row of the two
 * together: of a day that is complete, or of an hour of another day.
 */
const DAYS_UNTIL = `(SELECT until FROM figure_places WHERE unit = ${UNIT_NUMBERS.day})`
export const OF_DAYS = `scope = no AND split = ${SPLIT_NUMBERS.none} AND unit = ${UNIT_NUMBERS.day}
  AND start_at < ${DAYS_UNTIL}`
export const OF_HOURS = `scope = no AND split = ${SPLIT_NUMBERS.none} AND unit = ${UNIT_NUMBERS.hour}
  AND start_at - start_at % ${DAY_MS} >= ${DAYS_UNTIL}`
