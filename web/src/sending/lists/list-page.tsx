/** One mailing list and its members. Calls /v3/lists/:address and /v3/lists/:address/members. */
import { ActionIcon, Alert, Badge, Button, Group, Modal, Skeleton } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { countOf } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { RefusedRequest, valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Copyable } from '../../shared/copyable.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { RemoveIcon } from '../../shared/forms/remove-icon.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { placeOf, placePath, skipLinks } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { PersonLink } from '../../shared/person-link.tsx'
import { ImportForm } from '../import/import-form.tsx'
import type { ImportRecord } from '../import/records.ts'
import { ConsentForm } from './consent-form.tsx'
import { ListForm } from './list-form.tsx'
import {
  addMember,
  deleteList,
  deleteMember,
  LISTS_KEY,
  type MailingList,
  type Member,
  membersPath,
  PAGE_SIZE,
  readList,
  readMembers,
  uploadMembers,
} from './lists-api.ts'
import type { ListSearch } from './lists-search.ts'
import { MemberForm, readObject } from './member-form.tsx'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/lists/$address')
const IMPORT_STEP = 100 // more would be stored in the background, out of sight

export default function ListPage() {
  const { address } = route.useParams()
  const list = useQuery({
    queryKey: [LISTS_KEY, 'one', address],
    queryFn: async ({ signal }) => valueOrThrow(await readList(address, signal)).list,
  })
  const back = { to: '/sending/lists', label: TEXT.title }
  if (list.data !== undefined)
    return (
      <Page wide key={address}>
        <Found list={list.data} />
      </Page>
    )
  const isGone = list.error instanceof RefusedRequest && list.error.status === 404
  return (
    <Page wide>
      <PageHeader title={address} back={back} />
      {isGone ? (
        <Alert color="gray" title={TEXT.gone(address)} className="breakable" />
      ) : list.error !== null ? (
        <Failure title={address} error={list.error} retry={list.refetch} />
      ) : (
        <Skeleton height={320} role="status" aria-label={TEXT.members} />
      )}
    </Page>
  )
}

function Found({ list }: { list: MailingList }) {
  const search = route.useSearch()
  const { q = '', subscribed = '', at, open: form } = search
  const navigate = useNavigate({ from: '/sending/lists/$address' })
  const queries = useQueryClient()
  const mayWrite = useMay({ area: 'lists', access: 'write' })
  const [edited, setEdited] = useState<Member>()
  const first = membersPath(list.address, { q, subscribed })
  const path = placePath(first, at)
  const members = useQuery({
    queryKey: [LISTS_KEY, 'members', path],
    queryFn: async ({ signal }) => valueOrThrow(await readMembers(path, signal)),
    placeholderData: keepPreviousData,
  })
  const refresh = () => queries.invalidateQueries({ queryKey: [LISTS_KEY] })
  const change = (changes: { [Name in keyof ListSearch]?: ListSearch[Name] | undefined }) =>
    void navigate({ replace: 'open' in changes, search: (old) => withSearch(old, changes) })
  const close = () => change({ open: undefined })
  const removal = useRemoval(list.address, refresh)
  const skip = Number(new URLSearchParams(path.split('?')[1]).get('skip') ?? '0')
  const actions = mayWrite && (
    <>
      <Button variant="default" onClick={() => change({ open: 'import' })}>
        {TEXT.import}
      </Button>
      <AddButton label={TEXT.addMember} onClick={() => change({ open: 'add' })} />
    </>
  )
  return (
    <>
      <PageHeader
        title={list.name || list.address}
        back={{ to: '/sending/lists', label: TEXT.title }}
        lead={list.description || undefined}
        beside={<span className="dimmed">{countOf(list.members_count, 'member')}</span>}
        actions={
          <>
            {mayWrite && <DeleteList address={list.address} />}
            {mayWrite && (
              <Button variant="default" onClick={() => change({ open: 'consent' })}>
                {TEXT.consent}
              </Button>
            )}
            {mayWrite && (
              <Button variant="default" onClick={() => change({ open: 'edit' })}>
                {TEXT.edit}
              </Button>
            )}
            {actions}
          </>
        }
      />
      <Group gap="xs">
        <span className="dimmed">{TEXT.postAddress}</span>
        <Copyable text={list.address} what="the address" />
        <span className="tag">
          {TEXT.access}: {TEXT.accessLevels[list.access_level]}
        </span>
      </Group>
      <FilterBar
        fields={[
          { name: 'q', kind: 'search', label: TEXT.memberSearch },
          {
            name: 'subscribed',
            kind: 'choice',
            label: TEXT.state,
            options: Object.entries(TEXT.states),
          },
        ]}
        values={{ q, subscribed }}
        onChange={(name, value) => change({ [name]: value, at: undefined })}
        onClear={() => change({ q: undefined, subscribed: undefined, at: undefined })}
      />
      <Panel flush>
        <DataTable
          label={TEXT.members}
          columns={columnsOf(mayWrite, setEdited, removal)}
          rows={members.data?.items}
          rowKey={({ address }) => address}
          error={members.error}
          retry={members.refetch}
          isStale={members.isPlaceholderData}
          links={members.data && skipLinks(first, skip, PAGE_SIZE, members.data.total_count)}
          onPage={(link) => change({ at: placeOf(link) })}
          empty={
            q !== '' || subscribed !== '' ? (
              <EmptyState icon="search" title={TEXT.noMemberFound} />
            ) : (
              <EmptyState icon="users" title={TEXT.noMembers} action={actions && <Group>{actions}</Group>}>
                {TEXT.noMembersWhy}
              </EmptyState>
            )
          }
        />
      </Panel>
      <Forms
        {...{ list, edited, refresh, close }}
        form={mayWrite ? form : undefined}
        onEdited={() => setEdited(undefined)}
      />
    </>
  )
}

