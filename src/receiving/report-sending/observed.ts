/**
 * What a report says of one mail, from what was found of it (RFC 9990 §3.1.1). Pure.
 *
 * Senders choose nearly all of it. So names that are none become `invalid`, and there are only as many results as a
 * report has of a mail.
 */
import { domainToASCII } from 'node:url'
import { asksForReports } from '../../protocols/reports/dmarc/receivers.ts'
import type { ReportedRow } from '../../protocols/reports/dmarc/write-report.ts'
import type { CheckedMail, Finding } from '../routes/mail-check.ts'

export interface ObservedMail {
  /** Where the record was found. */
  domain: string
  record: string
  row: ReportedRow
}

/** Results of one mail; aligned ones first (RFC 9990 §3.1.3). */
const DKIM_RESULTS_MAX = 4
const RECORD_LENGTH_MAX = 1_000
/** Selectors are one label for nearly everybody. */
const SELECTOR_LENGTH_MAX = 63
/** As JSON, with its DKIM results; those that do not fit are left out. Names alone have up to 800. */
const ROW_LENGTH_MAX = 1_200
const NAME = /^[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_])?$/

/** Null: the author's domain has no record that asks for reports, or could not be looked up, or the mail is a report. */
export function observedMail(
  { sender, remoteAddress, headers }: Pick<CheckedMail, 'sender' | 'remoteAddress' | 'headers'>,
  { spf, dkim, dmarc }: Finding,
): ObservedMail | null {
  if (!dmarc || dmarc.rr === undefined || dmarc.policyDomain === undefined) return null
  const { status, rr: record, alignment } = dmarc
  const isJudged = status.result === 'pass' || status.result === 'fail'
  if (!isJudged || record.length > RECORD_LENGTH_MAX || !asksForReports(record)) return null
  if (isReport(headers)) return null
  const domain = nameOf(dmarc.policyDomain)
  const headerFrom = nameOf(status.header?.from ?? '')
  if (domain === INVALID || headerFrom === INVALID) return null
  const aligned = alignment.dkim.result
  const dkimResults = dkim.results
    // An unsigned mail has a result without a domain.
    .filter(({ signingDomain }) => signingDomain)
    .map((one) => ({
      domain: nameOf(one.signingDomain ?? ''),
      selector: nameOf(one.selector ?? '', SELECTOR_LENGTH_MAX),
      result: one.status.result,
      weight: (one.status.result === 'pass' ? 1 : 0) + (one.signingDomain === aligned ? 2 : 0),
    }))
    .toSorted((one, other) => other.weight - one.weight)
    .slice(0, DKIM_RESULTS_MAX)
    .map(({ domain: name, selector, result }) => ({ domain: name, selector, result }))
  return {
    domain,
    record,
    row: withinLength({
      sourceIp: remoteAddress,
      ...evaluated(dmarc),
      dkim: aligned !== undefined,
      spf: alignment.spf.result !== undefined,
      headerFrom,
      envelopeFrom: sender === '' ? '' : nameOf(sender.slice(sender.lastIndexOf('@') + 1)),
      dkimResults,
      spfResult: spf ? { domain: nameOf(spf.domain), result: spf.status.result } : null,
    }),
  }
}

function withinLength(row: ReportedRow): ReportedRow {
  const isLong = JSON.stringify(row).length > ROW_LENGTH_MAX && row.dkimResults.length > 0
  return isLong ? withinLength({ ...row, dkimResults: row.dkimResults.slice(0, -1) }) : row
}

/** The policy itself is never applied: routes decide, with the results in the header (routes-inbound.md section 5). */
function evaluated({
  status,
  policy,
  p,
  testMode,
}: Exclude<Finding['dmarc'], false>): Pick<ReportedRow, 'disposition' | 'reason'> {
  const asksForMore = policy !== 'none'
  if (status.result === 'pass') return { disposition: asksForMore ? 'pass' : 'none', reason: null }
  if (asksForMore) return { disposition: 'none', reason: 'local_policy' }
  return { disposition: 'none', reason: testMode && p !== 'none' ? 'policy_test_mode' : null }
}

/** Reports about reports would go to and fro for ever. */
const isReport = (headers: CheckedMail['headers']): boolean =>
  headers.some(({ name, value }) => {
    const field = name.toLowerCase()
    return (
      (field === 'subject' && /^\s*Report[ -]Domain:/i.test(value)) ||
      (field === 'content-type' && /^\s*multipart\/report\b/i.test(value)) ||
      field === 'tls-report-domain'
    )
  })

const INVALID = 'invalid'

function nameOf(text: string, lengthMax = Number.POSITIVE_INFINITY): string {
  const name = (domainToASCII(text) || text).toLowerCase().replace(/\.$/, '')
  return NAME.test(name) && name.length <= lengthMax ? name : INVALID
}
