/** Users of the account, roles and invitations. Calls /v5/users. */
import { Badge, Group, NativeSelect, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { USER_ROLES, type UserRole } from '../../../src/platform/http/rights/rights.ts'
import { useMay } from '../session.ts'
import { ActionButton, Refusal } from '../shared/forms/action-button.tsx'
import { AddButton } from '../shared/forms/add-button.tsx'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../shared/forms/use-form.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { BUTTONS, type Column } from '../shared/page/data-table.tsx'
import { ListPage } from '../shared/page/list-page.tsx'
import { notify } from '../shared/page/notices.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import {
  inviteAgain,
  inviteUser,
  removeUser,
  resetSecondFactor,
  setRole,
  USERS_KEY,
  type User,
  usersQuery,
} from './settings-api.ts'
import { TEXT as SHARED, USER_TEXT as TEXT } from './text.ts'
import './settings.css'

const route = getRouteApi('/settings/users')
const roleOf = (value: string): UserRole | undefined => USER_ROLES.find((role) => role === value)

export default function UsersPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'account', access: 'write' })
  const list = useQuery(usersQuery)
  const setAdding = (adding: boolean) =>
    void navigate({ to: '/settings/users', replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => setAdding(true)} />
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
    ...(mayChange ? [{ ...BUTTONS, cell: (user: User) => <UserButtons user={user} /> }] : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ id }) => id}
      columns={columns}
      empty={
        <EmptyState icon="users" title={TEXT.none} action={button}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      {mayChange && add === 'yes' && <InviteUser onClose={() => setAdding(false)} />}
    </ListPage>
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
  const change = useSending({
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

function UserButtons({ user: { id, email, activated, is_master, tfa_active } }: { user: User }) {
  return (
    <Group gap="xs" justify="flex-end">
      {tfa_active && (
        <ActionButton
          label={TEXT.reset}
          name={TEXT.resetOf(email)}
          run={() => resetSecondFactor(id)}
          done={TEXT.resetDone(email)}
          changes={USERS_KEY}
          ask={{ title: TEXT.resetTitle, consequence: TEXT.resetWhy(email) }}
        />
      )}
      {!activated && (
        <ActionButton
          label={TEXT.again}
          name={TEXT.againOf(email)}
          run={() => inviteAgain(id)}
          done={TEXT.invited(email)}
          changes={USERS_KEY}
        />
      )}
      {!is_master && (
        <ActionButton
          label={TEXT.remove}
          name={TEXT.removeOf(email)}
          run={() => removeUser(id)}
          done={TEXT.removed(email)}
          changes={USERS_KEY}
          ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy(email), mustType: email }}
        />
      )}
    </Group>
  )
}

function InviteUser({ onClose }: { onClose: () => void }) {
  const form = useForm<{ email: string; name: string; role: UserRole }, User>({
    initial: { email: '', name: '', role: 'basic' },
    send: inviteUser,
    changes: USERS_KEY,
    onDone(_, { email }) {
      notify({ text: TEXT.invited(email) })
      onClose()
    },
  })
  const user = form.values
  return (
    <FormWindow
      title={TEXT.add}
      submit={TEXT.invite}
      isComplete={user.email.trim() !== '' && user.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput label={TEXT.email} inputMode="email" {...EXACT} {...form.field('email')} data-autofocus />
      <TextInput label={TEXT.name} autoComplete="off" {...form.field('name')} />
      <NativeSelect
        label={TEXT.role}
        description={TEXT.roles[user.role]}
        value={user.role}
        data={USER_ROLES}
        onChange={(event) => {
          const role = roleOf(event.currentTarget.value)
          if (role) form.set({ role })
        }}
      />
    </FormWindow>
  )
}
