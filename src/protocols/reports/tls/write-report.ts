/** Writes TLS reports: the JSON (RFC 8460 §4.4), and the mail that carries it (RFC 8460 §5.3). Pure. */
import { type DailyReport, mailWithReport, reportFilename } from '../../message/report-attachment.ts'
import type { TlsFailure } from './report.ts'

export interface ReportedPolicy {
  type: 'sts' | 'tlsa'
  /** For DANE the TLSA base domain, RFC 8460 §1.1. */
  domain: string
  /** Lines of the MTA-STS policy, or TLSA records. */
  strings: readonly string[]
  mxHosts: readonly string[]
  successful: number
  /** `reason` is not used. */
  failures: readonly Omit<TlsFailure, 'reason'>[]
}

interface ReportAbout {
  organization: string
  contact: string
  id: string
  /** As YYYY-MM-DD, UTC. */
  day: string
  policies: readonly ReportedPolicy[]
}

export function tlsReport({
  organization,
  contact,
  id,
  day,
  policies,
}: ReportAbout): Record<string, unknown> {
  return {
    'organization-name': organization,
    'date-range': { 'start-datetime': `${day}T00:00:00Z`, 'end-datetime': `${day}T23:59:59Z` },
    'contact-info': contact,
    'report-id': id,
    policies: policies.map(policyResult),
  }
}

function policyResult({ type, domain, strings, mxHosts, successful, failures }: ReportedPolicy) {
  return {
    policy: {
      'policy-type': type,
      'policy-string': strings,
      'policy-domain': domain,
      'mx-host': mxHosts,
    },
    summary: {
      'total-successful-session-count': successful,
      'total-failure-session-count': failures.reduce((sum, { sessions }) => sum + sessions, 0),
    },
    'failure-details': failures.map(({ resultType, sendingIp, receivingHost, sessions }) => ({
      'result-type': resultType,
      ...(sendingIp !== '' && { 'sending-mta-ip': sendingIp }),
      'receiving-mx-hostname': receivingHost,
      'failed-session-count': sessions,
    })),
  }
}

/** RFC 8460 §5.1. */
export const tlsReportFilename = (submitter: string, domain: string, day: string, id: string): string =>
  reportFilename(submitter, domain, day, id, 'json.gz')

export function tlsReportMail({ from, to, domain, submitter, day, id, content }: DailyReport): Buffer {
  return mailWithReport({
    ...{ from, to, domain, submitter, id: `${id}@${submitter}` },
    fields: [`TLS-Report-Domain: ${domain}`, `TLS-Report-Submitter: ${submitter}`],
    type: 'multipart/report; report-type="tlsrpt"',
    explanation: [
      `This is an aggregate TLS report of ${submitter} about mail`,
      `to ${domain} on ${day} (UTC).`,
    ],
    file: {
      type: 'application/tlsrpt+gzip',
      name: tlsReportFilename(submitter, domain, day, id),
      content,
    },
  })
}
