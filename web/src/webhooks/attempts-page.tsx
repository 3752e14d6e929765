/** Attempts of webhooks. Calls GET /sendwright/v1/webhooks/attempts. */
import { Badge, Button, NativeSelect, Text, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { localInputMs } from '../base/format.ts'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { domainOptions } from '../shared/forms/choices.ts'
import { DomainChoice } from '../shared/forms/domain-choice.tsx'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { useForm } from '../shared/forms/use-form.ts'
import type { Column } from '../shared/page/data-table.tsx'
import { FilterBar, type FilterField } from '../shared/page/filter-bar.tsx'
import { ListPage } from '../shared/page/list-page.tsx'
import { notify } from '../shared/page/notices.tsx'
import { pageLinks, placeOf, placePath } from '../shared/page/paging.ts'
import { withSearch } from '../shared/page/search.ts'
import { EmptyState } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import { REPLAY_SPANS, type ReplaySpanName, replayTimes } from './replay-times.ts'
import { EVENT_WORDS, eventWords, TEXT as SHARED, ATTEMPT_TEXT as TEXT } from './text.ts'
import {
  ATTEMPTS_PAGE_SIZE,
  type Attempt,
  type AttemptPage,
  type AttemptStatus,
  attemptsPath,
  attemptsQuery,
  EVENT_TYPES,
  replaySpan,
  STATUSES,
  WEBHOOKS_KEY,
} from './webhooks-api.ts'
import type { AttemptFilter, AttemptsSearch } from './webhooks-search.ts'
import './webhooks.css'

const route = getRouteApi('/webhooks/attempts')

export default function AttemptsPage() {
  const { at, replay, ...filters } = route.useSearch()
  const navigate = useNavigate()
  const mayReplay = useMay({ area: 'domains', access: 'write' })
  const list = useQuery({
    ...attemptsQuery(placePath(attemptsPath(filters), at)),
    placeholderData: keepPreviousData,
  })
  const go = (search: AttemptsSearch, replace = true) =>
    void navigate({ to: '/webhooks/attempts', replace, search })
  const here: AttemptsSearch = { ...filters, ...(at !== undefined && { at }) }
  const fields: FilterField<AttemptFilter>[] = [
    { name: 'search', kind: 'search', label: TEXT.filters.search },
    { name: 'url', kind: 'text', label: TEXT.filters.url },
    {
      name: 'status',
      kind: 'choice',
      label: TEXT.filters.status,
      options: STATUSES.map((status) => [status, TEXT.statuses[status]] as const),
    },
    {
      name: 'event',
      kind: 'choice',
      label: TEXT.filters.event,
      options: EVENT_TYPES.map((type) => [type, EVENT_WORDS[type]] as const),
    },
    {
      name: 'domain',
      kind: 'chooser',
      label: TEXT.filters.domain,
      any: TEXT.anyDomain,
      options: domainOptions(),
    },
  ]
  const columns: Column<Attempt>[] = [
    {
      header: TEXT.event,
      cell: ({ id, event }) => (
        <Link to="/webhooks/attempts/$id" params={{ id }} className="row-link">
          {eventWords(event)}
        </Link>
      ),
    },
    {
      header: TEXT.recipient,
      cell: ({ recipient, subject }) => (
        <div>
          <bdi className="breakable">{recipient ?? '–'}</bdi>
          {recipient !== undefined && (
            <div className="dimmed attempt-subject" dir="auto">
              {subject || TEXT.noSubject}
            </div>
          )}
        </div>
      ),
    },
    { header: TEXT.url, cell: ({ url }) => <span className="breakable">{url}</span> },
    { header: TEXT.status, means: TEXT.statusMeans, cell: ({ status }) => <StatusBadge status={status} /> },
    {
      header: TEXT.answer,
      cell: ({ status_code, error }) => <span className="breakable">{error ?? status_code}</span>,
    },
    { header: TEXT.when, cell: ({ created_at }) => <Time at={created_at} as="age" /> },
    {
      header: TEXT.next,
      cell: ({ next_attempt_at }) => (next_attempt_at ? <Time at={next_attempt_at} as="age" /> : '–'),
    },
  ]
  const isFiltered = Object.keys(filters).length > 0
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/webhooks', label: SHARED.title }}
      actions={
        mayReplay && (
          <Button
            leftSection={<Icon name="refresh" size={16} />}
            onClick={() => go({ ...here, replay: 'yes' })}
          >
            {TEXT.replaySpan}
          </Button>
        )
      }
      above={
        <FilterBar
          fields={fields}
          values={filters}
          onChange={(name, value) => go(withSearch<AttemptsSearch>(filters, { [name]: value }))}
          onClear={() => go({})}
        />
      }
      list={list}
      rows={list.data?.items}
      rowKey={({ id }) => id}
      columns={columns}
      links={linksOf(list.data, at)}
      onPage={(link) => go(withSearch<AttemptsSearch>(filters, { at: placeOf(link) }), false)}
      empty={
        <EmptyState icon="hook" title={isFiltered ? TEXT.none : TEXT.noneAtAll}>
          {isFiltered ? TEXT.noneWhy : TEXT.noneAtAllWhy}
        </EmptyState>
      }
    >
      {list.data?.partial && <p className="dimmed">{TEXT.partial}</p>}
      {mayReplay && replay === 'yes' && <ReplaySpanForm initial={filters} onClose={() => go(here)} />}
    </ListPage>
  )
}

