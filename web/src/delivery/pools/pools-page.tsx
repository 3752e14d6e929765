/** IP pools. Calls /v3/ip_pools. */
import { Checkbox, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import type { Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { freeIpsQuery, IPS_KEY } from '../ips/ips-api.ts'
import { TEXT as SECTION } from '../text.ts'
import { createPool, type Pool, poolsQuery } from './pools-api.ts'
import { TEXT } from './text.ts'
import '../delivery.css'

const route = getRouteApi('/delivery/pools')

export default function PoolsPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/pools' })
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const list = useQuery(poolsQuery)
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => setAdding(true)} />
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/delivery', label: SECTION.title }}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ pool_id }) => pool_id}
      columns={COLUMNS}
      empty={
        <EmptyState icon="list" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      {mayChange && add === 'yes' && <CreatePool onClose={() => setAdding(false)} />}
    </ListPage>
  )
}

const COLUMNS: readonly Column<Pool>[] = [
  {
    header: TEXT.name,
    cell: ({ pool_id, name, description, is_inherited }) => (
      <div>
        <Link to="/delivery/pools/$id" params={{ id: pool_id }} className="row-link breakable">
          {name}
        </Link>
        {is_inherited && <div className="dimmed queue-small">{TEXT.inherited}</div>}
        {description && <div className="dimmed queue-small breakable">{description}</div>}
      </div>
    ),
  },
  { header: TEXT.ips, cell: ({ ips }) => <span className="breakable">{ips.join(', ') || '–'}</span> },
  { header: TEXT.domains, cell: ({ is_linked }) => (is_linked ? TEXT.linked : TEXT.notLinked) },
]

function CreatePool({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const free = useQuery(freeIpsQuery)
  const form = useForm({
    initial: { name: '', description: '', ips: [] as string[] },
    send: (pool) => createPool({ ...pool, name: pool.name.trim() }),
    changes: IPS_KEY,
    onDone(id, { name }) {
      notify({ text: TEXT.created(name) })
      return navigate({ to: '/delivery/pools/$id', params: { id } })
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
        {...form.field('name')}
        data-autofocus
      />
      <TextInput label={TEXT.description} autoComplete="off" {...form.field('description')} />
      {free.data?.length === 0 ? (
        <Text size="sm" c="dimmed">
          {TEXT.noFreeIps}
        </Text>
      ) : (
        <Checkbox.Group
          label={TEXT.ips}
          description={TEXT.ipsWhy}
          value={form.values.ips}
          onChange={(ips) => form.set({ ips })}
        >
          <Stack gap={8} mt={8}>
            {free.data?.map((ip) => (
              <Checkbox key={ip} value={ip} label={ip} />
            ))}
          </Stack>
        </Checkbox.Group>
      )}
    </FormWindow>
  )
}
