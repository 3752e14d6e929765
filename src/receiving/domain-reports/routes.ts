/** Reports of receivers over HTTP (own-operations.md section 12). */
import { formatRfc3339 } from '../../base/time/dates.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import {
  choiceParam,
  dateParam,
  type InputOf,
  limitParam,
  parsedParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { pageName, pivotPaging } from '../../platform/http/request/paging.ts'
import type { DomainReportRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import {
  DMARC_REPORTS_LOCAL,
  dmarcAdvice,
  TLS_REPORTS_LOCAL,
  tlsReportAdvice,
} from '../../sending/domains/names/report-addresses.ts'
import { REPORTS, type ReportItem, type Totals, TYPES } from './shapes.ts'
import {
  dayOf,
  listReports,
  type NamedSums,
  type ReportFilter,
  type ReportPage,
  readTotals,
} from './store.ts'

interface ReportRouteParts extends Pick<Core, 'store' | 'domains' | 'clock'> {
  baseUrl: string
}

const PERIOD_MS = 30 * DAY_MS
/** Names in the totals. */
const NAMES_MAX = 100

const PARAMS = {
  type: choiceParam('Only reports of this type', TYPES),
  from: dateParam('Periods that begin at or after; default 30 days before that of `to`'),
  to: dateParam('Periods that begin at or before; default the end of this day'),
  limit: limitParam(20, 100),
  page: parsedParam('From a paging link', pageName),
  id: textParam('From a paging link'),
}
type Given = InputOf<typeof PARAMS>

export function reportRoutes({ store, domains, clock, baseUrl }: ReportRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/domains/{name}/reports',
      id: 'listDomainReports',
      tag: 'Domains',
      rateLimit: 'analytics',
      summary: 'What receivers report about a domain: DMARC, TLS and complaints',
      auth: { area: 'domains', access: 'read' },
      params: PARAMS,
      answers: { 200: REPORTS },
      async handler({ input, params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const given = input()
        const { limit, id: pivot } = given
        const filter = filterOf(given, clock.now())
        const items = await listReports(store, domain.id, filter, pageFor(given), limit)
        return {
          from: formatRfc3339(new Date(filter.from)),
          to: formatRfc3339(new Date(filter.to)),
          totals: await totalsOf(store, domain.id, filter),
          items: items.map(itemOf),
          ...adviceOf(domain.name, baseUrl),
          paging: pivotPaging({
            baseUrl,
            path: `/sendwright/v1/domains/${encodeURIComponent(domain.name)}/reports`,
            pivotName: 'id',
            firstItem: items.at(0)?.id,
            lastItem: items.at(-1)?.id,
            pivot,
            carry: { limit, type: filter.type, from: params.text('from'), to: params.text('to') },
          }),
        }
      },
    }),
  ]
}

function filterOf(given: Given, now: number): ReportFilter {
  const to = given.to?.getTime() ?? dayOf(now) + DAY_MS - 1000
  const from = given.from?.getTime() ?? dayOf(to) - PERIOD_MS
  return { type: given.type, from: Math.floor(from), to: Math.floor(to) }
}

function pageFor({ page: name, id: pivot }: Given): ReportPage {
  if (name === 'first' || name === 'last') return { name }
  return pivot === undefined ? { name: 'first' } : { name, pivot }
}

const adviceOf = (name: string, baseUrl: string) => ({
  addresses: { dmarc: `${DMARC_REPORTS_LOCAL}@${name}`, tls: `${TLS_REPORTS_LOCAL}@${name}` },
  records: [
    { name: `_dmarc.${name}`, type: 'TXT' as const, value: dmarcAdvice(name) },
    { name: `_smtp._tls.${name}`, type: 'TXT' as const, value: tlsReportAdvice(name, baseUrl) },
  ],
})

const itemOf = (row: DomainReportRow): ReportItem => ({
  id: row.id,
  type: row.type,
  sender: row.sender,
  authenticated: Number(row.authenticated) === 1,
  organization: row.organization,
  contact: row.contact,
  report_id: row.report_id,
  begin: formatRfc3339(new Date(Number(row.begin_at))),
  end: formatRfc3339(new Date(Number(row.end_at))),
  received_at: formatRfc3339(new Date(Number(row.received_at))),
  passed: Number(row.passed),
  failed: Number(row.failed),
  row_count: Number(row.row_count),
  rows: JSON.parse(row.rows_json) as ReportItem['rows'],
})

async function totalsOf(store: Store, domainId: string, filter: ReportFilter): Promise<Totals> {
  async function read<T>(type: DomainReportRow['type'], view: (all: NamedSums, names: NamedSums[]) => T) {
    if (filter.type !== undefined && filter.type !== type) return undefined
    const rows = await readTotals(store, domainId, type, filter, NAMES_MAX)
    const all = rows[0]?.name === '' ? rows[0] : NONE
    return view(all, rows.slice(all === NONE ? 0 : 1, NAMES_MAX + 1))
  }
  const [dmarc, tls, complaint] = await Promise.all([
    read('dmarc', dmarcTotals),
    read('tls', tlsTotals),
    read('complaint', complaintTotals),
  ])
  return { ...(dmarc && { dmarc }), ...(tls && { tls }), ...(complaint && { complaint }) }
}

const NONE: NamedSums = { name: '', passed: 0, failed: 0, quarantined: 0, rejected: 0 }

const messagesOf = ({ passed, failed, quarantined: quarantine, rejected: reject }: NamedSums) => ({
  messages: passed + failed,
  ...{ passed, failed },
  dispositions: { none: passed + failed - quarantine - reject, quarantine, reject },
})

const dmarcTotals = (all: NamedSums, names: NamedSums[]) => ({
  ...messagesOf(all),
  sources: names.map((one) => ({ source_ip: one.name, ...messagesOf(one) })),
})

const tlsTotals = ({ passed, failed }: NamedSums, names: NamedSums[]) => ({
  ...{ sessions: passed + failed, passed, failed },
  failures: names.map(({ name, failed: sessions }) => ({ result_type: name, sessions })),
})

const complaintTotals = ({ failed: complaints }: NamedSums, names: NamedSums[]) => ({
  complaints,
  providers: names.map(({ name, failed }) => ({ provider: name, complaints: failed })),
})
