/** Who changed what. Calls GET /sendwright/v1/audit; names come from /v1/keys and /v5/users. */
import { Badge } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMay } from '../session.ts'
import { CsvButton } from '../shared/forms/csv-button.tsx'
import { DayFields } from '../shared/forms/day-fields.tsx'
import type { Column } from '../shared/page/data-table.tsx'
import { FilterBar, type FilterField } from '../shared/page/filter-bar.tsx'
import { ListPage } from '../shared/page/list-page.tsx'
import { pageLinks, placeOf, placePath } from '../shared/page/paging.ts'
import { withSearch } from '../shared/page/search.ts'
import { EmptyState } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import {
  type ApiKey,
  AUDIT_PAGE_SIZE,
  type AuditEntry,
  auditActionsQuery,
  auditPath,
  auditQuery,
  keysQuery,
  type User,
  usersQuery,
} from './settings-api.ts'
import { AUDIT_FILTERS, type AuditFilter, type AuditSearch } from './settings-search.ts'
import { TEXT as SHARED, AUDIT_TEXT as TEXT } from './text.ts'
import './settings.css'

const route = getRouteApi('/settings/audit')

export default function AuditPage() {
  const { at, ...filters } = route.useSearch()
  const navigate = useNavigate()
  const list = useQuery({
    ...auditQuery(placePath(auditPath(filters), at)),
    placeholderData: keepPreviousData,
  })
  const users = useQuery(usersQuery)
  const keys = useQuery({ ...keysQuery, enabled: useMay({ area: 'keys' }) })
  const actions = useQuery(auditActionsQuery)
  const choices: Partial<Record<AuditFilter, [string, string][]>> = {
    action: (actions.data ?? []).map((action) => [action, action]),
    user_id: (users.data ?? []).map(({ id, name, email }) => [id, name ? `${name} (${email})` : email]),
    key_id: (keys.data ?? []).map(({ id, description, role }) => [
      id,
      `${description || TEXT.unnamed} (${role})`,
    ]),
  }
  // Rows wait for the names, which would move them.
  const isNamed = !users.isLoading && !keys.isLoading
  const isFiltered = Object.keys(filters).length > 0
  const go = (search: AuditSearch, replace = true) =>
    void navigate({ to: '/settings/audit', replace, search })
  const change = (changed: { [Name in keyof AuditSearch]?: string | undefined }) =>
    go(withSearch<AuditSearch>(filters, changed))
  const fields: FilterField<AuditFilter>[] = AUDIT_FILTERS.map((name) => {
    const label = TEXT.filters[name]
    const options = choices[name]
    if (options === undefined) return { name, kind: name === 'subject' ? 'search' : 'text', label }
    // Also what is chosen by a link in a row, such as a deleted key.
    const chosen = filters[name]
    const isListed = chosen === undefined || options.some(([value]) => value === chosen)
    return {
      name,
      kind: 'choice',
      label,
      options: isListed ? options : [...options, [chosen, former(name, chosen)]],
    }
  })
  const columns: Column<AuditEntry>[] = [
    { header: TEXT.when, cell: ({ created_at }) => <Time at={created_at} /> },
    { header: TEXT.action, cell: ({ action }) => <strong className="breakable">{action}</strong> },
    { header: TEXT.subject, cell: ({ subject }) => <span className="breakable">{subject || '–'}</span> },
    {
      header: TEXT.by,
      width: '22%',
      cell: (entry) => <By entry={entry} users={users.data} keys={keys.data} />,
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
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      actions={<CsvButton label={TEXT.csv} path={auditPath(filters)} name="audit.csv" />}
      above={
        <FilterBar
          fields={fields}
          values={filters}
          onChange={(name, value) => change({ [name]: value })}
          onClear={() => go({})}
        >
          <DayFields from={filters.from ?? ''} to={filters.to ?? ''} onChange={change} />
        </FilterBar>
      }
      list={list}
      rows={isNamed ? list.data?.items : undefined}
      rowKey={({ id }) => id}
      columns={columns}
      links={pageLinks(list.data, at, AUDIT_PAGE_SIZE)}
      onPage={(link) => go(withSearch<AuditSearch>(filters, { at: placeOf(link) }), false)}
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
  )
}

const former = (name: AuditFilter, id: string) =>
  name === 'user_id' ? TEXT.formerUser(id) : name === 'key_id' && id !== LOCAL_KEY ? TEXT.formerKey(id) : id

/** All changes of the filter. */

/** Who did it: by name where they still exist; the link shows only what they did. */
function By(props: {
  entry: AuditEntry
  users: readonly User[] | undefined
  keys: readonly ApiKey[] | undefined
}) {
  const { users, keys } = props
  const { user_id, key_id } = props.entry
  if (user_id !== null) {
    const user = users?.find(({ id }) => id === user_id)
    const name = user?.name || user?.email || TEXT.byUser
    return <Doer name={name} more={user?.email ?? user_id} only={{ user_id }} />
  }
  if (key_id === null) return TEXT.bySystem
  if (key_id === LOCAL_KEY) return TEXT.byCommand
  const key = keys?.find(({ id }) => id === key_id)
  if (key !== undefined)
    return <Doer name={key.description || TEXT.unnamed} more={TEXT.keyOf(key.role)} only={{ key_id }} />
  return <Doer name={keys ? TEXT.byDeletedKey : TEXT.byKey} more={key_id} only={{ key_id }} />
}

/** The key of commands that run on the service's machine. */
const LOCAL_KEY = 'local'

/** `only`: the filter that shows what they did; its value is the id. */
function Doer({ name, more, only }: { name: string; more: string; only: AuditSearch }) {
  return (
    <div title={Object.values(only)[0]}>
      <Link
        to="/settings/audit"
        search={(old) => withSearch<AuditSearch>(old, { ...only, at: undefined })}
        className="settings-doer breakable"
      >
        {name}
      </Link>
      <div className="dimmed settings-small breakable">{more}</div>
    </div>
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
