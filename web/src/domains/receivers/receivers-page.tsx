/**
 * What receivers report of a domain: DMARC and TLS reports, their rules for senders. Calls
 * /sendwright/v1/domains/:domain/reports and /sender-rules; figures are in receivers-figures.tsx.
 */
import { Badge, Skeleton, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../../queries.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { placeOf, placePath } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { DomainFrame } from '../domain-frame.tsx'
import { DOMAINS_KEY } from '../domain-queries.ts'
import {
  REPORTS_PAGE_SIZE,
  type Report,
  type Reports,
  type RuleFinding,
  readReports,
  readRules,
  reportsPath,
} from './receivers-api.ts'
import { GmailFigures, SndsFigures } from './receivers-figures.tsx'
import type { ReceiversSearch } from './receivers-search.ts'
import { TEXT } from './receivers-text.ts'
import '../domains.css'

const route = getRouteApi('/domains/$name/receivers')

export default function ReceiversPage() {
  const { name } = route.useParams()
  return (
    <DomainFrame name={name} title={TEXT.title} lead={() => TEXT.leadOf(name)}>
      {() => (
        <>
          <Rules name={name} />
          <GmailFigures name={name} />
          <SndsFigures />
          <DomainReports name={name} />
        </>
      )}
    </DomainFrame>
  )
}

function Rules({ name }: { name: string }) {
  const rules = useQuery({
    queryKey: [DOMAINS_KEY, 'rules', name],
    queryFn: async ({ signal }) => valueOrThrow(await readRules(name, signal)),
  })
  const { is_bulk_sender: isBulk, providers = [] } = rules.data ?? {}
  const counts = providers
    .map(({ provider, busiest_day }) => TEXT.volume(nameOf(provider), number(busiest_day)))
    .join(', ')
  return (
    <Panel title={TEXT.rules}>
      {rules.data ? (
        <>
          <Text size="sm">{isBulk ? TEXT.bulk(counts) : TEXT.notBulk(counts)}</Text>
          <ul className="rule-rows">
            {rules.data.rules.map((finding) => (
              <Rule key={finding.rule} finding={finding} />
            ))}
          </ul>
        </>
      ) : rules.error ? (
        <Failure title={TEXT.rules} error={rules.error} retry={rules.refetch} />
      ) : (
        <Skeleton height={420} role="status" aria-label={TEXT.rules} />
      )}
    </Panel>
  )
}

const RULE_STATES = {
  passed: 'teal',
  failed: 'red',
  unknown: 'gray',
} as const

const nameOf = (provider: string) => TEXT.providers[provider] ?? provider

function Rule({ finding }: { finding: RuleFinding }) {
  const { rule, passed, required_of, required_by, sentence, figure, limit } = finding
  const state = passed === null ? 'unknown' : passed ? 'passed' : 'failed'
  return (
    <li className="rule-row">
      <div className="rule-head">
        <strong>{TEXT.names[rule] ?? rule}</strong>
        <Badge variant="light" tt="none" fw={550} color={RULE_STATES[state]}>
          {TEXT.states[state]}
        </Badge>
        <span className="dimmed">{TEXT.requiredOf(required_of, required_by.map(nameOf).join(', '))}</span>
      </div>
      <p className="breakable rule-words">
        {sentence} {figure !== undefined && limit !== undefined && `(${TEXT.figure(figure, limit)})`}
      </p>
    </li>
  )
}

function DomainReports({ name }: { name: string }) {
  const { type = '', at } = route.useSearch()
  const navigate = useNavigate({ from: '/domains/$name/receivers' })
  const path = placePath(reportsPath(name, type), at)
  const reports = useQuery({
    queryKey: [DOMAINS_KEY, 'reports', path],
    queryFn: async ({ signal }) => valueOrThrow(await readReports(path, signal)),
    placeholderData: keepPreviousData,
  })
  const change = (changes: { [Name in keyof ReceiversSearch]?: ReceiversSearch[Name] | undefined }) =>
    void navigate({ replace: 'type' in changes, search: (old) => withSearch(old, changes) })
  const { items, paging, totals } = reports.data ?? {}
  return (
    <>
      <FilterBar
        fields={[{ name: 'type', kind: 'choice', label: TEXT.type, options: Object.entries(TEXT.types) }]}
        values={{ type }}
        onChange={(_, value) => change({ type: value, at: undefined })}
        onClear={() => change({ type: undefined, at: undefined })}
      />
      <Panel title={TEXT.reports} flush>
        <DataTable
          label={TEXT.reports}
          columns={COLUMNS}
          rows={items}
          rowKey={({ id }) => id}
          error={reports.error}
          retry={reports.refetch}
          isStale={reports.isPlaceholderData}
          links={{
            previous: at === undefined ? undefined : paging?.previous,
            next: items?.length === REPORTS_PAGE_SIZE ? paging?.next : undefined,
          }}
          onPage={(link) => change({ at: placeOf(link) })}
          expectedRows={4}
          empty={
            <EmptyState icon="mail" title={TEXT.none}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {totals && <Totals totals={totals} />}
      {reports.data && <ReportRecords records={reports.data.records} />}
    </>
  )
}

const number = (value: number) => value.toLocaleString('en')

const COLUMNS: readonly Column<Report>[] = [
  { header: TEXT.period, cell: ({ begin }) => <Time at={begin} as="date" /> },
  { header: TEXT.type, cell: ({ type }) => TEXT.types[type] ?? type },
  {
    header: TEXT.sender,
    cell: ({ organization, sender, authenticated }) => (
      <span className="breakable">
        {organization || sender} {!authenticated && <span className="dimmed">({TEXT.unproven})</span>}
      </span>
    ),
  },
  { header: TEXT.passed, align: 'end', cell: ({ passed }) => number(passed) },
  { header: TEXT.failed, align: 'end', cell: ({ failed }) => number(failed) },
]

function Totals({ totals: { dmarc, tls } }: Pick<Reports, 'totals'>) {
  return (
    <>
      {dmarc && dmarc.sources.length > 0 && (
        <Panel title={TEXT.sources} flush>
          <DataTable
            label={TEXT.sources}
            columns={[
              { header: TEXT.source, cell: ({ source_ip }) => source_ip },
              { header: TEXT.passed, align: 'end', cell: ({ passed }) => number(passed) },
              { header: TEXT.failed, align: 'end', cell: ({ failed }) => number(failed) },
            ]}
            rows={dmarc.sources}
            rowKey={({ source_ip }) => source_ip}
            empty={null}
          />
        </Panel>
      )}
      {tls && tls.failures.length > 0 && (
        <Panel title={TEXT.failures} flush>
          <DataTable
            label={TEXT.failures}
            columns={[
              { header: TEXT.failure, cell: ({ result_type }) => result_type },
              { header: TEXT.sessions, align: 'end', cell: ({ sessions }) => number(sessions) },
            ]}
            rows={tls.failures}
            rowKey={({ result_type }) => result_type}
            empty={null}
          />
        </Panel>
      )}
    </>
  )
}

function ReportRecords({ records }: Pick<Reports, 'records'>) {
  return (
    <Panel title={TEXT.records}>
      <ul className="rule-rows">
        {records.map(({ name, type, value }) => (
          <li key={name} className="rule-row">
            <div className="rule-head">
              <span className="dimmed">{type}</span>
              <Copyable text={name} what={`${TEXT.host} ${name}`} />
            </div>
            <Copyable text={value} what={`${TEXT.value} of ${name}`} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