interface FormsProps {
  list: MailingList
  form: ListSearch['open']
  /** The member that is being changed. */
  edited: Member | undefined
  onEdited: () => void
  refresh: () => Promise<void>
  close: () => void
}

/** The windows of the page. */
function Forms({ list, form, edited, onEdited, refresh, close }: FormsProps) {
  const navigate = useNavigate({ from: '/sending/lists/$address' })
  return (
    <>
      {form === 'add' && (
        <MemberForm
          list={list.address}
          onClose={close}
          onSaved={({ address }) => {
            notify({ text: TEXT.memberAdded(address) })
            close()
          }}
        />
      )}
      {edited && (
        <MemberForm
          list={list.address}
          member={edited}
          onClose={onEdited}
          onSaved={({ address }) => {
            notify({ text: TEXT.memberSaved(address) })
            onEdited()
          }}
        />
      )}
      <Modal opened={form === 'import'} onClose={close} title={<strong>{TEXT.importTitle}</strong>} centered>
        <ImportForm
          what="member"
          columns={['address', 'name', 'vars', 'subscribed']}
          example={TEXT.importExample}
          hint={TEXT.importHint}
          size={IMPORT_STEP}
          send={(records) => uploadMembers(list.address, records.map(memberOf))}
          check={faultOf}
          onStored={() => void refresh()}
          onClose={close}
        />
      </Modal>
      {form === 'consent' && (
        <ConsentForm
          list={list.address}
          onClose={close}
          onSaved={() => {
            notify({ text: TEXT.consentSaved })
            close()
          }}
        />
      )}
      {form === 'edit' && (
        <ListForm
          list={list}
          onClose={close}
          onSaved={async ({ address }) => {
            notify({ text: TEXT.saved })
            await navigate({ params: { address }, search: {}, replace: true })
          }}
        />
      )}
    </>
  )
}

/** A record of CSV as JSON has it. */
function memberOf({ vars, subscribed, ...others }: ImportRecord): ImportRecord {
  return {
    ...others,
    ...(vars !== undefined && { vars: typeof vars === 'string' ? readObject(vars) : vars }),
    ...(subscribed !== undefined && {
      subscribed: typeof subscribed === 'string' ? /^(?:yes|true|1)$/i.test(subscribed) : subscribed,
    }),
  }
}

/** The service passes over bad entries and tells them by events only. */
function faultOf({ address, vars }: ImportRecord): string | undefined {
  if (typeof address !== 'string' || !/^[^\s@]+@[^\s@]+$/.test(address.replace(/^.*<(.*)>$/, '$1').trim()))
    return TEXT.noAddress
  return typeof vars === 'string' && readObject(vars) === undefined ? TEXT.badVars : undefined
}

function columnsOf(
  mayWrite: boolean,
  onEdit: (member: Member) => void,
  removal: ReturnType<typeof useRemoval>,
): Column<Member>[] {
  return [
    {
      header: TEXT.address,
      cell: ({ address }) => (
        <span className="recipient-cell">
          <strong className="breakable">{address}</strong>
          <PersonLink address={address} />
        </span>
      ),
    },
    { header: TEXT.name, cell: ({ name }) => <span className="breakable">{name || '–'}</span> },
    {
      header: TEXT.state,
      cell: ({ subscribed, pending }) => (
        <Badge variant="light" color={subscribed ? 'teal' : pending ? 'yellow' : 'gray'} tt="none">
          {TEXT.states[subscribed ? 'yes' : pending ? 'pending' : 'no']}
        </Badge>
      ),
    },
    ...(mayWrite
      ? [
          {
            ...BUTTONS,
            cell: (member: Member) => (
              <span className="row-buttons">
                <Button
                  size="compact-sm"
                  variant="subtle"
                  aria-label={TEXT.editOf(member.address)}
                  onClick={() => onEdit(member)}
                >
                  {TEXT.edit}
                </Button>
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label={TEXT.removeOf(member.address)}
                  title={TEXT.removeOf(member.address)}
                  onClick={() => removal.mutate(member)}
                >
                  <Icon name="trash" size={16} />
                </ActionIcon>
              </span>
            ),
          },
        ]
      : []),
  ]
}

/** Removes a member; the notice puts it back as it was. */
function useRemoval(list: string, refresh: () => Promise<void>) {
  const restore = async (member: Member) => {
    const subscribed = member.subscribed || member.pending === true
    const answer = await addMember(list, { ...member, subscribed }, member.pending ? 'yes' : 'no')
    notify(
      answer.ok ? { text: TEXT.restored(member.address) } : { text: answer.failure.message, tone: 'bad' },
    )
    await refresh()
  }
  return useSending({
    mutationFn: async ({ address }: Member) => valueOrThrow(await deleteMember(list, address)),
    async onSuccess(_, member) {
      notify({ text: TEXT.removed(member.address), undo: () => void restore(member) })
      await refresh()
    },
    onError: ({ message }) => notify({ text: message, tone: 'bad' }),
  })
}

function DeleteList({ address }: { address: string }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const title = TEXT.deleteList
  return (
    <RemoveIcon
      label={title}
      ask={{ title, consequence: TEXT.deleteWhy, action: title, mustType: address }}
      run={async () => valueOrThrow(await deleteList(address))}
      onDone={async () => {
        await navigate({ to: '/sending/lists' })
        await queries.invalidateQueries({ queryKey: [LISTS_KEY] })
        notify({ text: TEXT.deleted(address) })
      }}
    />
  )
}
