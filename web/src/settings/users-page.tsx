import { Badge, Button, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { USER_ROLES, type UserRole } from '../../../src/http/rights.ts'
import { Confirm } from '../confirm.tsx'
import { Icon } from '../icons.tsx'
import { useMay } from '../session.ts'
import { type Column, DataTable } from '../shared/data-table.tsx'
import { FormWindow } from '../shared/form-window.tsx'
import { notify } from '../shared/notices.tsx'
import { Page, PageHeader, Panel } from '../shared/page.tsx'
import { EmptyState } from '../shared/states.tsx'
import {
  inviteAgain,
  inviteUser,
  removeUser,
  setRole,
  USERS_KEY,
  type User,
  usersQuery,
} from './settings-api.ts'
import { TEXT as SHARED, USER_TEXT as TEXT } from './text.ts'
import './settings.css'

const route = getRouteApi('/settings/users')
const roleOf = (value: string): UserRole | undefined => USER_ROLES.find((role) => role === value)

export function UsersPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'account', access: 'write' })
  const list = useQuery(usersQuery)
  const setAdding = (adding: boolean) =>
    void navigate({ to: '/settings/users', replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setAdding(true)}>
      {TEXT.add}
    </Button>
  )
  const columns: Column<User>[] = [
    {
      header: TEXT.user,
      cell: ({ name, email }) => (
        <div>
          <strong className="breakable">{name || email}</strong>
          <div className="dimmed settings-small breakable">{email}</div>
        </div>
      ),
    },
    {
      header: TEXT.role,
      cell: (user) => (mayChange && !user.is_master ? <RoleChoice user={user} /> : user.role),
    },
    { header: TEXT.state, cell: (user) => <UserState user={user} /> },
    {
      header: TEXT.secondFactor,
      wideOnly: true,
      cell: ({ tfa_active }) => (tfa_active ? TEXT.yes : TEXT.no),
    },
    ...(mayChange
      ? [{ header: TEXT.remove, align: 'end' as const, cell: (user: User) => <UserButtons user={user} /> }]
      : []),
  ]
  return (
    <Page wide>
      <PageHeader
        title={TEXT.title}
        lead={TEXT.lead}
        back={{ to: '/settings', label: SHARED.title }}
        actions={button}
      />
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columns}
          rows={list.data}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
          empty={
            <EmptyState icon="users" title={TEXT.none} action={button}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {mayChange && add === 'yes' && <InviteUser onClose={() => setAdding(false)} />}
    </Page>
  )
}

function UserState({ user: { activated, is_disabled, is_master } }: { user: User }) {
  const [label, color] = is_disabled
    ? [TEXT.states.disabled, 'red']
    : !activated
      ? [TEXT.states.invited, 'orange']
      : is_master
        ? [TEXT.states.master, 'teal']
        : [TEXT.states.active, 'teal']
  return (
    <Badge variant="light" tt="none" fw={550} color={color}>
      {label}
    </Badge>
  )
}

/** Invalidates the list after a change of a user. */
function useChanged() {
  const queries = useQueryClient()
  return () => void queries.invalidateQueries({ queryKey: [USERS_KEY] })
}

function RoleChoice({ user: { id, email, role } }: { user: User }) {
  const changed = useChanged()
  const change = useMutation({
    mutationFn: (next: UserRole) => setRole(id, next),
    onSuccess(_, next) {
      changed()
      notify({ text: TEXT.roleSet(email, next), ...(next !== role && { undo: () => change.mutate(role) }) })
    },
  })
  return (
    <div>
      <NativeSelect
        size="xs"
        aria-label={TEXT.roleOf(email)}
        value={change.isPending ? change.variables : role}
        disabled={change.isPending}
        data={USER_ROLES}
        onChange={(event) => {
          const next = roleOf(event.currentTarget.value)
          if (next) change.mutate(next)
        }}
      />
      {change.error && <Refusal error={change.error} />}
    </div>
  )
}

const Refusal = ({ error }: { error: Error }) => (
  <Text size="xs" c="red" role="alert" className="breakable">
    {error.message}
  </Text>
)

function UserButtons({ user: { id, email, activated, is_master } }: { user: User }) {
  const [asking, setAsking] = useState(false)
  const changed = useChanged()
  const invitation = useMutation({
    mutationFn: () => inviteAgain(id),
    onSuccess: () => notify({ text: TEXT.invited(email) }),
  })
  const removal = useMutation({
    mutationFn: () => removeUser(id),
    onSuccess() {
      setAsking(false)
      notify({ text: TEXT.removed(email) })
      changed()
    },
  })
  if (is_master) return null
  return (
    <>
      <Group gap="xs" justify="flex-end">
        {!activated && (
          <Button
            variant="default"
            size="xs"
            aria-label={TEXT.againOf(email)}
            loading={invitation.isPending}
            onClick={() => invitation.mutate()}
          >
            {TEXT.again}
          </Button>
        )}
        <Button variant="default" size="xs" aria-label={TEXT.removeOf(email)} onClick={() => setAsking(true)}>
          {TEXT.remove}
        </Button>
      </Group>
      {invitation.error && <Refusal error={invitation.error} />}
      <Confirm
        opened={asking}
        title={TEXT.removeTitle}
        consequence={TEXT.removeWhy(email)}
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

function InviteUser({ onClose }: { onClose: () => void }) {
  const [user, setUser] = useState<{ email: string; name: string; role: UserRole }>({
    email: '',
    name: '',
    role: 'basic',
  })
  const changed = useChanged()
  const invitation = useMutation({
    mutationFn: () => inviteUser(user),
    onSuccess() {
      changed()
      notify({ text: TEXT.invited(user.email) })
      onClose()
    },
  })
  const set = (part: Partial<typeof user>) => {
    invitation.reset()
    setUser({ ...user, ...part })
  }
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.invite}
      busy={invitation.isPending}
      isComplete={user.email.trim() !== '' && user.name.trim() !== ''}
      error={invitation.error}
      onSubmit={() => invitation.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.email}
        inputMode="email"
        autoCapitalize="none"
        spellCheck={false}
        autoComplete="off"
        value={user.email}
        onChange={(event) => set({ email: event.currentTarget.value })}
        data-autofocus
      />
      <TextInput
        label={TEXT.name}
        autoComplete="off"
        value={user.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
      <NativeSelect
        label={TEXT.role}
        description={TEXT.roles[user.role]}
        value={user.role}
        data={USER_ROLES}
        onChange={(event) => {
          const role = roleOf(event.currentTarget.value)
          if (role) set({ role })
        }}
      />
    </FormWindow>
  )
}
