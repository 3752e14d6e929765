/** The last calls of an API key. Calls GET /sendwright/v1/keys/:id/requests. */
import { Badge, SegmentedControl } from '@mantine/core'
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { followJson } from '../api.ts'
import type { KeyRequest } from '../api-types.ts'
import { CopyButton } from '../base/copy-button.tsx'
import { valueOrThrow } from '../queries.ts'
import { BUTTONS, type Column } from '../shared/page/data-table.tsx'
import { ListPage } from '../shared/page/list-page.tsx'
import { LoadingPage } from '../shared/page/loading-page.tsx'
import { pageLinks, placeOf, placePath } from '../shared/page/paging.ts'
import { EmptyState } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import { keysQuery } from './settings-api.ts'
import { type KeyCallsSearch, readKeyCallsSearch } from './settings-search.ts'
import { KEY_CALLS_TEXT as TEXT } from './text.ts'

const route = getRouteApi('/settings/keys/$id')
const back = { to: '/settings/keys', label: TEXT.back }
const PAGE_SIZE = 50 // about three screens

const callsPath = (id: string, failed: boolean) =>
  `/sendwright/v1/keys/${encodeURIComponent(id)}/requests?limit=${PAGE_SIZE}${failed ? '&failed=yes' : ''}`

const callsQuery = (path: string) =>
  queryOptions({
    queryKey: ['key-calls', path],
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /sendwright/v1/keys/{}/requests'>(path, signal)),
    placeholderData: keepPreviousData,
  })

export default function KeyCallsPage() {
  const { id } = route.useParams()
  const { failed, at } = route.useSearch()
  const navigate = useNavigate()
  const list = useQuery(callsQuery(placePath(callsPath(id, failed === 'yes'), at)))
  const go = (search: KeyCallsSearch) => void navigate({ to: '.', replace: true, search })
  const keys = useQuery(keysQuery)
  // A long name takes more lines than the id: the calls would move.
  if (keys.isPending) return <LoadingPage />
  const key = keys.data?.find((each) => each.id === id)
  return (
    <ListPage
      title={TEXT.title(key?.description || id)}
      lead={TEXT.lead}
      back={back}
      actions={
        <SegmentedControl
          size="xs"
          aria-label={TEXT.which}
          data={TEXT.choices.map(([value, label]) => ({ value, label }))}
          value={failed ?? 'no'}
          onChange={(value) => go(value === 'yes' ? { failed: value } : {})}
        />
      }
      list={list}
      rows={list.data?.items}
      rowKey={(call) => call.id}
      columns={COLUMNS}
      links={pageLinks(list.data, at, PAGE_SIZE)}
      onPage={(link) => go(readKeyCallsSearch({ failed, at: placeOf(link) }))}
      empty={
        <EmptyState icon="key" title={failed === 'yes' ? TEXT.noneFailed : TEXT.none}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    />
  )
}

const COLUMNS: Column<KeyRequest>[] = [
  { header: TEXT.time, cell: ({ created_at }) => <Time at={created_at} as="age" /> },
  {
    header: TEXT.call,
    cell: ({ method, path, error, acted_for }) => (
      <div>
        <code className="breakable">
          {method} {path}
        </code>
        {error !== null && <div className="breakable settings-small">{error}</div>}
        {acted_for !== null && <div className="dimmed settings-small">{TEXT.actedFor(acted_for)}</div>}
      </div>
    ),
  },
  {
    header: TEXT.status,
    cell: ({ status }) => (
      <Badge variant="light" tt="none" color={status >= 500 ? 'red' : status >= 400 ? 'orange' : 'teal'}>
        {status}
      </Badge>
    ),
  },
  { header: TEXT.took, align: 'end', wideOnly: true, cell: ({ duration_ms }) => TEXT.ms(duration_ms) },
  { header: TEXT.from, wideOnly: true, cell: ({ remote_address }) => remote_address },
  { ...BUTTONS, cell: ({ curl }) => <CopyButton text={curl} what={TEXT.asCurl} /> },
]
