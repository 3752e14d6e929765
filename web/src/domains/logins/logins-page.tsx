/** SMTP logins of a domain. Calls /v3/domains/:domain/credentials. */
import { Button, Group, Modal, PasswordInput, Text, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../../session.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { placeOf, placePath, skipLinks } from '../../shared/page/paging.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { DomainFrame } from '../domain-frame.tsx'
import { DOMAINS_KEY } from '../domain-queries.ts'
import type { LoginsSearch } from '../domains-search.ts'
import { LOGINS_TEXT as TEXT } from '../text.ts'
import {
  createLogin,
  deleteLogin,
  LOGINS_PAGE_SIZE,
  type Login,
  loginsPath,
  loginsQuery,
  resetPassword,
} from './logins-api.ts'

const route = getRouteApi('/domains/$name/logins')

/** Shown once. */
interface Secret {
  login: string
  password: string
}

/** The SMTP logins of a domain. */
export default function LoginsPage() {
  const { name } = route.useParams()
  const { at, add } = route.useSearch()
  const mayChange = useMay({ area: 'keys', access: 'write' })
  const [secret, setSecret] = useState<Secret>()
  const navigate = useNavigate()
  const show = (search: LoginsSearch) =>
    void navigate({ to: '/domains/$name/logins', params: { name }, search, replace: true })
  const here: LoginsSearch = at === undefined ? {} : { at }
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => show({ ...here, add: 'yes' })} />
  return (
    <DomainFrame name={name} title={TEXT.title} lead={() => TEXT.lead(name)} actions={button}>
      {({ smtp_login }) => (
        <>
          <Logins
            name={name}
            systemLogin={smtp_login}
            mayChange={mayChange}
            onSecret={setSecret}
            onPage={(link) => {
              const place = placeOf(link)
              show(place === undefined ? {} : { at: place })
            }}
          />
          {mayChange && add === 'yes' && (
            <AddLogin name={name} onSecret={setSecret} onClose={() => show(here)} />
          )}
          <SecretWindow secret={secret} onClose={() => setSecret(undefined)} />
        </>
      )}
    </DomainFrame>
  )
}

function Logins(props: {
  name: string
  /** Cannot be deleted. */
  systemLogin: string
  mayChange: boolean
  onSecret: (secret: Secret) => void
  onPage: (link: string) => void
}) {
  const { name, systemLogin, mayChange, onSecret, onPage } = props
  const { at } = route.useSearch()
  const path = placePath(loginsPath(name), at)
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...loginsQuery(path),
    placeholderData: keepPreviousData,
  })
  const columns: Column<Login>[] = [
    {
      header: TEXT.login,
      cell: ({ login }) => (
        <div>
          <Copyable text={login} what={login} />
          {login === systemLogin && <div className="dimmed option-why">{TEXT.system}</div>}
        </div>
      ),
    },
    { header: TEXT.created, cell: ({ created_at }) => <Time at={created_at} as="age" /> },
  ]
  if (mayChange)
    columns.push({
      ...BUTTONS,
      cell: ({ login }) => (
        <Group gap="xs" justify="flex-end">
          <ActionButton
            label={TEXT.reset}
            name={TEXT.resetOf(login)}
            run={() => resetPassword(name, login)}
            done={TEXT.resetDone}
            changes={DOMAINS_KEY}
            onDone={({ credentials }) => {
              const password = credentials?.[login]
              if (password !== undefined) onSecret({ login, password })
            }}
            ask={{ title: TEXT.resetTitle, consequence: TEXT.resetWhy(login) }}
          />
          {login !== systemLogin && (
            <ActionButton
              label={TEXT.remove}
              name={TEXT.removeOf(login)}
              run={() => deleteLogin(name, login)}
              done={TEXT.removed(login)}
              changes={DOMAINS_KEY}
              ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy, mustType: login }}
            />
          )}
        </Group>
      ),
    })
  const skip = Number(new URLSearchParams(path.split('?')[1]).get('skip') ?? 0)
  return (
    <Panel flush>
      <DataTable
        label={TEXT.title}
        rows={data?.items}
        rowKey={({ login }) => login}
        columns={columns}
        error={error}
        retry={refetch}
        isStale={isPlaceholderData}
        links={data && skipLinks(path, skip, LOGINS_PAGE_SIZE, data.total_count)}
        onPage={onPage}
        expectedRows={2}
        empty={
          <EmptyState icon="key" title={TEXT.none}>
            {TEXT.noneWhy}
          </EmptyState>
        }
      />
    </Panel>
  )
}

function AddLogin(props: { name: string; onSecret: (secret: Secret) => void; onClose: () => void }) {
  const { name, onSecret, onClose } = props
  const form = useForm({
    initial: { login: '', password: '' },
    send: ({ login, password }) => createLogin(name, login.trim(), password),
    changes: DOMAINS_KEY,
    doneFirst: true,
    onDone({ credentials }, { login }) {
      const [generated] = Object.entries(credentials ?? {})
      if (generated) onSecret({ login: generated[0], password: generated[1] })
      else notify({ text: TEXT.made(login.trim()) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.create}
      isComplete={form.values.login.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.login}
        description={TEXT.loginHelp(name)}
        {...EXACT}
        {...form.field('login')}
        data-autofocus
      />
      <PasswordInput
        label={TEXT.password}
        description={TEXT.passwordHelp}
        autoComplete="new-password"
        {...form.field('password')}
      />
    </FormWindow>
  )
}

function SecretWindow({ secret, onClose }: { secret: Secret | undefined; onClose: () => void }) {
  return (
    <Modal
      opened={secret !== undefined}
      onClose={onClose}
      title={<strong>{TEXT.secretTitle}</strong>}
      centered
      closeOnClickOutside={false}
    >
      <div className="form-window">
        <Text size="sm">{TEXT.secretWhy}</Text>
        <div className="login-secret">
          <Copyable text={secret?.login ?? ''} what={TEXT.copyLogin} />
          <Copyable text={secret?.password ?? ''} what={TEXT.copyPassword} />
        </div>
        <Button onClick={onClose}>{TEXT.done}</Button>
      </div>
    </Modal>
  )
}
