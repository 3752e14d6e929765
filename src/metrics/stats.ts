/** Reads counters in the form of the statistics operations (tags-stats.md sections 3 and 4). */
import { formatUtc } from '../base/dates.ts'
import type { Counts } from '../store/counter-rows.ts'
import type { Store } from '../store/store.ts'
import { COUNTERS, noCounts } from './counters.ts'
import { after, type Unit } from './intervals.ts'
import type { StatsEvent, StatsQuery } from './stats-query.ts'

/** The counters of all domains of an account, of a domain, or of a domain's tag (in any letter case). */
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

/** Rows per query over all domains of an account: a few milliseconds of SQLite's only reader. */
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

/** Bounds the duration of a query, however many domains an account has. */
async function intervalsPerQuery(store: Store, { accountId, domainName }: Scope): Promise<number> {
  if (domainName !== null) return ROWS_PER_QUERY
  const { domains } = await store.db
    .selectFrom('domains')
    .select((eb) => eb.fn.countAll().as('domains'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Math.max(1, Math.floor(ROWS_PER_QUERY / Math.max(1, Number(domains))))
}

const SUMS = COUNTERS.map((counter) => `sum(${counter}) AS ${counter}`).join(', ')

/** Sums per interval, `from` inclusive to `to` exclusive; intervals without events are left out. */
function sums(store: Store, { accountId, domainName, tag }: Scope, unit: Unit, from: number, to: number) {
  // For all domains the tag is a literal, as in the partial index for this query.
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

/** PostgreSQL returns sums as text. */
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
  accepted: (counts) => ({
    incoming: counts.accepted_incoming,
    outgoing: counts.accepted_outgoing,
    total: counts.accepted_incoming + counts.accepted_outgoing,
  }),
  delivered: (counts) => ({
    smtp: counts.delivered_smtp,
    http: counts.delivered_http,
    optimized: counts.delivered_optimized,
    total: counts.delivered_smtp + counts.delivered_http,
  }),
  failed: (counts) => ({
    temporary: { espblock: counts.failed_temporary_espblock, total: counts.failed_temporary },
    permanent: {
      'suppress-bounce': counts.failed_suppress_bounce,
      'suppress-unsubscribe': counts.failed_suppress_unsubscribe,
      'suppress-complaint': counts.failed_suppress_complaint,
      bounce: counts.failed_bounce,
      'delayed-bounce': counts.failed_delayed_bounce,
      webhook: counts.failed_webhook,
      optimized: counts.failed_optimized,
      total: counts.failed_permanent,
    },
  }),
  opened: (counts) => ({ total: counts.opened, unique: counts.opened_unique }),
  clicked: (counts) => ({ total: counts.clicked, unique: counts.clicked_unique }),
  unsubscribed: (counts) => ({ total: counts.unsubscribed }),
  complained: (counts) => ({ total: counts.complained }),
  stored: (counts) => ({ total: counts.stored }),
}
