/** Suppressions of a domain by kind: bounces, complaints, unsubscribes, allowlist. Calls /v3/:domain/:kind. */
import { ActionIcon, Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { pathOfLink } from '../../api.ts'
import { Confirm } from '../../base/confirm.tsx'
import { countOf } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Choice } from '../../shared/forms/choice.tsx'
import { DomainChoice, useChosenDomain, useFirstDomain } from '../../shared/forms/domain-choice.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { usePersonHref } from '../../shared/mail/message-link.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { placeOf } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { saveText } from '../../shared/save-text.ts'
import { Time } from '../../shared/time.tsx'
import { csvLine } from '../import/csv.ts'
import { ImportForm } from '../import/import-form.tsx'
import {
  addSuppression,
  addSuppressions,
  COLUMNS,
  clearSuppressions,
  exportPath,
  importable,
  listSuppressions,
  readPage,
  recordOf,
  removeSuppression,
  type Suppression,
  subjectOf,
  timeOf,
} from './suppressions-api.ts'
import type { Kind, SuppressionsSearch } from './suppressions-search.ts'
import { TEXT } from './text.ts'
import './suppressions.css'

const route = getRouteApi('/sending/suppressions')
const KEY = 'suppressions'
const IMPORT_STEP = 1000 // the most that one request may hold

export default function SuppressionsPage() {
  const search = route.useSearch()
  const { q = '', at, open: form } = search
  const navigate = useNavigate({ from: '/sending/suppressions' })
  const first = useFirstDomain()
  const domain = useChosenDomain(search.domain)
  const allowed = useKinds()
  const kind = allowed.find((each) => each === search.kind) ?? allowed[0] ?? 'whitelists'
  const mayWrite = useMay({ area: kind === 'whitelists' ? 'allowlist' : 'suppressions', access: 'write' })
  const list = useQuery({
    queryKey: [KEY, domain, kind, q, at],
    queryFn: async ({ signal }) => valueOrThrow(await listSuppressions(domain, kind, q, at, signal)),
    placeholderData: keepPreviousData,
    enabled: domain !== '',
  })
  const change = (changes: { [Name in keyof SuppressionsSearch]?: SuppressionsSearch[Name] | undefined }) =>
    void navigate({ replace: 'open' in changes, search: (old) => withSearch(old, changes) })
  const actions = mayWrite && (
    <>
      <Button variant="default" disabled={domain === ''} onClick={() => change({ open: 'import' })}>
        {TEXT.import}
      </Button>
      <Button
        leftSection={<Icon name="plus" size={16} />}
        disabled={domain === ''}
        onClick={() => change({ open: 'add' })}
      >
        {TEXT.add}
      </Button>
    </>
  )
  const columns = useColumns(domain, kind, mayWrite)
  const { items, paging } = list.data ?? {}
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={actions} />
      {first.error && domain === '' ? (
        <Failure title={TEXT.noDomains} error={first.error} retry={first.refetch} />
      ) : first.data === null ? (
        <Panel>
          <EmptyState icon="globe" title={TEXT.noDomain}>
            {TEXT.noDomainWhy}
          </EmptyState>
        </Panel>
      ) : (
        <>
          <div className="suppression-kinds">
            <Choice
              label={TEXT.kindsLabel}
              options={allowed.map((each) => [each, TEXT.kinds[each]] as const)}
              value={kind}
              onChange={(chosen) => change({ kind: chosen, at: undefined })}
            />
          </div>
          <p className="page-lead">{TEXT.why[kind]}</p>
          <FilterBar
            fields={[{ name: 'q', kind: 'search', label: TEXT.search }]}
            values={{ q }}
            onChange={(name, value) => change({ [name]: value, at: undefined })}
            onClear={() => change({ q: undefined, at: undefined })}
          >
            <DomainChoice value={domain} onChange={(chosen) => change({ domain: chosen, at: undefined })} />
            <ExportButton domain={domain} kind={kind} q={q} disabled={items?.length === 0} />
            {mayWrite && <ClearButton domain={domain} kind={kind} disabled={items?.length === 0} />}
          </FilterBar>
          <Panel flush>
            <DataTable
              label={TEXT.kinds[kind]}
              columns={columns}
              rows={list.isPlaceholderData && list.data === undefined ? undefined : items}
              rowKey={subjectOf}
              error={list.error}
              retry={list.refetch}
              isStale={list.isPlaceholderData}
              links={pageLinks(paging, at, items)}
              onPage={(link) => change({ at: placeOf(link) })}
              empty={
                q !== '' ? (
                  <EmptyState icon="search" title={TEXT.noneFound(q)} />
                ) : (
                  <EmptyState
                    icon="shield"
                    title={TEXT.none[kind]}
                    action={actions && <Group>{actions}</Group>}
                  >
                    {TEXT.why[kind]}
                  </EmptyState>
                )
              }
            />
          </Panel>
        </>
      )}
      <Modal
        opened={form === 'add' && mayWrite && domain !== ''}
        onClose={() => change({ open: undefined })}
        title={<strong>{TEXT.addTitle[kind]}</strong>}
        centered
      >
        <AddForm domain={domain} kind={kind} onClose={() => change({ open: undefined })} />
      </Modal>
      <Modal
        opened={form === 'import' && mayWrite && domain !== ''}
        onClose={() => change({ open: undefined })}
        title={<strong className="breakable">{TEXT.importTitle(TEXT.kinds[kind], domain)}</strong>}
        centered
      >
        <ImportOf domain={domain} kind={kind} onClose={() => change({ open: undefined })} />
      </Modal>
    </Page>
  )
}

