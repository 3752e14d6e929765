import { Badge } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type Column, DataTable } from '../shared/data-table.tsx'
import { FilterBar } from '../shared/filter-bar.tsx'
import { Page, PageHeader, Panel } from '../shared/page.tsx'
import { placeOf, placePath } from '../shared/paging.ts'
import { EmptyState } from '../shared/states.tsx'
import { Time } from '../shared/time.tsx'
import { AUDIT_PAGE_SIZE, type AuditEntry, auditPath, auditQuery, usersQuery } from './settings-api.ts'
import { AUDIT_FILTERS, type AuditSearch } from './settings-search.ts'
import { TEXT as SHARED, AUDIT_TEXT as TEXT } from './text.ts'
import './settings.css'

const route = getRouteApi('/settings/audit')

export function AuditPage() {
  const { at, ...filters } = route.useSearch()
  const navigate = useNavigate()
  const list = useQuery({
    ...auditQuery(placePath(auditPath(filters), at)),
    placeholderData: keepPreviousData,
  })
  const users = useQuery(usersQuery)
  const nameOf = new Map(users.data?.map(({ id, email }) => [id, email]))
  const isFiltered = Object.keys(filters).length > 0
  const go = (search: AuditSearch, replace = true) =>
    void navigate({ to: '/settings/audit', replace, search })
  const rows = list.data?.items
  // The API's lists have all links always: a short page is the last one, and only a page behind a link has one before it.
  const links = list.data && {
    ...(at !== undefined && { previous: list.data.paging.previous }),
    ...((rows?.length ?? 0) >= AUDIT_PAGE_SIZE && { next: list.data.paging.next }),
  }
  const columns: Column<AuditEntry>[] = [
    { header: TEXT.when, cell: ({ created_at }) => <Time at={created_at} /> },
    { header: TEXT.action, cell: ({ action }) => <strong className="breakable">{action}</strong> },
    { header: TEXT.subject, cell: ({ subject }) => <span className="breakable">{subject ?? '–'}</span> },
    {
      header: TEXT.by,
      cell: ({ user_id, key_id }) => (
        <span className="breakable">
          {user_id !== null
            ? (nameOf.get(user_id) ?? user_id)
            : key_id === null
              ? TEXT.bySystem
              : TEXT.byKey(key_id)}
        </span>
      ),
    },
    { header: TEXT.from, wideOnly: true, cell: ({ remote_address }) => remote_address ?? '–' },
    { header: TEXT.result, cell: ({ status }) => <Result status={status} /> },
    {
      header: TEXT.detail,
      cell: ({ detail }) => (
        <details className="settings-detail">
          <summary>{TEXT.detail}</summary>
          <pre>{JSON.stringify(detail, null, 2)}</pre>
        </details>
      ),
    },
  ]
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} back={{ to: '/settings', label: SHARED.title }} />
      <FilterBar
        fields={AUDIT_FILTERS.map((name) => ({
          name,
          kind: name === 'subject' ? 'search' : 'text',
          label: TEXT.filters[name],
        }))}
        values={filters}
        onChange={(name, value) => {
          const { [name]: _, ...rest } = filters
          go(value === undefined ? rest : { ...rest, [name]: value })
        }}
        onClear={() => go({})}
      />
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columns}
          rows={rows}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData}
          links={links}
          onPage={(link) => {
            const place = placeOf(link)
            go({ ...filters, ...(place !== undefined && { at: place }) }, false)
          }}
          empty={
            isFiltered ? (
              <EmptyState icon="search" title={TEXT.none}>
                {TEXT.noneWhy}
              </EmptyState>
            ) : (
              <EmptyState icon="list" title={TEXT.noneAtAll} />
            )
          }
        />
      </Panel>
    </Page>
  )
}

function Result({ status }: { status: number | null }) {
  const isGood = status !== null && status < 400
  return (
    <Badge variant="light" tt="none" fw={550} color={isGood ? 'teal' : 'red'}>
      {status ?? TEXT.unfinished}
    </Badge>
  )
}
