/** The rows of reports and their totals by day. */

import { DAY_MS } from '../../base/time/durations.ts'
import { commitUnlessStale, removeRows } from '../../platform/store/commits.ts'
import { removeBeyond, type SizedTable } from '../../platform/store/kept-size.ts'
import type { DomainReportRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type ReportSummary, type Sums, sum } from './summary.ts'

export interface KeptReport {
  id: string
  domain: Pick<Domain, 'id' | 'accountId'>
  sender: string
  authenticated: boolean
  receivedAt: number
  summary: ReportSummary
}

export interface ReportFilter {
  type: DomainReportRow['type'] | undefined
  /** Unix milliseconds, of the begin of the period. */
  from: number
  to: number
}

export type ReportPage = { name: 'first' | 'last' } | { name: 'next' | 'previous'; pivot: string }

/** Reports of one domain whose period begins on one day. A busy domain gets reports from about 200 receivers. */
const REPORTS_PER_DAY_MAX = { authenticated: 500, forged: 50 }
/** Names of one domain, type and day; the rest is `other`. A year of them is summed up for one request. */
const NAMES_PER_DAY_MAX = 200
export const OTHER = 'other'

/** False: the report is known, or there are enough of its day. */
export async function keepReport(store: Store, report: KeptReport): Promise<boolean> {
  const known = report.authenticated ? await knownNames(store, report) : new Set<string>()
  return commitUnlessStale(store, [
    reportStatement(report),
    ...(report.authenticated ? totalStatements(report, bounded(report.summary.names, known)) : []),
  ])
}

export const dayOf = (at: number) => Math.floor(at / DAY_MS) * DAY_MS

function reportStatement({ id, domain, sender, authenticated, receivedAt, summary }: KeptReport): Statement {
  const row = {
    ...{ id, account_id: domain.accountId, domain_id: domain.id, type: summary.type, sender },
    authenticated: authenticated ? 1 : 0,
    organization: summary.organization,
    contact: summary.contact,
    report_id: summary.reportId,
    begin_at: summary.beginAt,
    end_at: summary.endAt,
    received_at: Math.floor(receivedAt),
    passed: summary.total.passed,
    failed: summary.total.failed,
    row_count: summary.rowCount,
    rows_json: JSON.stringify(summary.rows),
  }
  const day = dayOf(summary.beginAt)
  const max = REPORTS_PER_DAY_MAX[authenticated ? 'authenticated' : 'forged']
  // PostgreSQL takes values in a SELECT for text.
  const marks = Object.values(row).map((value) => (typeof value === 'number' ? 'CAST(? AS BIGINT)' : '?'))
  return {
    sql: `INSERT INTO domain_reports (${Object.keys(row).join(', ')}) SELECT ${marks.join(', ')}
      WHERE (SELECT count(*) FROM domain_reports WHERE domain_id = ? AND type = ? AND begin_at >= ? AND begin_at < ?
        AND authenticated = ?) < ${max}
      ON CONFLICT (domain_id, type, authenticated, sender, report_id) DO NOTHING`,
    values: [...Object.values(row), domain.id, summary.type, day, day + DAY_MS, row.authenticated],
    expectRows: 1,
  }
}

/** Names that the day of the report has already. */
async function knownNames(store: Store, { domain, summary }: KeptReport): Promise<ReadonlySet<string>> {
  const rows = await store.read({
    sql: `SELECT name FROM domain_report_totals WHERE domain_id = ? AND type = ? AND day_at = ?
      AND name NOT IN ('', '${OTHER}') LIMIT ${NAMES_PER_DAY_MAX}`,
    values: [domain.id, summary.type, dayOf(summary.beginAt)],
  })
  return new Set(rows.map((row) => String(row['name'])))
}

/** Names with the most messages keep their name while the day has room. */
function bounded(names: ReadonlyMap<string, Sums>, known: ReadonlySet<string>): Map<string, Sums> {
  const kept = new Map<string, Sums>()
  let room = NAMES_PER_DAY_MAX - known.size
  const weight = ({ passed, failed }: Sums) => passed + failed
  const inOrder = [...names].sort(([, one], [, other]) => weight(other) - weight(one))
  for (const [name, sums] of inOrder) {
    const isKept = name !== '' && (known.has(name) || room-- > 0)
    const shown = isKept ? name : OTHER
    const before = kept.get(shown)
    kept.set(shown, before ? sum(before, sums) : sums)
  }
  return kept
}

function totalStatements({ domain, summary }: KeptReport, names: ReadonlyMap<string, Sums>): Statement[] {
  return [['', summary.total] as const, ...names].map(([name, sums]) => {
    const { sql, values } = insert('domain_report_totals', {
      domain_id: domain.id,
      type: summary.type,
      day_at: dayOf(summary.beginAt),
      name,
      account_id: domain.accountId,
      ...sums,
    })
    const added = SUMS.map((column) => `${column} = domain_report_totals.${column} + excluded.${column}`)
    return {
      sql: `${sql} ON CONFLICT (domain_id, type, day_at, name) DO UPDATE SET ${added.join(', ')}`,
      values,
    }
  })
}

