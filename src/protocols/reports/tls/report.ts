/** Reads TLS reports (RFC 8460 §4.4): what senders saw of the TLS of a domain's mail hosts. */
import { ForeignJsonError, parseForeignJson } from '../../../base/foreign-json.ts'
import { isPlainObject } from '../../../base/values.ts'
import { NoReport } from '../../message/report-mail.ts'

export interface TlsFailure {
  /** E.g. `certificate-expired`; lower case. */
  resultType: string
  sessions: number
  sendingIp: string
  receivingHost: string
  reason: string
}

/** What one policy of a domain led to. */
export interface TlsPolicyResult {
  domain: string
  /** `sts`, `tlsa` or `no-policy-found`. */
  policyType: string
  successful: number
  failed: number
  failures: TlsFailure[]
}

export interface TlsReport {
  organization: string
  contact: string
  reportId: string
  /** Unix seconds. */
  beginAt: number
  endAt: number
  policies: TlsPolicyResult[]
}

const FAILURES_MAX = 10_000
const POLICIES_MAX = 1_000
const VALUE_CHARS_MAX = 255
/** Sessions of one number: sums stay exact. */
const COUNT_MAX = 1_000_000_000

type Json = Record<string, unknown>

/** @throws NoReport */
export function readTlsReport(text: string): TlsReport {
  const report = objectOf(parsed(text))
  const range = objectOf(report['date-range'])
  const [beginAt, endAt] = [secondsOf(range['start-datetime']), secondsOf(range['end-datetime'])]
  const reportId = textOf(report['report-id'])
  if (reportId === '') throw new NoReport('the report has no id')
  if (Number.isNaN(beginAt) || Number.isNaN(endAt) || endAt < beginAt)
    throw new NoReport('the report has no period')
  const policies = listOf(report['policies'])
  if (policies.length === 0 || policies.length > POLICIES_MAX)
    throw new NoReport(`the report has ${policies.length} policies`)
  const results = policies.map((policy) => policyResult(objectOf(policy)))
  if (results.reduce((sum, { failures }) => sum + failures.length, 0) > FAILURES_MAX)
    throw new NoReport(`the report has more than ${FAILURES_MAX} failures`)
  return {
    organization: textOf(report['organization-name']),
    contact: textOf(report['contact-info']),
    ...{ reportId, beginAt, endAt, policies: results },
  }
}

function policyResult(given: Json): TlsPolicyResult {
  const policy = objectOf(given['policy'])
  const summary = objectOf(given['summary'])
  return {
    domain: textOf(policy['policy-domain']).toLowerCase(),
    policyType: textOf(policy['policy-type']).toLowerCase(),
    successful: countOf(summary['total-successful-session-count']),
    failed: countOf(summary['total-failure-session-count']),
    failures: listOf(given['failure-details']).map((detail) => failureOf(objectOf(detail))),
  }
}

const failureOf = (detail: Json): TlsFailure => ({
  resultType: textOf(detail['result-type']).toLowerCase(),
  sessions: countOf(detail['failed-session-count']),
  sendingIp: textOf(detail['sending-mta-ip']),
  receivingHost: textOf(detail['receiving-mx-hostname']),
  reason: textOf(detail['failure-reason-code']),
})

function parsed(text: string): unknown {
  try {
    return parseForeignJson(text)
  } catch (error) {
    if (error instanceof ForeignJsonError) throw new NoReport(`the JSON is refused: ${error.message}`)
    throw error
  }
}

const objectOf = (value: unknown): Json => (isPlainObject(value) ? value : {})
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, VALUE_CHARS_MAX).replaceAll('\0', '').toWellFormed().trim() : ''
const secondsOf = (value: unknown): number => Math.floor(Date.parse(textOf(value)) / 1000)

/** Some reporters write numbers as text. */
function countOf(value: unknown): number {
  const count = typeof value === 'number' || typeof value === 'string' ? Number(value) : 0
  if (!Number.isInteger(count) || count < 0 || count > COUNT_MAX)
    throw new NoReport('a number of sessions is invalid')
  return count
}
