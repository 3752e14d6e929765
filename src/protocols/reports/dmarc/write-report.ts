/** Writes DMARC aggregate reports: the XML (RFC 9990 §3.1 and appendix A), and the mail that carries it (§3.5.2). Pure. */
import {
  type DailyReport,
  mailWithReport,
  periodOf,
  reportFilename,
} from '../../message/report-attachment.ts'

/** What is equal of the messages of one row. Names and results hold no character but of domain names and words. */
export interface ReportedRow {
  sourceIp: string
  /** `pass`: DMARC passes, and the policy asks for more than nothing. */
  disposition: 'none' | 'pass'
  /** With alignment. */
  dkim: boolean
  spf: boolean
  /** Why the policy was not applied. */
  reason: 'local_policy' | 'policy_test_mode' | null
  headerFrom: string
  /** '' for the null reverse-path. */
  envelopeFrom: string
  /** Without alignment. */
  dkimResults: readonly { domain: string; selector: string; result: string }[]
  spfResult: { domain: string; result: string } | null
}

type Policy = 'none' | 'quarantine' | 'reject'

/** The record, with its defaults. */
export interface PublishedPolicy {
  p: Policy
  /** For subdomains that exist, and for names that do not. */
  sp: Policy
  np: Policy
  adkim: 'r' | 's'
  aspf: 'r' | 's'
  testing: boolean
}

interface AggregateAbout {
  organization: string
  contact: string
  id: string
  /** As YYYY-MM-DD, UTC. */
  day: string
  /** Where the record was found. */
  domain: string
  policy: PublishedPolicy
  rows: readonly { row: ReportedRow; messages: number }[]
}

const GENERATOR = 'Sendwright'
const DKIM_RESULTS = new Set(['none', 'pass', 'fail', 'policy', 'neutral', 'temperror', 'permerror'])
const SPF_RESULTS = new Set([...DKIM_RESULTS, 'softfail'])

export function aggregateReport({
  organization,
  contact,
  id,
  day,
  domain,
  policy,
  rows,
}: AggregateAbout): string {
  const { begin, end } = periodOf(day)
  const policies = (['p', 'sp', 'np'] as const).map((tag) => element(tag, policy[tag]))
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">',
    element('version', '1.0'),
    '<report_metadata>',
    element('org_name', organization),
    element('email', contact),
    element('report_id', id),
    `<date_range>${element('begin', begin)}${element('end', end)}</date_range>`,
    element('generator', GENERATOR),
    '</report_metadata>',
    '<policy_published>',
    element('domain', domain),
    ...policies,
    element('adkim', policy.adkim),
    element('aspf', policy.aspf),
    element('discovery_method', 'treewalk'),
    element('testing', policy.testing ? 'y' : 'n'),
    '</policy_published>',
    ...rows.map(({ row, messages }) => record(row, messages)),
    '</feedback>',
    '',
  ].join('\n')
}

function record(row: ReportedRow, messages: number): string {
  const { dkimResults, spfResult, reason } = row
  const passed = (isPass: boolean) => (isPass ? 'pass' : 'fail')
  return [
    '<record>',
    '<row>',
    element('source_ip', row.sourceIp),
    element('count', messages),
    '<policy_evaluated>',
    element('disposition', row.disposition),
    element('dkim', passed(row.dkim)),
    element('spf', passed(row.spf)),
    ...(reason === null ? [] : [`<reason>${element('type', reason)}</reason>`]),
    '</policy_evaluated>',
    '</row>',
    `<identifiers>${element('header_from', row.headerFrom)}${element('envelope_from', row.envelopeFrom)}</identifiers>`,
    '<auth_results>',
    ...dkimResults.map(
      ({ domain, selector, result }) =>
        `<dkim>${element('domain', domain)}${element('selector', selector)}${element('result', known(DKIM_RESULTS, result))}</dkim>`,
    ),
    ...(spfResult === null ? [] : [spfElement(spfResult, row.envelopeFrom !== '')]),
    '</auth_results>',
    '</record>',
  ].join('\n')
}

/** Only MAIL FROM has a scope; with the null reverse-path the name of HELO was checked (RFC 7208 §2.4). */
const spfElement = (spf: { domain: string; result: string }, isMailFrom: boolean): string =>
  `<spf>${element('domain', spf.domain)}${isMailFrom ? element('scope', 'mfrom') : ''}${element('result', known(SPF_RESULTS, spf.result))}</spf>`

const known = (results: ReadonlySet<string>, result: string) => (results.has(result) ? result : 'none')

const element = (name: string, value: string | number) => `<${name}>${escaped(String(value))}</${name}>`

const ENTITIES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' }

/** Characters that XML 1.0 does not know are left out. */
const escaped = (text: string) =>
  text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[<>&]/g, (sign) => ENTITIES[sign] as string)

export function aggregateMail({ from, to, domain, submitter, day, id, content }: DailyReport): Buffer {
  return mailWithReport({
    ...{ from, to, domain, submitter, id },
    fields: [],
    type: 'multipart/mixed',
    explanation: [
      'This is a DMARC aggregate report about mail with an author in',
      `${domain}`,
      `that ${submitter} received on ${day} (UTC).`,
    ],
    file: { type: 'application/gzip', name: reportFilename(submitter, domain, day, id, 'xml.gz'), content },
  })
}
