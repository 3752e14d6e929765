/** Placement tests and seed lists. Calls /v4/inbox/tests, /v4/inbox/results and /v4/inbox/seedlists. */
import { Badge, Button, Skeleton, Textarea, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { Choice } from '../../shared/forms/choice.tsx'
import { Chooser } from '../../shared/forms/chooser.tsx'
import { useChosenDomain } from '../../shared/forms/domain-choice.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { skipLinks } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import {
  deleteList,
  PAGE_SIZE,
  type PlacementResult,
  readLists,
  readProviders,
  readResults,
  runTest,
  type SeedList,
  saveList,
  sumOf,
} from './placement-api.ts'
import type { PlacementSearch } from './placement-search.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/placement')
export const PLACEMENT_KEY = 'inbox-placement'
export const REFRESH_MS = 5_000 // while a test waits; mailboxes are read every 15 seconds

const listsQuery = {
  queryKey: [PLACEMENT_KEY, 'lists'],
  queryFn: async ({ signal }: { signal: AbortSignal }) => valueOrThrow(await readLists(signal)).items,
}

export default function PlacementPage() {
  const { view, add } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/placement' })
  const mayWrite = useMay({ area: 'validation', access: 'write' })
  const providers = useQuery({
    queryKey: [PLACEMENT_KEY, 'providers'],
    queryFn: async ({ signal }) => valueOrThrow(await readProviders(signal)).items,
  })
  const change = (changes: { [Name in keyof PlacementSearch]?: PlacementSearch[Name] | undefined }) =>
    void navigate({ replace: true, search: (old) => withSearch(old, changes) })
  const isLists = view === 'lists'
  const addButton = mayWrite && (
    <AddButton label={isLists ? TEXT.newList : TEXT.run} onClick={() => change({ add: 'yes' })} />
  )
  const close = () => change({ add: undefined })
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={addButton} />
      <Choice<'results' | 'lists'>
        label={TEXT.viewsLabel}
        options={Object.entries(TEXT.views) as ['results' | 'lists', string][]}
        value={view ?? 'results'}
        onChange={(chosen) => change({ view: chosen === 'lists' ? chosen : undefined, skip: undefined })}
      />
      {providers.data?.length === 0 && (
        <Panel>
          <EmptyState icon="mail" title={TEXT.noSeeds}>
            {TEXT.noSeedsWhy}
          </EmptyState>
        </Panel>
      )}
      {/* Not before it is known whether the hint stands above, which would push the table down. */}
      {providers.isPending ? (
        <Skeleton height={320} radius="lg" role="status" aria-label="Loading" />
      ) : isLists ? (
        <Lists action={addButton} />
      ) : (
        <Results action={addButton} />
      )}
      {add === 'yes' &&
        mayWrite &&
        (isLists ? <ListWindow onClose={close} /> : <TestWindow onClose={close} />)}
    </Page>
  )
}

function Results({ action }: { action: ReactNode }) {
  const { skip: skipText = '0' } = route.useSearch()
  const skip = Number(skipText)
  const navigate = useNavigate({ from: '/sending/placement' })
  const results = useQuery({
    queryKey: [PLACEMENT_KEY, 'results', skip],
    queryFn: async ({ signal }) => valueOrThrow(await readResults(skip, signal)),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ status }) => status === 'processing') ? REFRESH_MS : false,
  })
  return (
    <Panel flush>
      <DataTable
        label={TEXT.views.results}
        columns={RESULT_COLUMNS}
        rows={results.data?.items}
        rowKey={({ result_id }) => result_id}
        error={results.error}
        retry={results.refetch}
        isStale={results.isPlaceholderData}
        links={results.data && skipLinks('/v4/inbox/results', skip, PAGE_SIZE, results.data.total)}
        onPage={(link) => {
          const to = new URL(link, window.location.origin).searchParams.get('skip') ?? '0'
          void navigate({ search: (old) => withSearch(old, { skip: to === '0' ? undefined : to }) })
        }}
        expectedRows={3}
        empty={
          <EmptyState icon="mail" title={TEXT.none} action={action}>
            {TEXT.noneWhy}
          </EmptyState>
        }
      />
    </Panel>
  )
}

