/**
 * One IP pool: its addresses, the domains and subaccounts that use it. Calls /v3/ip_pools and, for delegation,
 * /v5/accounts/subaccounts/ip_pools.
 */
import { Badge, Button, Skeleton, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { domainOptions, SUBACCOUNT_OPTIONS, same } from '../../shared/forms/choices.ts'
import { Chooser, type Option, type OptionSource } from '../../shared/forms/chooser.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { freeIpsQuery, IPS_KEY } from '../ips/ips-api.ts'
import {
  delegatePool,
  delegationsQuery,
  deletePool,
  editPool,
  type Pool,
  poolQuery,
  poolsQuery,
  revokePool,
  subaccountNamesQuery,
} from './pools-api.ts'
import type { PoolWindow } from './pools-search.ts'
import { TEXT } from './text.ts'
import '../delivery.css'

const route = getRouteApi('/delivery/pools/$id')
const back = { to: '/delivery/pools', label: TEXT.title }

export default function PoolPage() {
  const { id } = route.useParams()
  const found = useQuery(poolQuery(id))
  return (
    <Page>
      {found.data ? (
        <Found pool={found.data} />
      ) : (
        <>
          <PageHeader title={TEXT.title} back={back} />
          {found.error ? (
            <Failure title={TEXT.gone} error={found.error} retry={found.refetch} />
          ) : (
            <Skeleton height={480} />
          )}
        </>
      )}
    </Page>
  )
}

function Found({ pool }: { pool: Pool }) {
  const { open } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/pools/$id' })
  const mayChange = useMay({ area: 'ips', access: 'write' }) && !pool.is_inherited
  const mayDelegate = useMay({ area: 'subaccounts', only: 'parent' })
  const show = (window: PoolWindow | undefined) =>
    void navigate({ replace: true, search: window === undefined ? {} : { open: window } })
  const close = () => show(undefined)
  const opener = (window: PoolWindow, label: string) =>
    mayChange && (
      <Button variant="default" size="xs" onClick={() => show(window)}>
        {label}
      </Button>
    )
  return (
    <>
      <PageHeader
        title={pool.name}
        back={back}
        lead={pool.description || undefined}
        beside={
          pool.is_inherited && (
            <Badge variant="light" tt="none" color="gray">
              {TEXT.inherited}
            </Badge>
          )
        }
        actions={
          <>
            {opener('edit', TEXT.edit)}
            {opener('delete', TEXT.delete)}
          </>
        }
      />
      <Members
        pool={pool}
        mayChange={mayChange}
        rows={pool.ips}
        title={TEXT.ips}
        beside={opener('ip', TEXT.addIp)}
        href={(ip) => (
          <Link to="/delivery/ips/$ip" params={{ ip }} className="row-link breakable">
            {ip}
          </Link>
        )}
        button={(ip) => (
          <ActionButton
            label={TEXT.remove}
            name={TEXT.removeOf(ip)}
            run={() => editPool(pool.pool_id, { remove_ip: ip })}
            done={TEXT.ipRemoved(ip)}
            undo={() => editPool(pool.pool_id, { add_ip: ip })}
            undone={TEXT.ipAdded(ip)}
            changes={IPS_KEY}
          />
        )}
        empty={
          <EmptyState icon="globe" title={TEXT.noIps} action={opener('ip', TEXT.addIp)}>
            {TEXT.noIpsWhy}
          </EmptyState>
        }
      />
      <Members
        pool={pool}
        mayChange={mayChange}
        rows={pool.linked_domains ?? []}
        title={TEXT.domains}
        beside={pool.ips.length > 0 && opener('domain', TEXT.link)}
        href={(name) => <strong className="breakable">{name}</strong>}
        button={(name) => (
          <ActionButton
            label={TEXT.unlink}
            name={TEXT.unlinkOf(name)}
            run={() => editPool(pool.pool_id, { unlink_domain: name })}
            done={TEXT.domainUnlinked(name)}
            undo={() => editPool(pool.pool_id, { link_domain: name })}
            undone={TEXT.domainLinked(name)}
            changes={IPS_KEY}
          />
        )}
        empty={
          <EmptyState icon="mail" title={TEXT.noDomains}>
            {TEXT.noDomainsWhy}
          </EmptyState>
        }
      />
      {mayDelegate && !pool.is_inherited && (
        <Delegations pool={pool} mayChange={mayChange} beside={opener('delegate', TEXT.delegate)} />
      )}
      {mayChange && open === 'edit' && <EditForm pool={pool} onClose={close} />}
      {mayChange && open === 'ip' && <AddIpForm pool={pool} onClose={close} />}
      {mayChange && open === 'domain' && <LinkForm pool={pool} onClose={close} />}
      {mayChange && mayDelegate && open === 'delegate' && <DelegateForm pool={pool} onClose={close} />}
      {mayChange && open === 'delete' && <DeleteForm pool={pool} onClose={close} />}
    </>
  )
}

/** Addresses or domains of the pool. */
function Members(props: {
  pool: Pool
  title: string
  rows: readonly string[]
  mayChange: boolean
  beside: ReactNode
  href: (name: string) => ReactNode
  button: (name: string) => ReactNode
  empty: ReactNode
}) {
  const { title, rows, mayChange, beside, href, button, empty } = props
  return (
    <Panel title={title} flush beside={beside}>
      <DataTable
        label={title}
        rows={rows}
        rowKey={(name) => name}
        empty={empty}
        columns={[{ header: title, cell: href }, ...(mayChange ? [{ ...BUTTONS, cell: button }] : [])]}
      />
    </Panel>
  )
}

function Delegations(props: { pool: Pool; mayChange: boolean; beside: ReactNode }) {
  const { pool, mayChange, beside } = props
  const list = useQuery(delegationsQuery)
  const names = useQuery(subaccountNamesQuery)
  const nameOf = (id: string) => names.data?.find((each) => each.id === id)?.name ?? id
  const rows = list.data
    ?.filter(({ pool_id }) => pool_id === pool.pool_id)
    .map(({ subaccount_id }) => subaccount_id)
  return (
    <Panel title={TEXT.delegations} flush beside={beside}>
      <DataTable
        label={TEXT.delegations}
        rows={rows}
        rowKey={(id) => id}
        error={list.error}
        retry={list.refetch}
        expectedRows={1}
        empty={<EmptyState icon="users" title={TEXT.noDelegations} />}
        columns={[
          {
            header: TEXT.subaccount,
            cell: (id) => <strong className="breakable">{nameOf(id)}</strong>,
          },
          ...(mayChange
            ? [
                {
                  ...BUTTONS,
                  cell: (id: string) => (
                    <ActionButton
                      label={TEXT.revoke}
                      name={TEXT.revokeOf(nameOf(id))}
                      run={() => revokePool(pool.pool_id, id)}
                      done={TEXT.revoked(nameOf(id))}
                      undo={() => delegatePool(pool.pool_id, id)}
                      undone={TEXT.delegated(nameOf(id))}
                      changes={IPS_KEY}
                    />
                  ),
                },
              ]
            : []),
        ]}
      />
    </Panel>
  )
}

interface FormProps {
  pool: Pool
  onClose: () => void
}

function EditForm({ pool, onClose }: FormProps) {
  const { pool_id, name, description } = pool
  const form = useForm({
    initial: { name, description },
    send: (given) =>
      editPool(pool_id, {
        ...(given.name !== name && { name: given.name.trim() }),
        ...(given.description !== description && { description: given.description }),
      }),
    changes: IPS_KEY,
    onDone() {
      notify({ text: TEXT.saved })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.editTitle}
      submit={TEXT.save}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput label={TEXT.name} autoComplete="off" {...form.field('name')} data-autofocus />
      <TextInput label={TEXT.description} autoComplete="off" {...form.field('description')} />
    </FormWindow>
  )
}

/** One of several names, and what is done with it. */
function ChooseForm(props: {
  title: string
  label: string
  submit: string
  why?: string
  options: readonly Option[] | OptionSource
  send: (value: string) => Promise<unknown>
  done: (label: string) => string
  onClose: () => void
}) {
  const { title, label, submit, why, options, send, done, onClose } = props
  const form = useForm({
    initial: { value: '', label: '' },
    send: ({ value }) => send(value),
    changes: IPS_KEY,
    onDone(_, { label: chosen }) {
      notify({ text: done(chosen) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={title}
      submit={submit}
      isComplete={form.values.value !== ''}
      {...form.window}
      onClose={onClose}
    >
      {why !== undefined && <Text size="sm">{why}</Text>}
      <Chooser
        label={label}
        showLabel
        options={options}
        value={form.values.value}
        onChange={(value, chosen) => form.set({ value, label: chosen })}
        autoFocus
      />
    </FormWindow>
  )
}

function AddIpForm({ pool, onClose }: FormProps) {
  const free = useQuery(freeIpsQuery)
  return (
    <ChooseForm
      title={TEXT.addIp}
      label={TEXT.ip}
      submit={TEXT.addSubmit}
      why={TEXT.ipsWhy}
      options={(free.data ?? []).map(same)}
      send={(ip) => editPool(pool.pool_id, { add_ip: ip })}
      done={TEXT.ipAdded}
      onClose={onClose}
    />
  )
}

function LinkForm({ pool, onClose }: FormProps) {
  return (
    <ChooseForm
      title={TEXT.link}
      label={TEXT.domain}
      submit={TEXT.linkSubmit}
      options={domainOptions(pool.pool_id, ({ name }) =>
        pool.linked_domains?.includes(name) ? TEXT.isLinked : undefined,
      )}
      send={(domain) => editPool(pool.pool_id, { link_domain: domain })}
      done={TEXT.domainLinked}
      onClose={onClose}
    />
  )
}

function DelegateForm({ pool, onClose }: FormProps) {
  return (
    <ChooseForm
      title={TEXT.delegateTitle}
      label={TEXT.subaccount}
      submit={TEXT.delegate}
      why={TEXT.delegateWhy}
      options={SUBACCOUNT_OPTIONS}
      send={(id) => delegatePool(pool.pool_id, id)}
      done={TEXT.delegated}
      onClose={onClose}
    />
  )
}

function DeleteForm({ pool: { pool_id, name, ips }, onClose }: FormProps) {
  const navigate = useNavigate()
  const pools = useQuery(poolsQuery)
  const form = useForm({
    initial: { replacement: ips.length === 0 ? '' : 'shared', typed: '' },
    send: ({ replacement }) => deletePool(pool_id, replacement),
    changes: IPS_KEY,
    doneFirst: true,
    onDone() {
      notify({ text: TEXT.deleted(name) })
      return navigate({ to: '/delivery/pools' })
    },
  })
  const others = (pools.data ?? []).filter(
    (each) => each.pool_id !== pool_id && each.ips.length > 0 && !each.is_inherited,
  )
  return (
    <FormWindow
      title={TEXT.deleteTitle}
      submit={TEXT.delete}
      isComplete={form.values.typed.trim() === name}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.deleteWhy}</Text>
      <Chooser
        label={TEXT.replacement}
        showLabel
        {...(ips.length === 0 && { none: TEXT.replacementNone })}
        options={[
          { value: 'shared', label: TEXT.replacementShared },
          ...others.map((each) => ({
            value: `pool:${each.pool_id}`,
            label: TEXT.replacementPool(each.name),
          })),
        ]}
        value={form.values.replacement}
        onChange={(replacement) => form.set({ replacement })}
      />
      <TextInput
        label={
          <>
            {TEXT.type} <strong className="breakable">{name}</strong> {TEXT.typeLabel}
          </>
        }
        autoComplete="off"
        spellCheck={false}
        {...form.field('typed')}
        data-autofocus
      />
    </FormWindow>
  )
}
