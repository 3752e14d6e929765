/**
 * Activity: events and mail of the last days with filters. Calls POST /v1/analytics/logs, and follows GET
 * /sendwright/v1/events/stream while it is open.
 */
import { Button, NativeSelect } from '@mantine/core'
import { keepPreviousData, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { CsvButton } from '../shared/forms/csv-button.tsx'
import { DataTable } from '../shared/page/data-table.tsx'
import { FilterBar, type FilterField } from '../shared/page/filter-bar.tsx'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { withSearch } from '../shared/page/search.ts'
import { EmptyState } from '../shared/page/states.tsx'
import { LOGS_PATH, type LogItem, type LogPage, type LogQuery, readLogs } from './activity-api.ts'
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
import { useBrowserSetting } from './browser-setting.ts'
import { ColumnsChoice, columnsOf, readColumns } from './columns.tsx'
import { hasStream, useLiveEvents } from './live-events.ts'
import { SavedFilters } from './saved-filters.tsx'
import { FIELD_LABELS, KIND_LABELS, SPAN_LABELS, TEXT } from './text.ts'
import './activity.css'

const route = getRouteApi('/activity')
/** Where there is no stream, a page that is looked up in an index is asked for again: it costs a few milliseconds. */
const POLL_MS = 5_000
/** Rows that a search without an index may gather before it is made anew. */
const LIVE_ROWS_MAX = 300

const logsQuery = (query: LogQuery, isPolled: boolean) =>
  queryOptions({
    queryKey: ['activity', query],
    queryFn: async ({ signal }) => valueOrThrow(await readLogs(query, signal)),
    refetchInterval: isPolled && POLL_MS,
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

export default function ActivityPage() {
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/activity' })
  const [isPaused, setPaused] = useState(false)
  const query = logQueryOf(search)
  const queries = useQueryClient()
  const [columns, setColumns] = useBrowserSetting('activity-columns', readColumns)
  const isCheap = isIndexed(query)
  const canBeLive = search.at === undefined && (hasStream || isCheap)
  const isLive = canBeLive && !isPaused
  const [hasSkipped, setSkipped] = useState(false)
  const readAgain = () => {
    setSkipped(false)
    void queries.invalidateQueries({ queryKey: logsQuery(query, false).queryKey })
  }
  const stream = useLiveEvents(isLive ? query : undefined, {
    onOpen: readAgain,
    onEvents({ items, skipped }) {
      // The page with its links is read anew where that is cheap; else the new rows are put on top of it.
      if (isCheap) return readAgain()
      const { queryKey } = logsQuery(query, false)
      const old = queries.getQueryData<LogPage>(queryKey)
      if (old === undefined || old.items.length > LIVE_ROWS_MAX) return readAgain()
      setSkipped(skipped)
      queries.setQueryData<LogPage>(queryKey, { ...old, items: withNewest(old.items, items) })
    },
  })
  const logs = useQuery(logsQuery(query, isLive && isCheap && stream === 'off'))
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
          <>
            <CsvButton
              label={TEXT.csv}
              path={LOGS_PATH}
              name="activity.csv"
              query={() => {
                // All events of the search.
                const { pagination: _, ...body } = logQueryOf(withSearch(search, { at: undefined }))
                return body
              }}
            />
            {canBeLive ? (
              <LiveButton
                isLive={isLive}
                isFollowing={stream === 'live' || isCheap}
                onToggle={() => setPaused(!isPaused)}
              />
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
            )}
          </>
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
        <SavedFilters search={search} />
        <ColumnsChoice shown={columns} onChange={setColumns} />
      </FilterBar>
      <div className="panel">
        <DataTable
          label={TEXT.events}
          className="activity-table"
          columns={columnsOf(columns)}
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
        {hasSkipped && <p className="activity-part">{TEXT.skipped}</p>}
        {isPart && <p className="activity-part">{TEXT.more}</p>}
      </div>
    </Page>
  )
}

/** New rows on top, in the order of their time; each event once. */
export function withNewest(old: readonly LogItem[], items: readonly LogItem[]): LogItem[] {
  const known = new Set(old.map(({ id }) => id))
  return [...items.filter(({ id }) => !known.has(id)), ...old].sort((a, b) =>
    a['@timestamp'] < b['@timestamp'] ? 1 : a['@timestamp'] > b['@timestamp'] ? -1 : 0,
  )
}

function LiveButton(props: { isLive: boolean; isFollowing: boolean; onToggle: () => void }) {
  const { isLive, isFollowing, onToggle } = props
  return (
    <Button
      variant="default"
      size="sm"
      leftSection={<span className="live-dot" data-live={(isLive && isFollowing) || undefined} />}
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
