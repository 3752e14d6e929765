/**
 * Reads DMARC aggregate reports: RFC 7489 appendix C, and the form of RFC 9990 as far as it has the same elements.
 *
 * The XML comes from strangers. htmlparser2 reads it piece by piece and knows only the five entities of XML itself, so
 * nothing expands. Elements are found by their path; unknown ones, attributes and namespaces are ignored, and so are
 * elements around the report: some reporters begin with that of a schema, which they never close.
 */
import { Parser } from 'htmlparser2'
import { NoReport } from '../../message/report-mail.ts'

type Disposition = 'none' | 'quarantine' | 'reject'

export interface AggregateRow {
  sourceIp: string
  /** Messages. */
  count: number
  disposition: Disposition
  /** Results with alignment; DMARC passes if one of them does. */
  dkim: boolean
  spf: boolean
  headerFrom: string
  /** Why the receiver did not follow the policy, e.g. `forwarded`. */
  reasons: string[]
  /** Results without alignment. */
  dkimResults: { domain: string; selector: string; result: string }[]
  spfResults: { domain: string; result: string }[]
}

export interface AggregateReport {
  organization: string
  contact: string
  reportId: string
  /** Unix seconds. */
  beginAt: number
  endAt: number
  /** Where the policy was found, as written. */
  domain: string
  policy: string
  rows: AggregateRow[]
}

const ROWS_MAX = 10_000
/** Real ones have 6 levels. Closing an element costs as much as it is deep. */
const DEPTH_MAX = 20
/** Elements around the report; a page of HTML has more before long. */
const AROUND_MAX = 3
/** Elements and pieces of text. 10,000 rows with all that the format knows have half of it; so many take 250 ms. */
const PIECES_MAX = 1_000_000
/** Characters of one value; longer ones are cut. */
const VALUE_CHARS_MAX = 255
/** Results and reasons of one row; further ones are ignored. */
const RESULTS_MAX = 4
/** Messages of one row: sums of all rows stay exact numbers. */
const COUNT_MAX = 1_000_000_000

type ReportField = 'organization' | 'contact' | 'reportId' | 'domain' | 'policy' | 'begin' | 'end'

const REPORT_FIELDS: Readonly<Record<string, ReportField>> = {
  'report_metadata/org_name': 'organization',
  'report_metadata/email': 'contact',
  'report_metadata/report_id': 'reportId',
  'report_metadata/date_range/begin': 'begin',
  'report_metadata/date_range/end': 'end',
  'policy_published/domain': 'domain',
  'policy_published/p': 'policy',
}

/** Takes the text in pieces; every method throws NoReport. */
export class AggregateReader {
  readonly #parser: Parser
  readonly #path: string[] = []
  readonly #report: Partial<Record<ReportField, string>> = {}
  readonly #rows: AggregateRow[] = []
  #fields: Record<string, string> = {}
  #row = emptyRow()
  #result: Partial<Record<'domain' | 'selector' | 'result', string>> = {}
  #text = ''
  #pieces = 0
  #around = 0
  #complete = false

  constructor() {
    this.#parser = new Parser(
      {
        onopentagname: (name) => this.#open(name),
        ontext: (text) => {
          this.#count()
          if (this.#text.length < VALUE_CHARS_MAX) this.#text += text.slice(0, VALUE_CHARS_MAX)
        },
        onclosetag: (_, implied) => this.#close(implied),
      },
      { xmlMode: true, decodeEntities: true },
    )
  }

  push(text: string): void {
    this.#parser.write(text)
  }

