/** Reports of receivers as the API shows them (own-operations.md section 12). */
import {
  either,
  flag,
  integer,
  list,
  named,
  type Of,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'

export const TYPES = ['dmarc', 'tls', 'complaint'] as const

const SOURCE_IP = text('Address that the mail came from; other: all further ones', { example: '192.0.2.1' })
const RESULT_TYPE = text('Type of failure', { example: 'certificate-expired' })
const VERDICT = (name: string) => oneOf(`${name} passes with alignment`, ['pass', 'fail'])

export type DmarcRow = Of<typeof DMARC_ROW>
const DMARC_ROW = named('DmarcReportRow', 'Mail of one source in a DMARC report', {
  source_ip: SOURCE_IP,
  messages: integer('Messages'),
  passed: flag('DKIM or SPF passes with alignment'),
  disposition: oneOf('What the receiver did', ['none', 'quarantine', 'reject']),
  dkim: VERDICT('DKIM'),
  spf: VERDICT('SPF'),
  header_from: text('Domain of the header From'),
  reasons: list('Why the receiver did not follow the policy', text('Reason', { example: 'forwarded' })),
  dkim_results: list(
    'Results without alignment',
    object('Signature', { domain: text('Domain'), selector: text('Selector'), result: text('Result') }),
  ),
  spf_results: list(
    'Results without alignment',
    object('Check', { domain: text('Domain'), result: text('Result') }),
  ),
})

export type TlsRow = Of<typeof TLS_ROW>
const TLS_ROW = named('TlsReportRow', 'Failures of one type in a TLS report', {
  result_type: RESULT_TYPE,
  sessions: integer('Sessions that failed'),
  policy_type: text('sts, tlsa or no-policy-found', { example: 'sts' }),
  sending_ip: text('Address of the sender; may be empty'),
  receiving_host: text('Host of the receiver; may be empty'),
  reason: text('What the receiver says of it; may be empty'),
})

export type ReportItem = Of<typeof REPORT>
const REPORT = named('DomainReport', 'What a receiver reports about a domain', {
  id: text('Identifier of the report'),
  type: oneOf('Type of report', TYPES),
  sender: text(
    'Domain of the header From of the report; of a posted one the address of the client, of a complaint the provider',
  ),
  authenticated: flag('SPF or DKIM proved the sender'),
  organization: text('Name of the receiver, as it says'),
  contact: text('Address of the receiver, as it says'),
  report_id: text('Identifier of the report at its sender'),
  begin: rfc3339('Begin of the reported period'),
  end: rfc3339('End of the reported period'),
  received_at: rfc3339('When it arrived'),
  passed: integer('Messages, or sessions, that passed'),
  failed: integer('Messages or sessions that failed, or complaints'),
  row_count: integer('Number of rows of the report'),
  rows: list(
    'The 20 rows with the most messages or sessions; of a complaint none',
    either('A row', DMARC_ROW, TLS_ROW),
  ),
})

const MESSAGES = {
  messages: integer('Messages'),
  passed: integer('Messages that passed'),
  failed: integer('Messages that failed'),
  dispositions: object('Messages by what receivers did', {
    none: integer('Messages'),
    quarantine: integer('Messages'),
    reject: integer('Messages'),
  }),
}

const DMARC_TOTALS = object('Totals of DMARC reports; absent: another type was asked for', {
  ...MESSAGES,
  sources: list(
    'The 100 with the most messages',
    named('DmarcSource', 'Mail of one source', { source_ip: SOURCE_IP, ...MESSAGES }),
  ),
})
const TLS_TOTALS = object('Totals of TLS reports; absent: another type was asked for', {
  sessions: integer('Sessions'),
  passed: integer('Sessions that passed'),
  failed: integer('Sessions that failed'),
  failures: list(
    'By type, the most frequent first',
    object('A failure', { result_type: RESULT_TYPE, sessions: integer('Sessions') }),
  ),
})
const COMPLAINT_TOTALS = object('Totals of complaints; absent: another type was asked for', {
  complaints: integer('Complaints'),
  providers: list(
    'The 100 with the most complaints',
    object('A provider', { provider: text('Provider of the recipients'), complaints: integer('Complaints') }),
  ),
})

export type Totals = Of<typeof TOTALS>
const TOTALS = object('Sums of whole days in UTC, of authenticated reports only', {
  dmarc: optional(DMARC_TOTALS),
  tls: optional(TLS_TOTALS),
  complaint: optional(COMPLAINT_TOTALS),
})

export const REPORTS = pageOf('DomainReportPage', 'Totals, and a page of reports', REPORT, {
  from: rfc3339('Begin of the first period'),
  to: rfc3339('Begin of the last period'),
  totals: TOTALS,
  addresses: object('Where reports go', {
    dmarc: text('Mail address', { example: 'dmarc-reports@example.com' }),
    tls: text('Mail address', { example: 'tls-reports@example.com' }),
  }),
  records: list(
    'DNS records that say so',
    object('A record', {
      name: text('Name', { example: '_dmarc.example.com' }),
      type: oneOf('Type', ['TXT']),
      value: text('Value'),
    }),
  ),
})
