/** Reads counters, and tells them as the statistics operations do (tags-stats.md sections 3 and 4). */
import { formatUtc } from '../http/dates.ts'
import type { Counts } from '../store/counter-rows.ts'
import type { Store } from '../store/store.ts'
import { COUNTERS, noCounts } from './counters.ts'
import { after, type Unit } from './intervals.ts'
import type { StatsEvent, StatsQuery } from './stats-query.ts'

/** Whose counters: of all domains of an account, of a domain, or of a tag (any letter case) at a domain. */
export interface Scope {
  accountId: string
  domainName: string | null
  tag: string | null
}

export interface Stats {
  start: string
  end: string
  resolution: Unit
  /** One entry per interval, with zeros where nothing happened. */
  stats: Record<string, unknown>[]
}

/** Rows of one query over all domains of an account: some milliseconds of SQLite's only reader. */
const ROWS_PER_QUERY = 3_000

export async function readStats(store: Store, scope: Scope, query: StatsQuery): Promise<Stats> {
  const { unit, start, end, events } = query
  const width = await intervalsPerQuery(store, scope)
  const counts = new Map<number, Counts>()
  for (let from = start; from <= end; from = after(unit, from, width)) {
    const to = Math.min(after(unit, from, width), after(unit, end))
    for (const row of await sums(store, scope, unit, from, to))
      counts.set(Number(row['start_at']), countsOf(row))
  }
  const stats: Stats['stats'] = []
  for (let at = start; at <= end; at = after(unit, at))
    stats.push(entry(at, events, counts.get(at) ?? noCounts()))
  return { start: formatUtc(new Date(start)), end: formatUtc(new Date(end)), resolution: unit, stats }
}

/** However many domains an account has, no query of its sums holds up others for long. */
async function intervalsPerQuery(store: Store, { accountId, domainName }: Scope): Promise<number> {
  if (domainName !== null) return ROWS_PER_QUERY
  const { domains } = await store.db
    .selectFrom('domains')
    .select((of) => of.fn.countAll().as('domains'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Math.max(1, Math.floor(ROWS_PER_QUERY / Math.max(1, Number(domains))))
}

const SUMS = COUNTERS.map((counter) => `sum(${counter}) AS ${counter}`).join(', ')

/** Per interval from `from` to before `to`, of those in which something happened. */
function sums(store: Store, { accountId, domainName, tag }: Scope, unit: Unit, from: number, to: number) {
  // For all domains the tag is written out, as in the index that serves this.
  const where = domainName === null ? "tag = ''" : 'domain_name = ? AND tag = ?'
  return store.read({
    sql: `SELECT start_at, ${SUMS} FROM counters
      WHERE account_id = ? AND unit = ? AND start_at >= ? AND start_at < ? AND ${where} GROUP BY start_at`,
    values: [
      ...[accountId, unit, from, to],
      ...(domainName === null ? [] : [domainName, tag?.toLowerCase() ?? '']),
    ],
  })
}

/** PostgreSQL gives sums as text. */
function countsOf(row: Record<string, unknown>): Counts {
  const counts = noCounts()
  for (const counter of COUNTERS) counts[counter] = Number(row[counter])
  return counts
}

const entry = (start: number, events: readonly StatsEvent[], counts: Counts) => ({
  time: formatUtc(new Date(start)),
  ...Object.fromEntries(events.map((event) => [event, MEMBERS[event](counts)])),
})

/** Section 3, member by member. */
const MEMBERS: Readonly<Record<StatsEvent, (counts: Counts) => object>> = {
  accepted: (of) => ({
    incoming: of.accepted_incoming,
    outgoing: of.accepted_outgoing,
    total: of.accepted_incoming + of.accepted_outgoing,
  }),
  delivered: (of) => ({
    smtp: of.delivered_smtp,
    http: of.delivered_http,
    optimized: of.delivered_optimized,
    total: of.delivered_smtp + of.delivered_http,
  }),
  failed: (of) => ({
    temporary: { espblock: of.failed_temporary_espblock, total: of.failed_temporary },
    permanent: {
      'suppress-bounce': of.failed_suppress_bounce,
      'suppress-unsubscribe': of.failed_suppress_unsubscribe,
      'suppress-complaint': of.failed_suppress_complaint,
      bounce: of.failed_bounce,
      'delayed-bounce': of.failed_delayed_bounce,
      webhook: of.failed_webhook,
      optimized: of.failed_optimized,
      total: of.failed_permanent,
    },
  }),
  opened: (of) => ({ total: of.opened, unique: of.opened_unique }),
  clicked: (of) => ({ total: of.clicked, unique: of.clicked_unique }),
  unsubscribed: (of) => ({ total: of.unsubscribed }),
  complained: (of) => ({ total: of.complained }),
  stored: (of) => ({ total: of.stored }),
}
