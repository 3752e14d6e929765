import { Badge, Button, Modal, NativeSelect, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../confirm.tsx'
import { Icon } from '../icons.tsx'
import { domainsQuery } from '../queries.ts'
import { useMay } from '../session.ts'
import { Copyable } from '../shared/copyable.tsx'
import { type Column, DataTable } from '../shared/data-table.tsx'
import { FormWindow } from '../shared/form-window.tsx'
import { notify } from '../shared/notices.tsx'
import { Page, PageHeader, Panel } from '../shared/page.tsx'
import { EmptyState } from '../shared/states.tsx'
import { Time } from '../shared/time.tsx'
import {
  type ApiKey,
  createKey,
  deleteKey,
  KEY_ROLES,
  KEYS_KEY,
  keysQuery,
  type NewKey,
  utc,
} from './settings-api.ts'
import { TEXT as SHARED, KEY_TEXT as TEXT } from './text.ts'
import './settings.css'

const route = getRouteApi('/settings/keys')
const back = { to: '/settings', label: SHARED.title }

export function KeysPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'keys', access: 'write' })
  const list = useQuery(keysQuery)
  const [secret, setSecret] = useState<string>()
  const setAdding = (adding: boolean) =>
    void navigate({ to: '/settings/keys', replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setAdding(true)}>
      {TEXT.add}
    </Button>
  )
  const columns: Column<ApiKey>[] = [
    {
      header: TEXT.key,
      cell: ({ id, description }) => (
        <div>
          <strong className="breakable">{description || TEXT.unnamed}</strong>
          <div className="dimmed settings-small">{id}</div>
        </div>
      ),
    },
    {
      header: TEXT.role,
      cell: ({ role, domain_name }) => (
        <span className="breakable">
          {role}
          {domain_name && `, ${domain_name}`}
        </span>
      ),
    },
    { header: TEXT.created, cell: ({ created_at }) => <Time at={utc(created_at)} as="age" /> },
    {
      header: TEXT.ends,
      cell: ({ expires_at, is_disabled }) =>
        is_disabled ? (
          <Badge variant="light" tt="none" color="gray">
            {TEXT.expired}
          </Badge>
        ) : expires_at === undefined ? (
          TEXT.never
        ) : (
          <Time at={utc(expires_at)} as="date" />
        ),
    },
    ...(mayChange
      ? [{ header: TEXT.remove, align: 'end' as const, cell: (key: ApiKey) => <DeleteKey apiKey={key} /> }]
      : []),
  ]
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} back={back} actions={button} />
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columns}
          rows={list.data}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
          empty={
            <EmptyState icon="key" title={TEXT.none} action={button}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {mayChange && add === 'yes' && (
        <CreateKey
          onClose={() => setAdding(false)}
          onCreated={(created) => {
            setSecret(created)
            setAdding(false)
          }}
        />
      )}
      <Modal
        opened={secret !== undefined}
        onClose={() => setSecret(undefined)}
        title={<strong>{TEXT.createdTitle}</strong>}
        centered
        closeOnClickOutside={false}
      >
        <div className="form-window">
          <Text size="sm">{TEXT.createdWhy}</Text>
          <div className="settings-secret">
            <Copyable text={secret ?? ''} what={TEXT.secret} />
          </div>
          <Button onClick={() => setSecret(undefined)}>{TEXT.done}</Button>
        </div>
      </Modal>
    </Page>
  )
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: (secret: string) => void }) {
  const [key, setKey] = useState<NewKey>({ role: 'developer', description: '', domain: '', expiration: '' })
  const domains = useQuery(domainsQuery)
  const queries = useQueryClient()
  const creation = useMutation({
    mutationFn: () => createKey(key),
    onSuccess({ secret }) {
      void queries.invalidateQueries({ queryKey: [KEYS_KEY] })
      onCreated(secret)
    },
  })
  const set = (part: Partial<NewKey>) => {
    creation.reset()
    setKey({ ...key, ...part })
  }
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      busy={creation.isPending}
      isComplete={key.role !== 'sending' || key.domain !== ''}
      error={creation.error}
      onSubmit={() => creation.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.description}
        placeholder={TEXT.descriptionPlaceholder}
        autoComplete="off"
        maxLength={255}
        value={key.description}
        onChange={(event) => set({ description: event.currentTarget.value })}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.role}
        description={TEXT.roles[key.role]}
        value={key.role}
        data={KEY_ROLES}
        onChange={(event) => {
          const role = KEY_ROLES.find((each) => each === event.currentTarget.value)
          if (role) set({ role })
        }}
      />
      {key.role === 'sending' && (
        <NativeSelect
          label={TEXT.domain}
          value={key.domain}
          data={['', ...(domains.data ?? []).map(({ name }) => name)]}
          onChange={(event) => set({ domain: event.currentTarget.value })}
        />
      )}
      <NativeSelect
        label={TEXT.ends}
        value={key.expiration}
        data={TEXT.lifetimes.map(([value, label]) => ({ value, label }))}
        onChange={(event) => set({ expiration: event.currentTarget.value })}
      />
    </FormWindow>
  )
}

function DeleteKey({ apiKey: { id, description } }: { apiKey: ApiKey }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const removal = useMutation({
    mutationFn: () => deleteKey(id),
    onSuccess() {
      setAsking(false)
      notify({ text: TEXT.removed })
      void queries.invalidateQueries({ queryKey: [KEYS_KEY] })
    },
  })
  const name = description || id
  return (
    <>
      <Button variant="default" size="xs" aria-label={TEXT.removeOf(name)} onClick={() => setAsking(true)}>
        {TEXT.remove}
      </Button>
      <Confirm
        opened={asking}
        title={TEXT.removeTitle}
        consequence={TEXT.removeWhy(name)}
        action={TEXT.remove}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => {
          setAsking(false)
          removal.reset()
        }}
      />
    </>
  )
}
