/**
 * Figures of DMARC reports by source, host and address. Totals are by day and address, of authenticated reports only; a
 * source is the registrable domain of an address's confirmed name, so the same mail is one source on every day.
 */
import { DAY_MS } from '../../../base/time/durations.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import type { DmarcRow } from '../shapes.ts'
import { dayOf, SUMS } from '../store.ts'
import { type Sums, sum } from '../summary.ts'

export interface Period {
  /** Unix milliseconds. */
  from: number
  to: number
}

export interface DaySums extends Sums {
  /** Unix milliseconds. */
  day: number
}

export interface AddressSums extends Sums {
  /** Or `other`. */
  ip: string
}

/** Addresses of a domain: those of the list, or all but those. */
export interface Chosen {
  ips: readonly string[]
  isAllBut: boolean
}

export interface EventRow extends DmarcRow {
  reporter: string
  /** Unix milliseconds. */
  beginAt: number
}

/** Days of a year with 200 addresses each may have 73,000: those with the most mail are told apart. */
export const ADDRESSES_MAX = 1_000
const DOMAINS_MAX = 1_000
/** Reports of the period whose rows are read, the newest ones. */
const REPORTS_READ = 200

const NO_SUMS: Sums = { passed: 0, failed: 0, quarantined: 0, rejected: 0 }

const ADDED = SUMS.map((column) => `sum(${column}) AS ${column}`).join(', ')

/** Mail of an account by domain and by day, for its first 1,000 domains by name. */
export async function accountMail(
  store: Store,
  accountId: string,
  { from, to }: Period,
): Promise<{ domains: (Sums & { domain: string })[]; days: DaySums[] }> {
  const some = `(SELECT id, name FROM domains WHERE account_id = ? ORDER BY name LIMIT ${DOMAINS_MAX}) d`
  const totals = `domain_report_totals t ON t.domain_id = d.id AND t.type = 'dmarc' AND t.name = ''
    AND t.day_at >= ? AND t.day_at <= ?`
  const values = [accountId, dayOf(from), dayOf(to)]
  const [domains, days] = await Promise.all([
    store.read({
      sql: `SELECT d.name AS domain, ${ADDED} FROM ${some} LEFT JOIN ${totals} GROUP BY d.name ORDER BY d.name`,
      values,
    }),
    store.read({ sql: `SELECT day_at, ${ADDED} FROM ${some} JOIN ${totals} GROUP BY day_at`, values }),
  ])
  return {
    domains: domains.map((row) => ({ domain: String(row['domain']), ...sumsOf(row) })),
    days: days.map(daySums),
  }
}

/** Addresses with the most mail first, at most `limit`, and how many there are. */
export async function addressMail(
  store: Store,
  domainId: string,
  period: Period,
  chosen: Chosen,
  limit = ADDRESSES_MAX,
): Promise<{ addresses: AddressSums[]; count: number }> {
  const { sql, values } = chosenTotals(domainId, period, chosen)
  const rows = await store.read({
    sql: `SELECT name, ${ADDED}, count(*) OVER () AS names ${sql}
      GROUP BY name ORDER BY sum(passed) + sum(failed) DESC, name LIMIT ${limit}`,
    values,
  })
  const addresses = rows.map((row) => ({ ip: String(row['name']), ...sumsOf(row) }))
  return { addresses, count: Number(rows[0]?.['names'] ?? 0) }
}

export async function dayMail(
  store: Store,
  domainId: string,
  period: Period,
  chosen: Chosen,
): Promise<DaySums[]> {
  const { sql, values } = chosenTotals(domainId, period, chosen)
  const rows = await store.read({ sql: `SELECT day_at, ${ADDED} ${sql} GROUP BY day_at`, values })
  return rows.map(daySums)
}

function chosenTotals(domainId: string, { from, to }: Period, { ips, isAllBut }: Chosen): Statement {
  const marks = ips.map(() => ', ?').join('')
  return {
    sql: `FROM domain_report_totals WHERE domain_id = ? AND type = 'dmarc' AND day_at >= ? AND day_at <= ?
      AND name ${isAllBut ? `NOT IN (''${marks})` : `IN (NULL${marks})`}`,
    values: [domainId, dayOf(from), dayOf(to), ...ips],
  }
}

const daySums = (row: Record<string, unknown>): DaySums => ({ day: Number(row['day_at']), ...sumsOf(row) })

function sumsOf(row: Record<string, unknown>): Sums {
  const of = (column: string) => Number(row[column] ?? 0)
  return {
    ...{ passed: of('passed'), failed: of('failed') },
    ...{ quarantined: of('quarantined'), rejected: of('rejected') },
  }
}

/** Rows with the most messages of the newest authenticated reports. */
export async function eventRows(store: Store, domainId: string, { from, to }: Period): Promise<EventRow[]> {
  const reports = await store.db
    .selectFrom('domain_reports')
    .select(['organization', 'begin_at', 'rows_json'])
    .where('domain_id', '=', domainId)
    .where('type', '=', 'dmarc')
    .where('authenticated', '=', 1)
    .where('begin_at', '>=', dayOf(from))
    .where('begin_at', '<', dayOf(to) + DAY_MS)
    .orderBy('begin_at', 'desc')
    .limit(REPORTS_READ)
    .execute()
  return reports.flatMap(({ organization: reporter, begin_at, rows_json }) =>
    (JSON.parse(rows_json) as DmarcRow[]).map((row) => ({ ...row, reporter, beginAt: Number(begin_at) })),
  )
}

export const messagesOf = ({ passed, failed }: Sums): number => passed + failed

/** `fail`: what failed and was delivered all the same. */
export const countsOf = ({ passed, failed, quarantined, rejected }: Sums) => ({
  pass: passed,
  fail: Math.max(0, failed - quarantined - rejected),
  quarantine: quarantined,
  reject: rejected,
})

export const totalOf = (rows: readonly Sums[]): Sums => rows.reduce<Sums>(sum, NO_SUMS)

/** Sums by key, most messages first. */
export function grouped<T extends Sums>(
  rows: readonly T[],
  keyOf: (row: T) => string,
): { key: string; total: Sums; rows: T[] }[] {
  return [...Map.groupBy(rows, keyOf)]
    .map(([key, some]) => ({ key, total: totalOf(some), rows: some }))
    .toSorted(
      (one, other) => messagesOf(other.total) - messagesOf(one.total) || one.key.localeCompare(other.key),
    )
}

export const chartOf = (days: readonly DaySums[]) =>
  days
    .toSorted((one, other) => one.day - other.day)
    .map(({ day, ...sums }) => ({ timestamp: day / 1000, ...countsOf(sums) }))
