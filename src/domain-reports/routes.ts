/** Reports of receivers over HTTP (own-operations.md section 12). */
import type { Clock } from '../base/clock.ts'
import { formatRfc3339 } from '../base/dates.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import {
  DMARC_REPORTS_LOCAL,
  dmarcAdvice,
  TLS_REPORTS_LOCAL,
  tlsReportAdvice,
} from '../domains/report-addresses.ts'
import { ownDomain } from '../domains/routes.ts'
import { DAY_MS } from '../events/event-retention.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { DomainReportRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import {
  dayOf,
  listReports,
  type NamedSums,
  type ReportFilter,
  type ReportPage,
  readTotals,
} from './store.ts'

export interface ReportRouteParts {
  store: Store
  domains: DomainDirectory
  clock: Clock
  baseUrl: string
}

const TYPES = ['dmarc', 'tls', 'complaint'] as const
const PAGE_SIZE = 20
const PERIOD_MS = 30 * DAY_MS
/** Names in the totals. */
const NAMES_MAX = 100

const PARAMS: ParamDoc[] = [
  { name: 'type', type: 'string', description: 'Only reports of this type', values: TYPES },
  {
    name: 'from',
    type: 'date',
    description: 'Periods that begin at or after; default 30 days before that of `to`',
  },
  { name: 'to', type: 'date', description: 'Periods that begin at or before; default the end of this day' },
  { name: 'limit', type: 'integer', description: 'Page size, 1 to 100', default: PAGE_SIZE },
  { name: 'page', type: 'string', description: 'From a paging link' },
  { name: 'id', type: 'string', description: 'From a paging link' },
]

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
      responses: { 200: { description: 'Totals, and a page of reports' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const limit = limitOf(params, { default: PAGE_SIZE, max: 100 })
        const filter = filterOf(params, clock.now())
        const pivot = params.text('id')
        const items = await listReports(store, domain.id, filter, pageOf(params, pivot), limit)
        return {
          from: formatRfc3339(new Date(filter.from)),
          to: formatRfc3339(new Date(filter.to)),
          totals: await totalsOf(store, domain.id, filter),
          items: items.map(itemOf),
          ...adviceOf(domain.name),
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

function filterOf(params: Params, now: number): ReportFilter {
  const to = params.date('to')?.getTime() ?? dayOf(now) + DAY_MS - 1000
  const from = params.date('from')?.getTime() ?? dayOf(to) - PERIOD_MS
  return { type: params.oneOf('type', TYPES), from: Math.floor(from), to: Math.floor(to) }
}

function pageOf(params: Params, pivot: string | undefined): ReportPage {
  const name = pageName(params)
  if (name === 'first' || name === 'last') return { name }
  return pivot === undefined ? { name: 'first' } : { name, pivot }
}

const adviceOf = (name: string) => ({
  addresses: { dmarc: `${DMARC_REPORTS_LOCAL}@${name}`, tls: `${TLS_REPORTS_LOCAL}@${name}` },
  records: [
    { name: `_dmarc.${name}`, type: 'TXT', value: dmarcAdvice(name) },
    { name: `_smtp._tls.${name}`, type: 'TXT', value: tlsReportAdvice(name) },
  ],
})

const itemOf = (row: DomainReportRow) => ({
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
  rows: JSON.parse(row.rows_json) as unknown[],
})

async function totalsOf(store: Store, domainId: string, filter: ReportFilter): Promise<object> {
  const types = filter.type === undefined ? TYPES : [filter.type]
  const totals = await Promise.all(
    types.map(async (type) => {
      const rows = await readTotals(store, domainId, type, filter, NAMES_MAX)
      const all = rows[0]?.name === '' ? rows[0] : NONE
      return [type, SHAPES[type](all, rows.slice(all === NONE ? 0 : 1, NAMES_MAX + 1))] as const
    }),
  )
  return Object.fromEntries(totals)
}

const NONE: NamedSums = { name: '', passed: 0, failed: 0, quarantined: 0, rejected: 0 }

const messagesOf = ({ passed, failed, quarantined: quarantine, rejected: reject }: NamedSums) => ({
  messages: passed + failed,
  ...{ passed, failed },
  dispositions: { none: passed + failed - quarantine - reject, quarantine, reject },
})

const SHAPES: Record<DomainReportRow['type'], (all: NamedSums, names: NamedSums[]) => object> = {
  dmarc: (all, names) => ({
    ...messagesOf(all),
    sources: names.map((one) => ({ source_ip: one.name, ...messagesOf(one) })),
  }),
  tls: ({ passed, failed }, names) => ({
    ...{ sessions: passed + failed, passed, failed },
    failures: names.map(({ name, failed: sessions }) => ({ result_type: name, sessions })),
  }),
  complaint: ({ failed: complaints }, names) => ({
    complaints,
    providers: names.map(({ name, failed }) => ({ provider: name, complaints: failed })),
  }),
}
