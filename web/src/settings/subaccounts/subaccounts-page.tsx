/** Subaccounts. Calls /v5/accounts/subaccounts. */
import { Badge, Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { actFor } from '../../acting.ts'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { placeOf, placePath, skipLinks } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { TEXT as SHARED } from '../text.ts'
import {
  createSubaccount,
  PAGE_SIZE,
  SUBACCOUNTS_KEY,
  type Subaccount,
  subaccountsPath,
  subaccountsQuery,
} from './subaccounts-api.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/settings/subaccounts')

export default function SubaccountsPage() {
  const { q = '', state = '', at, add } = route.useSearch()
  const navigate = useNavigate({ from: '/settings/subaccounts' })
  const mayCreate = useMay({ area: 'subaccounts', access: 'write', only: 'parent' })
  const first = subaccountsPath(q, state)
  const list = useQuery(subaccountsQuery(placePath(first, at)))
  const skip = Number(new URLSearchParams(at).get('skip') ?? 0)
  const isFiltered = q !== '' || state !== ''
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const button = mayCreate && <AddButton label={TEXT.add} onClick={() => setAdding(true)} />
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      actions={button}
      above={
        <FilterBar
          fields={[
            { name: 'q', kind: 'search', label: TEXT.search },
            {
              name: 'state',
              kind: 'choice',
              label: TEXT.state,
              any: TEXT.allStates,
              options: Object.entries(TEXT.states),
            },
          ]}
          values={{ q, state }}
          onChange={(name, value) =>
            void navigate({
              replace: true,
              search: (old) => withSearch(old, { [name]: value, at: undefined }),
            })
          }
          onClear={() => void navigate({ replace: true, search: {} })}
        />
      }
      list={list}
      rows={list.data?.subaccounts}
      rowKey={({ id }) => id}
      columns={COLUMNS}
      links={list.data && skipLinks(first, skip, PAGE_SIZE, list.data.total)}
      onPage={(link) => void navigate({ search: (old) => withSearch(old, { at: placeOf(link) }) })}
      empty={
        isFiltered ? (
          <EmptyState icon="search" title={TEXT.noneFound}>
            {TEXT.noneFoundWhy}
          </EmptyState>
        ) : (
          <EmptyState icon="users" title={TEXT.none} action={button}>
            {TEXT.noneWhy}
          </EmptyState>
        )
      }
    >
      {mayCreate && add === 'yes' && <CreateSubaccount onClose={() => setAdding(false)} />}
    </ListPage>
  )
}

const COLUMNS: readonly Column<Subaccount>[] = [
  {
    header: TEXT.name,
    cell: ({ id, name }) => (
      <div>
        <Link to="/settings/subaccounts/$id" params={{ id }} className="row-link breakable">
          {name}
        </Link>
        <div className="dimmed settings-small breakable">{id}</div>
      </div>
    ),
  },
  { header: TEXT.state, cell: ({ status }) => <StatusBadge status={status} /> },
  { header: TEXT.since, cell: ({ created_at }) => <Time at={created_at} as="date" /> },
  {
    ...BUTTONS,
    cell: ({ id, name, status }) =>
      status !== 'closed' && (
        <Button variant="default" size="xs" aria-label={TEXT.actOf(name)} onClick={() => actFor(id)}>
          {TEXT.act}
        </Button>
      ),
  },
]

const COLORS: Record<Subaccount['status'], string> = { open: 'teal', disabled: 'orange', closed: 'gray' }

export const StatusBadge = ({ status }: Pick<Subaccount, 'status'>) => (
  <Badge variant="light" tt="none" fw={550} color={COLORS[status]}>
    {TEXT.statuses[status]}
  </Badge>
)

function CreateSubaccount({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const form = useForm({
    initial: { name: '' },
    send: ({ name }) => createSubaccount(name.trim()),
    changes: SUBACCOUNTS_KEY,
    onDone({ id, name }) {
      notify({ text: TEXT.created(name) })
      return navigate({ to: '/settings/subaccounts/$id', params: { id } })
    },
  })
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.name}
        placeholder={TEXT.namePlaceholder}
        autoComplete="off"
        maxLength={255}
        {...form.field('name')}
        data-autofocus
      />
    </FormWindow>
  )
}