/** The lists that the caller may read. */
function useKinds(): Kind[] {
  const mayRead = useMay({ area: 'suppressions' })
  const mayReadAllowed = useMay({ area: 'allowlist' })
  return [
    ...(mayRead ? (['bounces', 'complaints', 'unsubscribes'] as const) : []),
    ...(mayReadAllowed ? (['whitelists'] as const) : []),
  ]
}

const PAGE_FULL = 50

/** The API gives all links always: only those that lead to something are shown. */
function pageLinks(
  paging: { next: string; previous: string } | undefined,
  at: string | undefined,
  items: readonly Suppression[] | undefined,
) {
  if (paging === undefined) return undefined
  const isBackwards = at?.includes('page=previous') === true
  const isFull = (items?.length ?? 0) >= PAGE_FULL
  return {
    ...(at !== undefined && (!isBackwards || isFull) && { previous: paging.previous }),
    ...((isFull || isBackwards) && { next: paging.next }),
  }
}

function useColumns(domain: string, kind: Kind, mayWrite: boolean): Column<Suppression>[] {
  const personHref = usePersonHref()
  const removal = useRemoval(domain, kind)
  const columns: Column<Suppression>[] = [
    {
      header: kind === 'whitelists' ? TEXT.addressOrDomain : TEXT.address,
      cell: (item) => <strong className="breakable suppressed-address">{subjectOf(item)}</strong>,
    },
  ]
  const add = (header: string, cell: (item: Suppression) => ReactNode) => columns.push({ header, cell })
  if (kind === 'bounces') add(TEXT.code, ({ code }) => <span className="tag">{code}</span>)
  if (kind === 'bounces')
    add(TEXT.error, ({ error }) => (
      <span className="dimmed breakable suppression-reason">{error || '–'}</span>
    ))
  if (kind === 'whitelists')
    add(TEXT.reason, ({ reason }) => <span className="dimmed breakable">{reason || '–'}</span>)
  if (kind === 'unsubscribes')
    add(TEXT.tags, ({ tags = [] }) => (
      <span className="suppression-tags">
        {tags.map((tag) => (
          <span key={tag} className="tag">
            {tag === '*' ? TEXT.allMail : tag}
          </span>
        ))}
      </span>
    ))
  add(TEXT.added, (item) => <Time at={timeOf(item)} as="age" />)
  columns.push({
    ...BUTTONS,
    cell: (item) => {
      const value = subjectOf(item)
      const history = item.type === 'domain' ? undefined : personHref(value)
      return (
        <span className="row-buttons">
          {history !== undefined && (
            <Button
              component="a"
              href={history}
              size="compact-sm"
              variant="subtle"
              aria-label={TEXT.historyOf(value)}
            >
              {TEXT.history}
            </Button>
          )}
          {mayWrite && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={TEXT.removeOf(value)}
              title={TEXT.removeOf(value)}
              disabled={removal.isPending && subjectOf(removal.variables) === value}
              onClick={() => removal.mutate(item)}
            >
              <Icon name="trash" size={16} />
            </ActionIcon>
          )}
        </span>
      )
    },
  })
  return columns
}

/** Removes a record; the notice puts it back as it was. */
function useRemoval(domain: string, kind: Kind) {
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: [KEY, domain, kind] })
  const restore = async (item: Suppression) => {
    const answer = await addSuppressions(domain, kind, [recordOf(kind, item)])
    await refresh()
    notify(
      answer.ok ? { text: TEXT.restored(subjectOf(item)) } : { text: answer.failure.message, tone: 'bad' },
    )
  }
  return useSending({
    mutationFn: async (item: Suppression) =>
      valueOrThrow(await removeSuppression(domain, kind, subjectOf(item))),
    async onSuccess(_, item) {
      notify({ text: TEXT.removed(subjectOf(item)), undo: () => void restore(item) })
      await refresh()
    },
    onError: ({ message }) => notify({ text: message, tone: 'bad' }),
  })
}

