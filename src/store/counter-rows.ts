/** The tables of migration 0019 as Kysely sees them; schema.ts names them among the others. */

/** A place in the order of commits; all events up to it are taken into account. */
export interface EventFollowerRow {
  name: string
  tx: number
  seq: number
}

/** What each counts: src/metrics/counters.ts. */
export interface Counts {
  accepted_incoming: number
  accepted_outgoing: number
  delivered_smtp: number
  delivered_http: number
  delivered_optimized: number
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
  stored: number
  opened: number
  opened_unique: number
  clicked: number
  clicked_unique: number
  unsubscribed: number
  complained: number
}

export interface CounterRow extends Counts {
  account_id: string
  domain_name: string
  /** Lower case; empty: all mail of the domain. */
  tag: string
  unit: 'hour' | 'day' | 'month'
  start_at: number
}

export interface CountedVisitRow {
  visit: string
  counted_at: number
}
