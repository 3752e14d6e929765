/** Row types of migration 0019's tables; schema.ts lists them with the others. */

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