  end(): AggregateReport {
    this.#parser.end()
    if (!this.#complete) throw new NoReport('the XML has no complete feedback element')
    const { begin, end, ...texts } = this.#report
    const [beginAt, endAt] = [Number(begin), Number(end)]
    if (!Number.isSafeInteger(beginAt) || !Number.isSafeInteger(endAt) || endAt < beginAt)
      throw new NoReport('the report has no period')
    const { organization = '', contact = '', reportId = '', domain = '', policy = '' } = texts
    if (reportId === '' || domain === '') throw new NoReport('the report has no id or no domain')
    return { organization, contact, reportId, beginAt, endAt, domain, policy, rows: this.#rows }
  }

  #count(): void {
    if (++this.#pieces > PIECES_MAX) throw new NoReport('the XML has too many elements')
  }

  #open(name: string): void {
    this.#count()
    if (this.#path.length === DEPTH_MAX) throw new NoReport('the XML is nested too deeply')
    const local = name.slice(name.lastIndexOf(':') + 1).toLowerCase()
    this.#text = ''
    if (this.#path.length > 0 || local === 'feedback') this.#path.push(local)
    else if (++this.#around > AROUND_MAX) throw new NoReport('the XML has no feedback element')
  }

  #close(implied: boolean): void {
    // One around the report.
    if (this.#path.length === 0) return
    const [, ...path] = this.#path
    const value = this.#text.trim().slice(0, VALUE_CHARS_MAX).replaceAll('\0', '')
    this.#text = ''
    this.#path.pop()
    if (path.length === 0) this.#complete = !implied
    else if (path[0] === 'record') this.#takeOfRow(path.slice(1).join('/'), value)
    else {
      const field = REPORT_FIELDS[path.join('/')]
      if (field !== undefined) this.#report[field] ??= value
    }
  }

  #takeOfRow(path: string, value: string): void {
    const [, kind, member] = /^auth_results\/(dkim|spf)(?:\/(.*))?$/.exec(path) ?? []
    if (path === '') this.#endRow()
    else if (kind !== undefined) this.#takeOfResult(kind, member, value)
    else if (ROW_FIELDS.has(path)) this.#fields[path] = value
    else if (path === 'row/policy_evaluated/reason/type' && this.#row.reasons.length < RESULTS_MAX)
      this.#row.reasons.push(value)
  }

  #takeOfResult(kind: string, member: string | undefined, value: string): void {
    if (member === 'domain' || member === 'selector' || member === 'result') this.#result[member] = value
    if (member !== undefined) return
    const { domain = '', selector = '', result = '' } = this.#result
    this.#result = {}
    const { dkimResults, spfResults } = this.#row
    if (kind === 'dkim' && dkimResults.length < RESULTS_MAX) dkimResults.push({ domain, selector, result })
    if (kind === 'spf' && spfResults.length < RESULTS_MAX) spfResults.push({ domain, result })
  }

  #endRow(): void {
    if (this.#rows.length === ROWS_MAX) throw new NoReport(`the report has more than ${ROWS_MAX} rows`)
    const fields = this.#fields
    const count = Number(fields['row/count'])
    if (!Number.isInteger(count) || count < 0 || count > COUNT_MAX)
      throw new NoReport('a row has no number of messages')
    this.#rows.push({
      ...this.#row,
      count,
      sourceIp: fields['row/source_ip'] ?? '',
      disposition: dispositionOf(fields['row/policy_evaluated/disposition']),
      dkim: isPass(fields['row/policy_evaluated/dkim']),
      spf: isPass(fields['row/policy_evaluated/spf']),
      headerFrom: (fields['identifiers/header_from'] ?? '').toLowerCase(),
    })
    this.#row = emptyRow()
    this.#fields = {}
  }
}

const ROW_FIELDS = new Set([
  ...['row/source_ip', 'row/count', 'identifiers/header_from'],
  ...['row/policy_evaluated/disposition', 'row/policy_evaluated/dkim', 'row/policy_evaluated/spf'],
])

const emptyRow = (): Pick<AggregateRow, 'reasons' | 'dkimResults' | 'spfResults'> => ({
  reasons: [],
  dkimResults: [],
  spfResults: [],
})

const isPass = (word: string | undefined) => word?.toLowerCase() === 'pass'

/** RFC 9990 adds `pass`: the policy was not needed. */
function dispositionOf(word: string | undefined): Disposition {
  const lower = word?.toLowerCase()
  return lower === 'quarantine' || lower === 'reject' ? lower : 'none'
}