/** A page of a search may be short, or empty, and yet have older ones. */
function linksOf(page: AttemptPage | undefined, at: string | undefined) {
  const links = pageLinks(page, at, ATTEMPTS_PAGE_SIZE)
  return links && { ...links, ...(page?.partial && { next: page.paging.next }) }
}

const COLORS: Record<AttemptStatus, string> = { ok: 'teal', failing: 'orange', 'given-up': 'red' }

export const StatusBadge = ({ status }: { status: AttemptStatus }) => (
  <Badge variant="light" tt="none" fw={550} color={COLORS[status]}>
    {TEXT.statuses[status]}
  </Badge>
)

function ReplaySpanForm(props: { initial: Partial<Record<AttemptFilter, string>>; onClose: () => void }) {
  const { initial, onClose } = props
  const form = useForm({
    initial: {
      domain: initial.domain ?? '',
      url: initial.url ?? '',
      event: initial.event ?? '',
      span: 'day' as ReplaySpanName,
      ...replayTimes('day', new Date()),
    },
    send: ({ span: _, from, to, ...filter }) =>
      replaySpan({
        ...filter,
        from: new Date(localInputMs(from)).toISOString(),
        to: new Date(localInputMs(to)).toISOString(),
      }),
    changes: WEBHOOKS_KEY,
    onDone({ events, queued }) {
      notify({ text: TEXT.spanDone(events, queued) })
      onClose()
    },
  })
  const { span, from, to } = form.values
  return (
    <FormWindow
      title={TEXT.replaySpan}
      submit={TEXT.start}
      isComplete={from !== '' && to !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.replayWhy}</Text>
      <NativeSelect
        label={TEXT.span}
        value={span}
        data={REPLAY_SPANS.map((value) => ({ value, label: TEXT.spans[value] }))}
        onChange={(event) => {
          const chosen = REPLAY_SPANS.find((each) => each === event.currentTarget.value) ?? 'own'
          form.set({ span: chosen, ...(chosen !== 'own' && replayTimes(chosen, new Date())) })
        }}
        data-autofocus
      />
      <TextInput
        label={TEXT.from}
        type="datetime-local"
        value={from}
        onChange={(event) => form.set({ span: 'own', from: event.currentTarget.value })}
      />
      <TextInput
        label={TEXT.to}
        type="datetime-local"
        value={to}
        onChange={(event) => form.set({ span: 'own', to: event.currentTarget.value })}
      />
      <DomainChoice
        label={TEXT.domain}
        none={TEXT.anyDomain}
        value={form.values.domain}
        onChange={(domain) => form.set({ domain })}
      />
      <NativeSelect
        label={TEXT.event}
        data={[
          { value: '', label: TEXT.anyEvent },
          ...EVENT_TYPES.map((type) => ({ value: type, label: EVENT_WORDS[type] })),
        ]}
        {...form.field('event')}
      />
      <TextInput label={TEXT.url} autoComplete="off" {...form.field('url')} />
    </FormWindow>
  )
}
