/** What is kept of a report: its sums, the rows with the most messages, and the sums by name for the totals. Pure. */

import { isWithin } from '../../protocols/dns/names.ts'
import type { AggregateReport, AggregateRow } from '../../protocols/reports/dmarc/aggregate-report.ts'
import type { TlsPolicyResult, TlsReport } from '../../protocols/reports/tls/report.ts'
import type { Payload } from './payload.ts'
import type { DmarcRow, ReportItem, TlsRow } from './shapes.ts'

export interface Sums {
  passed: number
  failed: number
  quarantined: number
  rejected: number
}

export interface ReportSummary {
  type: 'dmarc' | 'tls'
  organization: string
  contact: string
  reportId: string
  /** Unix milliseconds. */
  beginAt: number
  endAt: number
  total: Sums
  rowCount: number
  /** At most SHOWN_ROWS, most messages first. */
  rows: ReportItem['rows']
  /** By source address or type of failure. */
  names: ReadonlyMap<string, Sums>
}

/** Rows of one report; 100 reports make a page. */
const SHOWN_ROWS = 20
const NO_SUMS: Sums = { passed: 0, failed: 0, quarantined: 0, rejected: 0 }

/** The domain that the report is about, as written; of a TLS report about several, the one at or below `wanted`. */
export function subjectOf(payload: Payload, wanted: string): string {
  if (payload.type === 'dmarc') return payload.report.domain.toLowerCase()
  const names = payload.report.policies.map(({ domain }) => domain)
  return (
    names.find((name) => name === wanted) ?? names.find((name) => isWithin(name, wanted)) ?? names[0] ?? ''
  )
}

export function summaryOf(payload: Payload, subject: string): ReportSummary {
  return payload.type === 'dmarc' ? ofDmarc(payload.report) : ofTls(payload.report, subject)
}

function ofDmarc(report: AggregateReport): ReportSummary {
  const names = new Map<string, Sums>()
  for (const row of report.rows) add(names, row.sourceIp, sumsOfRow(row))
  return {
    ...common(report),
    type: 'dmarc',
    total: totalOf(names.values()),
    rowCount: report.rows.length,
    rows: top(report.rows, ({ count }) => count).map(dmarcRow),
    names,
  }
}

const isPassed = ({ dkim, spf }: AggregateRow) => dkim || spf

const sumsOfRow = (row: AggregateRow): Sums => ({
  passed: isPassed(row) ? row.count : 0,
  failed: isPassed(row) ? 0 : row.count,
  quarantined: row.disposition === 'quarantine' ? row.count : 0,
  rejected: row.disposition === 'reject' ? row.count : 0,
})

const dmarcRow = (row: AggregateRow): DmarcRow => ({
  source_ip: row.sourceIp,
  messages: row.count,
  passed: isPassed(row),
  disposition: row.disposition,
  dkim: row.dkim ? 'pass' : 'fail',
  spf: row.spf ? 'pass' : 'fail',
  header_from: row.headerFrom,
  reasons: row.reasons,
  dkim_results: row.dkimResults,
  spf_results: row.spfResults,
})

function ofTls(report: TlsReport, subject: string): ReportSummary {
  const policies = report.policies.filter(({ domain }) => domain === subject)
  const failures = policies.flatMap((policy) => policy.failures.map((failure) => ({ policy, failure })))
  const names = new Map<string, Sums>()
  for (const { failure } of failures) add(names, failure.resultType, { ...NO_SUMS, failed: failure.sessions })
  return {
    ...common(report),
    type: 'tls',
    total: totalOf(policies.map(({ successful: passed, failed }) => ({ ...NO_SUMS, passed, failed }))),
    rowCount: failures.length,
    rows: top(failures, ({ failure }) => failure.sessions).map(tlsRow),
    names,
  }
}

const tlsRow = ({
  policy,
  failure,
}: {
  policy: TlsPolicyResult
  failure: TlsPolicyResult['failures'][number]
}): TlsRow => ({
  result_type: failure.resultType,
  sessions: failure.sessions,
  policy_type: policy.policyType,
  sending_ip: failure.sendingIp,
  receiving_host: failure.receivingHost,
  reason: failure.reason,
})

const common = ({ organization, contact, reportId, beginAt, endAt }: AggregateReport | TlsReport) => ({
  ...{ organization, contact, reportId },
  beginAt: beginAt * 1000,
  endAt: endAt * 1000,
})

function add(names: Map<string, Sums>, name: string, more: Sums): void {
  names.set(name, sum(names.get(name) ?? NO_SUMS, more))
}

export const sum = (one: Sums, other: Sums): Sums => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
  quarantined: one.quarantined + other.quarantined,
  rejected: one.rejected + other.rejected,
})

const totalOf = (all: Iterable<Sums>): Sums => [...all].reduce(sum, NO_SUMS)

const top = <T>(rows: readonly T[], weight: (row: T) => number): T[] =>
  rows.toSorted((one, other) => weight(other) - weight(one)).slice(0, SHOWN_ROWS)
