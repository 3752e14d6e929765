/** Writes TLS reports: the JSON (RFC 8460 §4.4), and the mail that carries it (RFC 8460 §5.3). Pure. */
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

/** `sender!domain!begin!end!id.json.gz` (RFC 8460 §5.1). */
export function reportFilename(submitter: string, domain: string, day: string, id: string): string {
  const begin = Date.parse(`${day}T00:00:00Z`) / 1000
  return `${submitter}!${domain}!${begin}!${begin + 86_399}!${id}.json.gz`
}

interface ReportMail {
  from: string
  to: string
  /** Whose sessions are reported. */
  domain: string
  /** The domain that reports. */
  submitter: string
  day: string
  id: string
  /** The report, gzip. */
  content: Uint8Array
}

export function reportMail({ from, to, domain, submitter, day, id, content }: ReportMail): Buffer {
  const boundary = `report-${id}`
  const filename = reportFilename(submitter, domain, day, id)
  const base64 = Buffer.from(content)
    .toString('base64')
    .replace(/.{76}(?=.)/g, '$&\r\n')
  const lines = [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: Report Domain: ${domain}`,
    ` Submitter: ${submitter}`,
    ` Report-ID: <${id}@${submitter}>`,
    `TLS-Report-Domain: ${domain}`,
    `TLS-Report-Submitter: ${submitter}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type="tlsrpt";',
    ` boundary="${boundary}"`,
    '',
    `--${boundary}`,
    'Content-Type: text/plain; charset="us-ascii"',
    'Content-Transfer-Encoding: 7bit',
    '',
    `This is an aggregate TLS report of ${submitter} about mail`,
    `to ${domain} on ${day} (UTC).`,
    '',
    `--${boundary}`,
    'Content-Type: application/tlsrpt+gzip',
    'Content-Transfer-Encoding: base64',
    'Content-Disposition: attachment;',
    ` filename="${filename}"`,
    '',
    base64,
    '',
    `--${boundary}--`,
    '',
  ]
  return Buffer.from(lines.join('\r\n'))
}
