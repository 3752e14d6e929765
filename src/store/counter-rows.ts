/** Row types of the tables of migrations 0019, 0039, 0040, 0070 and 0260; schema.ts lists them with the others. */
import type { Generated } from 'kysely'

/** A follower's cursor in commit order; all events up to and including it are processed. */
export interface EventFollowerRow {
  name: string
  tx: number
  seq: number
}

/** src/metrics/counters.ts defines what each column counts. */
export interface Counts {
  accepted_incoming: number
  accepted_outgoing: number
  delivered_smtp: number
  delivered_http: number
  delivered_optimized: number
  delivered_first: number
  delivered_later: number
  failed_temporary: number
  failed_temporary_espblock: number
  failed_permanent: number
  failed_suppress_bounce: number
  failed_suppress_unsubscribe: number
  failed_suppress_complaint: number
  failed_bounce: number
  failed_delayed_bounce: number
  failed_webhook: number
  failed_optimized: number
  failed_soft: number
  failed_old: number
  failed_permanent_espblock: number
  rate_limited: number
  stored: number
  opened: number
  opened_unique: number
  clicked: number
  clicked_unique: number
  unsubscribed: number
  complained: number
  accepted_listed: number
  test_delivered: number
  archived: number
}

/** Empty: the row is not split by this value, or its events have none. */
export interface FigureValues {
  /** In lower case; in rows with all values a JSON list. */
  tag: string
  recipient_domain: string
  provider: string
  ip: string
  pool: string
  country: string
  device: string
  bot: string
}

/** `scope` is the number of a row in `figure_scopes`; src/metrics/splits.ts has the numbers of split and unit. */
export interface FigureRow extends FigureValues, Record<keyof Counts, number | null> {
  scope: number
  split: number
  unit: number
  /** Unix milliseconds. */
  start_at: number
}

/** Counts of all values of a domain; src/metrics/packs.ts reads and writes `packed`. Rows that differ in `part` add up. */
export interface FigurePackRow {
  scope: number
  unit: number
  /** Of the day that hours are in, or of the interval. Unix milliseconds. */
  start_at: number
  part: number
  entries: number
  packed: Uint8Array
}

export interface FigureScopeRow {
  no: Generated<number>
  account_id: string
  /** Empty: the account as a whole. */
  domain_name: string
  /** Of accounts: pairs of a tag and another value are made of days from then on (tag-pairs.ts). Unix milliseconds. */
  pairs_since: Generated<number>
}

/** Of a unit whose rows are made from shorter ones. */
export interface FigurePlaceRow {
  unit: number
  /** Events of intervals that begin before this time are added to rows of this unit as well. Unix milliseconds. */
  written: number
  /** Rows of intervals that begin before this time are complete. */
  until: number
}

export interface CountedVisitRow {
  visit: string
  counted_at: number
}
