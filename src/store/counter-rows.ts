/** What the columns of the table `figures` are besides its key. */

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
