/** Validation of one address, and bulk jobs. Calls /v4/address/validate and /v4/address/validate/bulk. */
import { Button, Text, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useRef, useState } from 'react'
import { formatBytes } from '../../base/format.ts'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { placeOf, placePath } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { ResultBadge, StatusBadge } from './badges.tsx'
import { TEXT } from './text.ts'
import {
  createJob,
  isRunning,
  jobsPath,
  PAGE_SIZE,
  readJobs,
  type ValidationJob,
  type Verdict,
  validate,
} from './validation-api.ts'
import type { ValidationSearch } from './validation-search.ts'
import './validation.css'

const route = getRouteApi('/sending/validation')
export const VALIDATION_KEY = 'validation-jobs'
export const REFRESH_MS = 2_000 // while a job runs

export default function ValidationPage() {
  const { at, add } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/validation' })
  const mayWrite = useMay({ area: 'validation', access: 'write' })
  const path = placePath(jobsPath, at)
  const list = useQuery({
    queryKey: [VALIDATION_KEY, path],
    queryFn: async ({ signal }) => valueOrThrow(await readJobs(path, signal)),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.jobs.some(isRunning) ? REFRESH_MS : false),
  })
  const { jobs, paging } = list.data ?? {}
  const change = (changes: { [Name in keyof ValidationSearch]?: ValidationSearch[Name] | undefined }) =>
    void navigate({ replace: 'add' in changes, search: (old) => withSearch(old, changes) })
  const upload = mayWrite && <AddButton label={TEXT.upload} onClick={() => change({ add: 'yes' })} />
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={upload} />
      <OneAddress />
      <Panel title={TEXT.lists} flush>
        <DataTable
          label={TEXT.lists}
          columns={COLUMNS}
          rows={jobs}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData}
          links={{
            previous: at === undefined ? undefined : paging?.previous,
            next: jobs?.length === PAGE_SIZE ? paging?.next : undefined,
          }}
          onPage={(link) => change({ at: placeOf(link) })}
          expectedRows={3}
          empty={
            <EmptyState icon="list" title={TEXT.none} action={upload}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {add === 'yes' && mayWrite && <UploadWindow onClose={() => change({ add: undefined })} />}
    </Page>
  )
}

const COLUMNS: readonly Column<ValidationJob>[] = [
  {
    header: TEXT.name,
    cell: ({ id }) => (
      <Link to="/sending/validation/$id" params={{ id }} className="row-link breakable">
        {id}
      </Link>
    ),
  },
  { header: TEXT.status, cell: ({ status }) => <StatusBadge status={status} /> },
  {
    header: TEXT.progress,
    align: 'end',
    cell: ({ records_processed }) => (records_processed ?? 0).toLocaleString('en'),
  },
  { header: TEXT.rows, align: 'end', cell: ({ quantity }) => quantity.toLocaleString('en') },
  {
    header: TEXT.created,
    align: 'end',
    cell: ({ created_at }) => <Time at={created_at * 1000} as="age" />,
  },
]

function OneAddress() {
  const { address: first = '' } = route.useSearch()
  const [address, setAddress] = useState(first)
  const checking = useSending({ mutationFn: async (text: string) => valueOrThrow(await validate(text)) })
  return (
    <Panel title={TEXT.one}>
      <form
        className="validation-one"
        onSubmit={(event) => {
          event.preventDefault()
          if (address.trim() !== '' && !checking.isPending) checking.mutate(address.trim())
        }}
      >
        <TextInput
          aria-label={TEXT.address}
          placeholder="bob@example.com"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          inputMode="email"
          value={address}
          onChange={(event) => setAddress(event.currentTarget.value)}
        />
        <Button type="submit" loading={checking.isPending} disabled={address.trim() === ''}>
          {TEXT.check}
        </Button>
      </form>
      {checking.error && (
        <Text size="sm" c="red" mt="sm" role="alert" className="breakable">
          {checking.error.message}
        </Text>
      )}
      {checking.data && <VerdictView verdict={checking.data} />}
    </Panel>
  )
}

function VerdictView({ verdict }: { verdict: Verdict }) {
  const facts: [label: string, value: ReactNode][] = [
    [TEXT.reason, verdict.reason.join(', ') || '–'],
    [TEXT.role, verdict.is_role_address ? TEXT.yes : TEXT.no],
    [TEXT.disposable, verdict.is_disposable_address ? TEXT.yes : TEXT.no],
  ]
  if (verdict.did_you_mean) facts.unshift([TEXT.suggestion, verdict.did_you_mean])
  if (verdict.root_address) facts.push([TEXT.root, verdict.root_address])
  if (verdict.last_seen !== undefined)
    facts.push([TEXT.lastSeen, <Time key="seen" at={verdict.last_seen * 1000} />])
  return (
    <div className="verdict">
      <div className="verdict-head" role="status">
        <strong className="breakable">{verdict.address}</strong>
        <ResultBadge result={verdict.result} />
        <span className="dimmed">{TEXT.riskOf(TEXT.risks[verdict.risk] ?? verdict.risk)}</span>
      </div>
      <dl className="verdict-facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd className="breakable">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  )
}

function UploadWindow({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate({ from: '/sending/validation' })
  const picker = useRef<HTMLInputElement>(null)
  const [file, setFile] = useState<File>()
  const [name, setName] = useState('')
  const id = name.trim() || nameOf(file)
  const creation = useSending({
    mutationFn: async (chosen: File) => valueOrThrow(await createJob(id, chosen)),
    async onSuccess() {
      notify({ text: TEXT.submitted(id) })
      await queries.invalidateQueries({ queryKey: [VALIDATION_KEY] })
      await navigate({ to: '/sending/validation/$id', params: { id } })
    },
  })
  return (
    <FormWindow
      title={TEXT.upload}
      submit={TEXT.submit}
      busy={creation.isPending}
      isComplete={file !== undefined}
      error={creation.error}
      onSubmit={() => file && creation.mutate(file)}
      onClose={onClose}
    >
      <div className="validation-file">
        <input
          ref={picker}
          type="file"
          accept=".csv,.txt,.gz,text/csv,text/plain,application/gzip"
          className="visually-hidden"
          tabIndex={-1}
          aria-label={TEXT.file}
          onChange={(event) => {
            setFile(event.currentTarget.files?.[0])
            creation.reset()
          }}
        />
        <Button variant="default" onClick={() => picker.current?.click()} data-autofocus>
          {TEXT.chooseFile}
        </Button>
        {file && (
          <span className="breakable">
            {file.name} <span className="dimmed">{formatBytes(file.size)}</span>
          </span>
        )}
        <Text size="sm" c="dimmed">
          {TEXT.fileHint}
        </Text>
      </div>
      <TextInput
        label={TEXT.name}
        description={TEXT.nameHint}
        placeholder={nameOf(file)}
        autoComplete="off"
        maxLength={255}
        value={name}
        onChange={(event) => {
          setName(event.currentTarget.value)
          creation.reset()
        }}
      />
    </FormWindow>
  )
}

/** The name of a job, from that of its file; `@` would be a mailing list's. */
const nameOf = (file: File | undefined) =>
  (file?.name ?? '')
    .replace(/\.(?:csv|txt)?(?:\.?gz)?$/i, '')
    .replaceAll('@', '-')
    .slice(0, 255)