const number = (name: 'inbox' | 'spam' | 'missing'): Column<PlacementResult> => ({
  header: TEXT[name],
  align: 'end',
  cell: (result) => sumOf(result)[name].toLocaleString('en'),
})

const RESULT_COLUMNS: readonly Column<PlacementResult>[] = [
  {
    header: TEXT.subject,
    cell: ({ result_id: id, subject, sender }) => (
      <div>
        <Link to="/sending/placement/$id" params={{ id }} className="row-link breakable">
          {subject}
        </Link>{' '}
        <span className="dimmed breakable">{sender}</span>
      </div>
    ),
  },
  { header: TEXT.status, cell: ({ status }) => <TestStatus status={status} /> },
  number('inbox'),
  number('spam'),
  number('missing'),
  { header: TEXT.sent, align: 'end', cell: ({ created_at }) => <Time at={created_at} as="age" /> },
]

export const TestStatus = ({ status }: { status: string }) => (
  <Badge variant="light" tt="none" fw={550} color={status === 'completed' ? 'teal' : 'petrol'}>
    {TEXT.statuses[status] ?? status}
  </Badge>
)

function TestWindow({ onClose }: { onClose: () => void }) {
  const domain = useChosenDomain(undefined)
  const lists = useQuery(listsQuery)
  const queries = useQueryClient()
  const navigate = useNavigate({ from: '/sending/placement' })
  const [fields, setFields] = useState({ from: '', subject: '', html: '', seedList: '' })
  const set = (name: keyof typeof fields) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFields((old) => ({ ...old, [name]: value }))
  }
  const running = useSending({
    mutationFn: async () =>
      valueOrThrow(await runTest({ ...fields, from: fields.from.trim() || `postmaster@${domain}` })),
    async onSuccess({ result_id: id }) {
      notify({ text: TEXT.started })
      await queries.invalidateQueries({ queryKey: [PLACEMENT_KEY] })
      await navigate({ to: '/sending/placement/$id', params: { id } })
    },
  })
  return (
    <FormWindow
      title={TEXT.run}
      submit={TEXT.start}
      busy={running.isPending}
      isComplete={fields.subject.trim() !== '' && fields.html.trim() !== ''}
      error={running.error}
      onSubmit={() => running.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.from}
        placeholder={`postmaster@${domain}`}
        autoComplete="off"
        value={fields.from}
        onChange={set('from')}
        data-autofocus
      />
      <TextInput label={TEXT.subject} maxLength={998} value={fields.subject} onChange={set('subject')} />
      <Textarea
        label={TEXT.html}
        autosize
        minRows={5}
        maxRows={14}
        spellCheck={false}
        value={fields.html}
        onChange={set('html')}
      />
      <Chooser
        label={TEXT.seedList}
        showLabel
        value={fields.seedList}
        none={TEXT.allSeeds}
        options={(lists.data ?? [])
          .filter(({ is_auto_generated }) => !is_auto_generated)
          .map(({ kid, name, target_email }) => ({ value: kid, label: name || target_email }))}
        onChange={(seedList) => setFields((old) => ({ ...old, seedList }))}
      />
    </FormWindow>
  )
}

