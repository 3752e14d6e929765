/**
 * The clock by which leases are set and compared. Processes that share a PostgreSQL database use the database's time:
 * with its own clock, a process whose clock is fast would take over leases that others still hold. On SQLite one process
 * owns the database and uses its own clock.
 *
 * Due times (mail, retries) use the clock of the process: a clock that is off loses nothing there.
 */
import { type RawBuilder, sql } from 'kysely'

export interface LeaseTimes {
  /** SQL expression for a point in time, with one `?` for what `value` returns. */
  readonly sql: string
  /** The parameter for `afterMs` from now. `now`: the caller's clock, in Unix milliseconds. */
  value(now: number, afterMs: number): number
  /** The same for the query builder. */
  expression(now: number, afterMs: number): RawBuilder<number>
}

/** Uses the caller's clock. */
export const ownLeaseTimes: LeaseTimes = {
  sql: '?',
  value: (now, afterMs) => Math.round(now + afterMs),
  expression: (now, afterMs) => sql<number>`${Math.round(now + afterMs)}`,
}

/** Uses the database's clock, through a function that a migration creates. */
export const databaseLeaseTimes: LeaseTimes = {
  sql: 'time_from_now(?)',
  value: (_, afterMs) => Math.round(afterMs),
  expression: (_, afterMs) => sql<number>`time_from_now(${Math.round(afterMs)})`,
}
