import { Button, Modal } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Icon } from '../../icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { type Column, DataTable } from '../../shared/data-table.tsx'
import { FilterBar } from '../../shared/filter-bar.tsx'
import { Page, PageHeader, Panel } from '../../shared/page.tsx'
import { skipLinks } from '../../shared/paging.ts'
import { withSearch } from '../../shared/search.ts'
import { EmptyState } from '../../shared/states.tsx'
import { Time } from '../../shared/time.tsx'
import { ListForm } from './list-form.tsx'
import { listsPath, type MailingList, PAGE_SIZE, readLists } from './lists-api.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/lists')
export const LISTS_KEY = 'mailing-lists'

export function ListsPage() {
  const { q = '', skip: skipText = '0', add } = route.useSearch()
  const skip = Number(skipText)
  const navigate = useNavigate({ from: '/sending/lists' })
  const queries = useQueryClient()
  const mayWrite = useMay({ area: 'lists', access: 'write' })
  const path = listsPath(q, skip)
  const list = useQuery({
    queryKey: [LISTS_KEY, path],
    queryFn: async ({ signal }) => valueOrThrow(await readLists(path, signal)),
    placeholderData: keepPreviousData,
  })
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const addButton = mayWrite && (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setAdding(true)}>
      {TEXT.newList}
    </Button>
  )
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={addButton} />
      <FilterBar
        fields={[{ name: 'q', kind: 'search', label: TEXT.search }]}
        values={{ q }}
        onChange={(_, value) =>
          void navigate({ replace: true, search: value === undefined ? {} : { q: value } })
        }
        onClear={() => void navigate({ replace: true, search: {} })}
      />
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={COLUMNS}
          rows={list.data?.items}
          rowKey={({ address }) => address}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData}
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
        />
      </Panel>
      <Modal
        opened={add === 'yes' && mayWrite}
        onClose={() => setAdding(false)}
        title={<strong>{TEXT.newList}</strong>}
        centered
      >
        <ListForm
          onClose={() => setAdding(false)}
          onSaved={async ({ address }) => {
            await queries.invalidateQueries({ queryKey: [LISTS_KEY] })
            await navigate({ to: '/sending/lists/$address', params: { address } })
          }}
        />
      </Modal>
    </Page>
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
        {name && <span className="dimmed"> {name}</span>}
      </>
    ),
  },
  { header: TEXT.access, cell: ({ access_level }) => TEXT.accessLevels[access_level] },
  { header: TEXT.members, align: 'end', cell: ({ members_count }) => members_count.toLocaleString('en') },
  { header: TEXT.created, align: 'end', cell: ({ created_at }) => <Time at={created_at} as="age" /> },
]
