/**
 * Activity: events and mail of the last days with filters. Calls POST /v1/analytics/logs; a live view asks again while it is open.
 */
import { Button, NativeSelect } from '@mantine/core'
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Icon } from '../icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { type Column, DataTable } from '../shared/data-table.tsx'
import { lookOf } from '../shared/event-look.ts'
import { FilterBar, type FilterField } from '../shared/filter-bar.tsx'
import { Page, PageHeader } from '../shared/page.tsx'
import { PersonLink } from '../shared/person-link.tsx'
import { EmptyState } from '../shared/states.tsx'
import { Time } from '../shared/time.tsx'
import { type LogItem, type LogQuery, readLogs } from './activity-api.ts'
import {
  type ActivitySearch,
  DEFAULT_SPAN,
  FIELDS,
  isIndexed,
  isVisit,
  KINDS,
  logQueryOf,
  SPANS,
} from './activity-search.ts'
import { detailOf, kindOf } from './event-words.ts'
import { MachineMark } from './machine-mark.tsx'
import { FIELD_LABELS, KIND_LABELS, SPAN_LABELS, TEXT } from './text.ts'
import './activity.css'

const route = getRouteApi('/activity')
/** The API has no stream of events; a page that is looked up in an index costs a few milliseconds. */
const LIVE_REFRESH_MS = 5_000

const logsQuery = (query: LogQuery, isLive: boolean) =>
  queryOptions({
    queryKey: ['activity', query],
    queryFn: async ({ signal }) => valueOrThrow(await readLogs(query, signal)),
    refetchInterval: isLive && LIVE_REFRESH_MS,
    placeholderData: keepPreviousData,
  })

type Changes = { [Name in keyof ActivitySearch]?: ActivitySearch[Name] | undefined }
type FilterName = 'q' | 'by' | 'event' | 'provider' | 'domain' | 'people'

const FILTERS: readonly FilterField<FilterName>[] = [
  { name: 'q', kind: 'search', label: TEXT.search, placeholder: TEXT.placeholder },
  {
    name: 'by',
    kind: 'choice',
    label: TEXT.by,
    any: TEXT.byForm,
    options: FIELDS.map((field) => [field, FIELD_LABELS[field]]),
  },
  {
    name: 'event',
    kind: 'choice',
    label: TEXT.event,
    any: TEXT.anyEvent,
    options: KINDS.map((kind) => [kind, KIND_LABELS[kind]]),
  },
]

const PEOPLE: FilterField<FilterName> = {
  name: 'people',
  kind: 'choice',
  label: TEXT.people,
  any: TEXT.peopleAndMachines,
  options: [['only', TEXT.peopleOnly]],
}

export function ActivityPage() {
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/activity' })
  const [isPaused, setPaused] = useState(false)
  const query = logQueryOf(search)
  const canBeLive = search.at === undefined && isIndexed(query)
  const isLive = canBeLive && !isPaused
  const logs = useQuery(logsQuery(query, isLive))
  /** Another search begins at its first page. */
  const change = (changed: Changes) => {
    const { at: _, ...kept } = search
    const next = Object.entries({ ...kept, ...changed }).filter(([, value]) => value !== undefined)
    void navigate({ search: Object.fromEntries(next), replace: true })
  }
  const links = logs.data?.pagination
  const isPart = links?.next !== undefined && (logs.data?.items.length ?? 0) < (query.pagination?.limit ?? 0)
  return (
    <Page wide>
      <PageHeader
        title={TEXT.title}
        lead={TEXT.lead}
        actions={
          canBeLive ? (
            <LiveButton isLive={isLive} onToggle={() => setPaused(!isPaused)} />
          ) : (
            <Button
              variant="default"
              size="sm"
              title={TEXT.notLive}
              leftSection={<Icon name="refresh" size={16} />}
              loading={logs.isFetching && !logs.isPlaceholderData}
              onClick={() => void logs.refetch()}
            >
              {TEXT.refresh}
            </Button>
          )
        }
      />
      <FilterBar
        fields={isVisit(search.event) ? [...FILTERS, PEOPLE] : FILTERS}
        values={search}
        onChange={(name, value) => change({ [name]: value })}
        onClear={() => void navigate({ search: search.span ? { span: search.span } : {}, replace: true })}
      >
        <SpanSelect span={search.span ?? DEFAULT_SPAN} onChange={(span) => change({ span })} />
        {search.provider && <Chip label={search.provider} onRemove={() => change({ provider: undefined })} />}
        {search.domain && <Chip label={search.domain} onRemove={() => change({ domain: undefined })} />}
      </FilterBar>
      <div className="panel">
        <DataTable
          label={TEXT.events}
          className="activity-table"
          columns={COLUMNS}
          rows={logs.data?.items}
          rowKey={({ id }) => id}
          error={logs.error}
          retry={logs.refetch}
          isStale={logs.isPlaceholderData}
          expectedRows={12}
          empty={<Nothing search={search} onLonger={() => change({ span: '30d' })} />}
          links={links}
          onPage={(token) => void navigate({ search: { ...search, at: token } })}
        />
        {isPart && <p className="activity-part">{TEXT.more}</p>}
      </div>
    </Page>
  )
}