interface ListProps {
  domain: string
  kind: Kind
}

function AddForm({ domain, kind, onClose }: ListProps & { onClose: () => void }) {
  const [value, setValue] = useState('')
  const [reason, setReason] = useState('')
  const [code, setCode] = useState('550')
  const queries = useQueryClient()
  const addition = useSending({
    mutationFn: async () => {
      const isDomain = kind === 'whitelists' && !value.includes('@')
      return valueOrThrow(
        await addSuppression(domain, kind, {
          [isDomain ? 'domain' : 'address']: value.trim(),
          ...(kind === 'bounces' && { code: code.trim(), error: reason.trim() }),
          ...(kind === 'whitelists' && { reason: reason.trim() }),
          ...(kind === 'unsubscribes' && reason.trim() !== '' && { tags: reason.trim() }),
        }),
      )
    },
    async onSuccess() {
      notify({ text: TEXT.addedNow(value.trim()) })
      await queries.invalidateQueries({ queryKey: [KEY, domain, kind] })
      onClose()
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!addition.isPending) addition.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={kind === 'whitelists' ? TEXT.addressOrDomain : TEXT.address}
          placeholder="bob@example.com"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          inputMode="email"
          value={value}
          error={addition.error?.message}
          onChange={(event) => {
            setValue(event.currentTarget.value)
            addition.reset()
          }}
          data-autofocus
        />
        {kind === 'bounces' && (
          <TextInput
            label={TEXT.code}
            inputMode="numeric"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
        )}
        {kind !== 'complaints' && (
          <TextInput
            label={kind === 'unsubscribes' ? TEXT.tag : TEXT.reason}
            {...(kind === 'unsubscribes' && { description: TEXT.tagHint })}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" loading={addition.isPending} disabled={value.trim() === ''}>
          {TEXT.add}
        </Button>
      </Group>
    </form>
  )
}

function ImportOf({ domain, kind, onClose }: ListProps & { onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <ImportForm
      what="address"
      many="addresses"
      columns={COLUMNS[kind]}
      example={TEXT.examples[kind]}
      hint={TEXT.importHint}
      size={IMPORT_STEP}
      send={(records) =>
        addSuppressions(
          domain,
          kind,
          records.map((record) => importable(kind, record)),
        )
      }
      onStored={() => void queries.invalidateQueries({ queryKey: [KEY, domain, kind] })}
      onClose={onClose}
    />
  )
}

function ExportButton({ domain, kind, q, disabled }: ListProps & { q: string; disabled: boolean }) {
  const [read, setRead] = useState<number>()
  const run = async () => {
    const columns = COLUMNS[kind]
    const lines = [csvLine(columns)]
    setRead(0)
    for (let path = exportPath(domain, kind, q); ; ) {
      const answer = await readPage(path)
      if (!answer.ok) {
        notify({ text: answer.failure.message, tone: 'bad' })
        return setRead(undefined)
      }
      const { items, paging } = answer.value
      if (items.length === 0) break
      for (const item of items) {
        const record = recordOf(kind, item)
        lines.push(csvLine(columns.map((name) => textOf(record[name]))))
      }
      setRead(lines.length - 1)
      path = pathOfLink(paging.next)
    }
    saveText(lines, `${domain}-${kind}.csv`, 'text/csv')
    setRead(undefined)
  }
  return (
    <Button
      variant="default"
      size="sm"
      leftSection={<Icon name="download" size={16} />}
      disabled={disabled || domain === '' || read !== undefined}
      onClick={() => void run()}
    >
      {read === undefined ? TEXT.export : TEXT.exporting(countOf(read, 'address', 'addresses'))}
    </Button>
  )
}

const textOf = (value: unknown) => (Array.isArray(value) ? value.join(',') : String(value ?? ''))

function ClearButton({ domain, kind, disabled }: ListProps & { disabled: boolean }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const clearing = useSending({
    mutationFn: async () => valueOrThrow(await clearSuppressions(domain, kind)),
    async onSuccess() {
      setAsking(false)
      notify({ text: TEXT.cleared(TEXT.kinds[kind]) })
      await queries.invalidateQueries({ queryKey: [KEY, domain, kind] })
    },
  })
  return (
    <>
      <Button variant="subtle" color="red" size="sm" disabled={disabled} onClick={() => setAsking(true)}>
        {TEXT.clear}
      </Button>
      <Confirm
        opened={asking}
        title={TEXT.clearTitle(TEXT.kinds[kind], domain)}
        consequence={TEXT.clearWhy}
        action={TEXT.clear}
        mustType={domain}
        busy={clearing.isPending}
        failure={clearing.error?.message}
        onConfirm={() => clearing.mutate()}
        onClose={() => {
          setAsking(false)
          clearing.reset()
        }}
      />
    </>
  )
}
