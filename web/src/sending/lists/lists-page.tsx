/** Mailing lists. Calls /v3/lists. */
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import type { Column } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { skipLinks } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { ListForm } from './list-form.tsx'
import { LISTS_KEY, listsPath, type MailingList, PAGE_SIZE, readLists } from './lists-api.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/lists')

export default function ListsPage() {
  const { q = '', skip: skipText = '0', add } = route.useSearch()
  const skip = Number(skipText)
  const navigate = useNavigate({ from: '/sending/lists' })
  const mayWrite = useMay({ area: 'lists', access: 'write' })
  const path = listsPath(q, skip)
  const list = useQuery({
    queryKey: [LISTS_KEY, path],
    queryFn: async ({ signal }) => valueOrThrow(await readLists(path, signal)),
    placeholderData: keepPreviousData,
  })
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const addButton = mayWrite && <AddButton label={TEXT.newList} onClick={() => setAdding(true)} />
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      actions={addButton}
      above={
        <FilterBar
          fields={[{ name: 'q', kind: 'search', label: TEXT.search }]}
          values={{ q }}
          onChange={(_, value) =>
            void navigate({ replace: true, search: value === undefined ? {} : { q: value } })
          }
          onClear={() => void navigate({ replace: true, search: {} })}
        />
      }
      list={list}
      rows={list.data?.items}
      rowKey={({ address }) => address}
      columns={COLUMNS}
      links={list.data && skipLinks(path, skip, PAGE_SIZE, list.data.total_count)}
      onPage={(link) => {
        const to = new URL(link, window.location.origin).searchParams.get('skip') ?? '0'
        void navigate({ search: (old) => withSearch(old, { skip: to === '0' ? undefined : to }) })
      }}
      empty={
        q !== '' ? (
          <EmptyState icon="search" title={TEXT.noneFound(q)} />
        ) : (
          <EmptyState icon="users" title={TEXT.none} action={addButton}>
            {TEXT.noneWhy}
          </EmptyState>
        )
      }
    >
      {add === 'yes' && mayWrite && (
        <ListForm
          onClose={() => setAdding(false)}
          onSaved={({ address }) => navigate({ to: '/sending/lists/$address', params: { address } })}
        />
      )}
    </ListPage>
  )
}

const COLUMNS: readonly Column<MailingList>[] = [
  {
    header: TEXT.address,
    cell: ({ address, name }) => (
      <>
        <Link to="/sending/lists/$address" params={{ address }} className="row-link breakable">
          {address}
        </Link>
        {name && <bdi className="dimmed breakable"> {name}</bdi>}
      </>
    ),
  },
  { header: TEXT.access, cell: ({ access_level }) => TEXT.accessLevels[access_level] },
  { header: TEXT.members, align: 'end', cell: ({ members_count }) => members_count.toLocaleString('en') },
  { header: TEXT.created, align: 'end', cell: ({ created_at }) => <Time at={created_at} as="age" /> },
]