function LiveButton({ isLive, onToggle }: { isLive: boolean; onToggle: () => void }) {
  return (
    <Button
      variant="default"
      size="sm"
      leftSection={<span className="live-dot" data-live={isLive || undefined} />}
      aria-pressed={isLive}
      title={isLive ? TEXT.pause : TEXT.resume}
      onClick={onToggle}
    >
      {isLive ? TEXT.live : TEXT.paused}
    </Button>
  )
}

function SpanSelect({ span, onChange }: { span: string; onChange: (span: (typeof SPANS)[number]) => void }) {
  return (
    <NativeSelect
      size="sm"
      aria-label={TEXT.span}
      value={span}
      data={SPANS.map((value) => ({ value, label: SPAN_LABELS[value] }))}
      onChange={(event) => onChange(event.currentTarget.value as (typeof SPANS)[number])}
    />
  )
}

function Chip({ label, onRemove }: { label: string; onRemove: () => void }) {
  return (
    <Button
      variant="light"
      size="sm"
      rightSection={<Icon name="cross" size={14} />}
      aria-label={`Remove the filter ${label}`}
      onClick={onRemove}
    >
      {label}
    </Button>
  )
}

function Nothing({ search, onLonger }: { search: ActivitySearch; onLonger: () => void }) {
  const isFiltered = search.q || search.event || search.people || search.provider || search.domain
  const longer = search.span !== '30d' && <Button onClick={onLonger}>{TEXT.longer}</Button>
  if (!isFiltered)
    return (
      <EmptyState icon="send" title={TEXT.empty(SPAN_LABELS[search.span ?? DEFAULT_SPAN])} action={longer}>
        {TEXT.emptyWhy}
      </EmptyState>
    )
  return (
    <EmptyState icon="search" title={TEXT.nothing} action={longer}>
      {TEXT.nothingWhy}
    </EmptyState>
  )
}

const COLUMNS: readonly Column<LogItem>[] = [
  { header: TEXT.columns.event, width: '150px', cell: (item) => <EventName item={item} /> },
  { header: TEXT.columns.recipient, width: '30%', cell: (item) => <RecipientLink item={item} /> },
  {
    header: TEXT.columns.subject,
    width: '26%',
    cell: ({ message }) => (
      <span className="activity-subject" dir="auto">
        {message?.headers.subject || TEXT.noSubject}
      </span>
    ),
  },
  {
    header: TEXT.columns.detail,
    cell: (item) => (
      <span className="activity-detail dimmed">
        <MachineMark bot={item['client-info']?.bot} /> {detailOf(item)}
      </span>
    ),
  },
  {
    header: TEXT.columns.time,
    align: 'end',
    width: '110px',
    cell: (item) => (
      <span className="activity-time">
        <Time at={item['@timestamp']} as="age" />
      </span>
    ),
  },
]

function EventName({ item }: { item: LogItem }) {
  const { icon, color } = lookOf(item)
  return (
    <span className="event-name" data-tone={color}>
      <Icon name={icon} size={15} />
      {KIND_LABELS[kindOf(item)] ?? item.event}
    </span>
  )
}

function RecipientLink({ item }: { item: LogItem }) {
  const id = item.message?.headers['message-id']
  const shown = <bdi className="breakable">{item.recipient ?? TEXT.noRecipient}</bdi>
  return (
    <span className="recipient-cell">
      {id === undefined ? (
        shown
      ) : (
        <Link
          className="row-link"
          to="/activity/$id"
          params={{ id }}
          search={item.recipient ? { recipient: item.recipient } : {}}
        >
          {shown}
        </Link>
      )}
      {item.recipient && <PersonLink address={item.recipient} />}
    </span>
  )
}