function Lists({ action }: { action: ReactNode }) {
  const lists = useQuery(listsQuery)
  const mayWrite = useMay({ area: 'validation', access: 'write' })
  const [edited, setEdited] = useState<SeedList>()
  const [removed, setRemoved] = useState<SeedList>()
  const columns: readonly Column<SeedList>[] = [
    {
      header: TEXT.name,
      cell: (list) => (
        <>
          <strong className="breakable">{titleOf(list)}</strong>{' '}
          <span className="dimmed breakable">{list.provider_filter || list.seed_filter}</span>
        </>
      ),
    },
    { header: TEXT.count, align: 'end', cell: ({ Seeds }) => (Seeds?.length ?? 0).toLocaleString('en') },
    {
      header: TEXT.lastTest,
      align: 'end',
      cell: ({ has_results, last_result_at }) =>
        has_results ? <Time at={last_result_at} as="age" /> : TEXT.never,
    },
    ...(mayWrite
      ? [
          {
            ...BUTTONS,
            cell: (list: SeedList) =>
              !list.is_auto_generated && (
                <span className="row-buttons">
                  <Button
                    size="compact-sm"
                    variant="subtle"
                    aria-label={TEXT.editOf(titleOf(list))}
                    onClick={() => setEdited(list)}
                  >
                    {TEXT.edit}
                  </Button>
                  <Button
                    size="compact-sm"
                    variant="subtle"
                    color="red"
                    aria-label={TEXT.removeOf(titleOf(list))}
                    onClick={() => setRemoved(list)}
                  >
                    {TEXT.remove}
                  </Button>
                </span>
              ),
          },
        ]
      : []),
  ]
  return (
    <Panel flush>
      <DataTable
        label={TEXT.views.lists}
        columns={columns}
        rows={lists.data}
        rowKey={({ kid }) => kid}
        error={lists.error}
        retry={lists.refetch}
        expectedRows={2}
        empty={
          <EmptyState icon="list" title={TEXT.noLists} action={action}>
            {TEXT.noListsWhy}
          </EmptyState>
        }
      />
      {edited && <ListWindow list={edited} onClose={() => setEdited(undefined)} />}
      {removed && <RemoveList list={removed} onClose={() => setRemoved(undefined)} />}
    </Panel>
  )
}

const titleOf = ({ name, target_email, is_auto_generated }: SeedList) =>
  is_auto_generated ? TEXT.unnamed : name || target_email

function RemoveList({ list, onClose }: { list: SeedList; onClose: () => void }) {
  const queries = useQueryClient()
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteList(list.kid)),
    async onSuccess() {
      notify({ text: TEXT.removedList(titleOf(list)) })
      onClose()
      await queries.invalidateQueries({ queryKey: [PLACEMENT_KEY] })
    },
  })
  return (
    <Confirm
      opened
      title={TEXT.removeList}
      consequence={TEXT.removeListWhy}
      action={TEXT.remove}
      busy={removal.isPending}
      failure={removal.error?.message}
      onConfirm={() => removal.mutate()}
      onClose={onClose}
    />
  )
}

function ListWindow({ list, onClose }: { list?: SeedList; onClose: () => void }) {
  const queries = useQueryClient()
  const [fields, setFields] = useState({
    name: list?.name ?? '',
    provider_filter: list?.provider_filter ?? '',
    seed_filter: list?.seed_filter ?? '',
  })
  const set = (name: keyof typeof fields) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFields((old) => ({ ...old, [name]: value }))
  }
  const saving = useSending({
    mutationFn: async () => valueOrThrow(await saveList(list?.kid, fields)),
    async onSuccess(saved) {
      notify({ text: TEXT.saved(titleOf(saved)) })
      await queries.invalidateQueries({ queryKey: [PLACEMENT_KEY] })
      onClose()
    },
  })
  return (
    <FormWindow
      title={list ? TEXT.editList : TEXT.newList}
      submit={list ? TEXT.save : TEXT.create}
      busy={saving.isPending}
      isComplete={fields.name.trim() !== ''}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <TextInput label={TEXT.name} value={fields.name} onChange={set('name')} data-autofocus />
      <TextInput
        label={TEXT.providers}
        description={TEXT.providersHint}
        autoComplete="off"
        value={fields.provider_filter}
        onChange={set('provider_filter')}
      />
      <TextInput
        label={TEXT.seeds}
        description={TEXT.seedsHint}
        autoComplete="off"
        value={fields.seed_filter}
        onChange={set('seed_filter')}
      />
    </FormWindow>
  )
}
