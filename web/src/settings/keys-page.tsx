/** API keys. Calls /v1/keys. */
import { Anchor, Badge, Button, Modal, NativeSelect, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../session.ts'
import { Copyable } from '../shared/copyable.tsx'
import { ActionButton } from '../shared/forms/action-button.tsx'
import { AddButton } from '../shared/forms/add-button.tsx'
import { DomainChoice } from '../shared/forms/domain-choice.tsx'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { useForm } from '../shared/forms/use-form.ts'
import { BUTTONS, type Column } from '../shared/page/data-table.tsx'
import { ListPage } from '../shared/page/list-page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
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

export default function KeysPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'keys', access: 'write' })
  const list = useQuery(keysQuery)
  const [secret, setSecret] = useState<string>()
  const setAdding = (adding: boolean) =>
    void navigate({ to: '/settings/keys', replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => setAdding(true)} />
  const columns: Column<ApiKey>[] = [
    {
      header: TEXT.key,
      cell: ({ id, description }) => (
        <div>
          <Link to="/settings/keys/$id" params={{ id }} className="row-link breakable" title={TEXT.calls}>
            <strong className="breakable">{description || TEXT.unnamed}</strong>
          </Link>
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
    ...(mayChange ? [{ ...BUTTONS, cell: (key: ApiKey) => <DeleteKey apiKey={key} /> }] : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={
        <>
          {TEXT.lead}{' '}
          <Anchor renderRoot={(props) => <Link {...props} to="/docs" />} underline="always" inherit>
            {TEXT.reference}
          </Anchor>
        </>
      }
      back={back}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ id }) => id}
      columns={columns}
      empty={
        <EmptyState icon="key" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
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
    </ListPage>
  )
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: (secret: string) => void }) {
  const form = useForm<NewKey, Awaited<ReturnType<typeof createKey>>>({
    initial: { role: 'developer', description: '', domain: '', expiration: '' },
    send: createKey,
    changes: KEYS_KEY,
    doneFirst: true,
    onDone: ({ secret }) => onCreated(secret),
  })
  const key = form.values
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      isComplete={key.role !== 'sending' || key.domain !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.description}
        placeholder={TEXT.descriptionPlaceholder}
        autoComplete="off"
        maxLength={255}
        {...form.field('description')}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.role}
        description={TEXT.roles[key.role]}
        value={key.role}
        data={KEY_ROLES}
        onChange={(event) => {
          const role = KEY_ROLES.find((each) => each === event.currentTarget.value)
          if (role) form.set({ role })
        }}
      />
      {key.role === 'sending' && (
        <DomainChoice label={TEXT.domain} value={key.domain} onChange={(domain) => form.set({ domain })} />
      )}
      <NativeSelect
        label={TEXT.ends}
        data={TEXT.lifetimes.map(([value, label]) => ({ value, label }))}
        {...form.field('expiration')}
      />
    </FormWindow>
  )
}

/** What is typed before the key is deleted: its name, unless that is an effort. */
const wordOf = (id: string, description: string) =>
  description !== '' && description.length <= TYPED_MAX ? description : id
const TYPED_MAX = 40

function DeleteKey({ apiKey: { id, description } }: { apiKey: ApiKey }) {
  const name = description || id
  return (
    <ActionButton
      label={TEXT.remove}
      name={TEXT.removeOf(name)}
      run={() => deleteKey(id)}
      done={TEXT.removed}
      changes={KEYS_KEY}
      ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy(name), mustType: wordOf(id, description) }}
    />
  )
}