export const SUMS = ['passed', 'failed', 'quarantined', 'rejected'] as const

/** Rows of a complaint, for the transaction of its event, which knows the domain by name only. `at`: Unix milliseconds. */
export function complaintStatements(
  eventId: string,
  domainName: string,
  provider: string,
  at: number,
): Statement[] {
  const time = 'CAST(? AS BIGINT)'
  const report: Statement = {
    sql: `INSERT INTO domain_reports (id, account_id, domain_id, type, sender, authenticated, organization, contact,
        report_id, begin_at, end_at, received_at, passed, failed, row_count, rows_json)
      SELECT ?, account_id, id, 'complaint', ?, 1, ?, '', ?, ${time}, ${time}, ${time}, 0, 1, 0, '[]'
      FROM domains WHERE name = ? ON CONFLICT DO NOTHING`,
    values: [eventId, provider, provider, eventId, at, at, at, domainName],
  }
  const totals = ['', provider].map(
    (name): Statement => ({
      sql: `INSERT INTO domain_report_totals
          (domain_id, type, day_at, name, account_id, passed, failed, quarantined, rejected)
        SELECT id, 'complaint', ${time}, ?, account_id, 0, 1, 0, 0 FROM domains WHERE name = ?
        ON CONFLICT (domain_id, type, day_at, name) DO UPDATE SET failed = domain_report_totals.failed + 1`,
      values: [dayOf(at), name, domainName],
    }),
  )
  return [report, ...totals]
}

/** Newest period first. */
export async function listReports(
  store: Store,
  domainId: string,
  { type, from, to }: ReportFilter,
  page: ReportPage,
  limit: number,
): Promise<DomainReportRow[]> {
  const ascending = page.name === 'last' || page.name === 'previous'
  let query = store.db.selectFrom('domain_reports').selectAll().where('domain_id', '=', domainId)
  query = query.where('begin_at', '>=', from).where('begin_at', '<=', to)
  if (type !== undefined) query = query.where('type', '=', type)
  if ('pivot' in page) {
    const { pivot, name } = page
    const found = await store.db
      .selectFrom('domain_reports')
      .select('begin_at')
      .where('id', '=', pivot)
      .where('domain_id', '=', domainId)
      .executeTakeFirst()
    if (!found) return []
    const order = name === 'next' ? '<' : '>'
    query = query.where((eb) =>
      eb(eb.refTuple('begin_at', 'id'), order, eb.tuple(Number(found.begin_at), pivot)),
    )
  }
  const rows = await query
    .orderBy('begin_at', ascending ? 'asc' : 'desc')
    .orderBy('id', ascending ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  return ascending ? rows.reverse() : rows
}

export interface NamedSums extends Sums {
  name: string
}

/** Sums of whole days, those of all names first, then the names with the most failures and messages. */
export async function readTotals(
  store: Store,
  domainId: string,
  type: DomainReportRow['type'],
  { from, to }: Pick<ReportFilter, 'from' | 'to'>,
  namesMax: number,
): Promise<NamedSums[]> {
  const sums = SUMS.map((column) => `sum(${column}) AS ${column}`)
  const rows = await store.read({
    sql: `SELECT name, ${sums.join(', ')}, CASE WHEN name = '' THEN 0 ELSE 1 END AS place
      FROM domain_report_totals WHERE domain_id = ? AND type = ? AND day_at >= ? AND day_at <= ?
      GROUP BY name ORDER BY place, sum(passed) + sum(failed) DESC, name LIMIT ${namesMax + 1}`,
    values: [domainId, type, dayOf(from), dayOf(to)],
  })
  return rows.map((row) => ({
    name: String(row['name']),
    passed: Number(row['passed']),
    failed: Number(row['failed']),
    quarantined: Number(row['quarantined']),
    rejected: Number(row['rejected']),
  }))
}

/** Removes what began before that time. Ends early when `signal` aborts; the next run continues. */
export async function removeOldReports(store: Store, before: number, signal: AbortSignal): Promise<void> {
  const values = [Math.floor(before)]
  await removeRows(store, { ...REPORTS, where: 'begin_at < ? ORDER BY begin_at', values }, signal)
  await removeRows(store, { ...TOTALS, where: 'day_at < ? ORDER BY day_at', values }, signal)
}

const REPORTS = { from: 'domain_reports', key: 'id' } as const
const TOTALS = { from: 'domain_report_totals', key: 'domain_id, type, day_at, name' } as const

const SIZED: SizedTable = {
  ...{ name: 'domain_reports', key: 'id', age: 'begin_at' },
  ...{ texts: ['rows_json', 'organization', 'contact', 'report_id'], rowBytes: 500 },
}

/** Removes the oldest reports beyond `bytesMax`; null: no limit. Their totals by day stay for their year. */
export const removeReportsBeyond = (store: Store, bytesMax: number | null, signal?: AbortSignal) =>
  removeBeyond(store, SIZED, bytesMax, signal)

export async function removeReportsOf(store: Store, domainId: string): Promise<void> {
  for (const table of [REPORTS, TOTALS])
    await removeRows(store, { ...table, where: 'domain_id = ?', values: [domainId] })
}
