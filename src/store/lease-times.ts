/**
 * By whose clock leases are set and judged. Processes that share a PostgreSQL database go by its time: one whose own
 * clock is fast would else take what others hold. On SQLite one process has the database, and its clock will do.
 *
 * What falls due (mail, retries) goes by the clock of the process: nobody loses anything when it is off.
 */
import { type RawBuilder, sql } from 'kysely'

export interface LeaseTimes {
  /** SQL for a point in time: one `?`, which takes what `value` gives. */
  readonly sql: string
  /** `afterMs` from now. `now`: the caller's clock, in Unix milliseconds. */
  value(now: number, afterMs: number): number
  /** The same for the query builder. */
  expression(now: number, afterMs: number): RawBuilder<number>
}

/** The clock of the process, or of a test. */
export const ownLeaseTimes: LeaseTimes = {
  sql: '?',
  value: (now, afterMs) => Math.round(now + afterMs),
  expression: (now, afterMs) => sql<number>`${Math.round(now + afterMs)}`,
}

/** The database's clock, by a function that its migrations make. */
export const databaseLeaseTimes: LeaseTimes = {
  sql: 'time_from_now(?)',
  value: (_, afterMs) => Math.round(afterMs),
  expression: (_, afterMs) => sql<number>`time_from_now(${Math.round(afterMs)})`,
}
