/** Which account the pages are of: the session's own, or one of its subaccounts. */
import { Button, Modal, TextInput } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { actFor, actingFor } from '../acting.ts'
import { getOwnJson } from '../api.ts'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { useSession } from '../session.ts'
import { Failure } from './page/states.tsx'
import { SHELL_TEXT as TEXT } from './text.ts'

const SHOWN_MAX = 20 // a name is found by typing a part of it

/** Asked as the session's own account: a subaccount has no subaccounts. */
const subaccountsQuery = (filter: string) =>
  queryOptions({
    queryKey: ['subaccounts', 'switch', filter],
    queryFn: async ({ signal }) => {
      const query = new URLSearchParams({ limit: String(SHOWN_MAX), ...(filter && { filter }) })
      return valueOrThrow(await getOwnJson(`/v5/accounts/subaccounts?${query}`, signal))
    },
  })

/** Nothing for accounts without subaccounts. */
export function AccountSwitch() {
  const session = useSession()
  const [opened, setOpened] = useState(false)
  const mayAsk =
    session.rights.subaccounts.includes('R') &&
    (actingFor !== undefined || session.account.parent_id === null)
  const { data } = useQuery({ ...subaccountsQuery(''), enabled: mayAsk })
  if (actingFor === undefined && (data === undefined || data.total === 0)) return null
  return (
    <>
      <Button
        variant={actingFor === undefined ? 'subtle' : 'light'}
        color={actingFor === undefined ? 'gray' : 'orange'}
        size="compact-sm"
        className="account-switch"
        {...(actingFor === undefined && { 'data-own': true })}
        leftSection={<Icon name="users" size={16} />}
        onClick={() => setOpened(true)}
      >
        {actingFor === undefined ? TEXT.ownAccount : TEXT.acting(session.account.name)}
      </Button>
      <Modal
        opened={opened}
        onClose={() => setOpened(false)}
        title={<strong>{TEXT.account}</strong>}
        centered
      >
        <AccountList />
      </Modal>
    </>
  )
}

/** Says over every page that it is of a subaccount. */
export function ActingStrip() {
  const { account } = useSession()
  if (actingFor === undefined) return null
  return (
    <aside className="acting-strip" aria-label={TEXT.account}>
      <span className="breakable">
        <strong>{TEXT.acting(account.name)}.</strong> {TEXT.actingWhy}
      </span>
      <button type="button" onClick={() => actFor(undefined)}>
        {TEXT.stopActing}
      </button>
    </aside>
  )
}

function AccountList() {
  const [filter, setFilter] = useState('')
  const list = useQuery(subaccountsQuery(filter.trim()))
  return (
    <>
      <TextInput
        aria-label={TEXT.findSubaccount}
        placeholder={TEXT.findSubaccount}
        value={filter}
        onChange={(event) => setFilter(event.currentTarget.value)}
        data-autofocus
      />
      <ul className="account-list">
        {actingFor !== undefined && (
          <li>
            <button type="button" onClick={() => actFor(undefined)}>
              {TEXT.backToOwn}
            </button>
          </li>
        )}
        {list.data?.subaccounts.map(({ id, name, status }) => (
          <li key={id}>
            <button type="button" onClick={() => actFor(id)} aria-current={id === actingFor || undefined}>
              <span className="grow breakable">{name}</span>
              {status !== 'open' && <span className="tag">{status}</span>}
            </button>
          </li>
        ))}
      </ul>
      {list.data?.subaccounts.length === 0 && <p className="dimmed">{TEXT.noSubaccount}</p>}
      {list.error && <Failure title={TEXT.findSubaccount} error={list.error} />}
    </>
  )
}
