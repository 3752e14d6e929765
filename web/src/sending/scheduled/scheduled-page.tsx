/** Mail with a later delivery time: look, move, cancel. Calls /sendwright/v1/scheduled. */
import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { countOf, displayName, localInput, localInputMs, shortDateTime } from '../../base/format.ts'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { TAG_OPTIONS } from '../../shared/forms/choices.ts'
import { DomainChoice } from '../../shared/forms/domain-choice.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { Mailboxes } from '../../shared/mail/mailboxes.tsx'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { placeOf } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import {
  cancelScheduled,
  listScheduled,
  moveScheduled,
  SCHEDULED_PAGE_SIZE,
  type ScheduledItem,
} from './scheduled-api.ts'
import type { ScheduledSearch } from './scheduled-search.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/scheduled')
const KEY = 'scheduled'
const REFRESH_MS = 15_000 // mail leaves the list when it is due
const HOUR_MS = 3_600_000

export default function ScheduledPage() {
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/sending/scheduled' })
  const mayWrite = useMay({ area: 'messages:send', access: 'write' })
  const [toMove, setToMove] = useState<ScheduledItem>()
  const [toCancel, setToCancel] = useState<ScheduledItem>()
  const list = useQuery({
    queryKey: [KEY, search],
    queryFn: async ({ signal }) => valueOrThrow(await listScheduled(search, signal)),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })
  const change = (changes: { [Name in keyof ScheduledSearch]?: ScheduledSearch[Name] | undefined }) =>
    void navigate({ search: (old) => withSearch(old, { at: undefined, ...changes }) })
  const { domain = '', recipient, tag, at } = search
  const isFiltered = domain !== '' || recipient !== undefined || tag !== undefined
  const { items, paging } = list.data ?? {}
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      <FilterBar
        fields={[
          { name: 'recipient', kind: 'search', label: TEXT.recipient },
          {
            name: 'tag',
            kind: 'chooser',
            label: TEXT.tag,
            any: TEXT.anyTag,
            options: TAG_OPTIONS,
            free: true,
          },
        ]}
        values={{ recipient, tag }}
        onChange={(name, value) => change({ [name]: value })}
        onClear={() => change({ recipient: undefined, tag: undefined })}
      >
        <DomainChoice
          value={domain}
          none={TEXT.anyDomain}
          onChange={(chosen) => change({ domain: chosen === '' ? undefined : chosen })}
        />
      </FilterBar>
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columnsOf(mayWrite, setToMove, setToCancel)}
          rows={items}
          rowKey={({ storage_key }) => storage_key}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData}
          links={
            paging && {
              ...(at !== undefined && { previous: paging.first }),
              ...(items?.length === SCHEDULED_PAGE_SIZE && { next: paging.next }),
            }
          }
          onPage={(link) => change({ at: link === paging?.first ? undefined : placeOf(link) })}
          empty={
            <EmptyState icon="clock" title={isFiltered ? TEXT.noneFound : TEXT.none}>
              {isFiltered ? undefined : TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      <Modal
        opened={toMove !== undefined}
        onClose={() => setToMove(undefined)}
        title={<strong>{TEXT.moveTitle}</strong>}
        centered
      >
        {toMove && <MoveForm item={toMove} onClose={() => setToMove(undefined)} />}
      </Modal>
      <CancelMail item={toCancel} onClose={() => setToCancel(undefined)} />
    </Page>
  )
}

const subjectOf = ({ subject }: ScheduledItem) => subject || TEXT.noSubject

const columnsOf = (
  mayWrite: boolean,
  onMove: (item: ScheduledItem) => void,
  onCancel: (item: ScheduledItem) => void,
): Column<ScheduledItem>[] => [
  {
    header: TEXT.subject,
    cell: (item) => (
      <span className="breakable">
        <strong className="breakable">{subjectOf(item)}</strong>{' '}
        {item.tags.map((tag) => (
          <span key={tag} className="tag">
            {tag}
          </span>
        ))}
      </span>
    ),
  },
  {
    header: TEXT.from,
    cell: ({ from }) => <span className="breakable">{displayName(from)}</span>,
    wideOnly: true,
  },
  {
    header: TEXT.to,
    width: '22%',
    cell: ({ to }) => (
      <span className="breakable">
        <Mailboxes text={to} />
      </span>
    ),
  },
  { header: TEXT.copies, align: 'end', cell: ({ recipients }) => recipients.toLocaleString('en') },
  {
    header: TEXT.due,
    cell: ({ deliverytime }) => (
      <span>
        <Time at={deliverytime} />{' '}
        <span className="dimmed">
          (<Time at={deliverytime} as="age" />)
        </span>
      </span>
    ),
  },
  ...(mayWrite
    ? [
        {
          ...BUTTONS,
          cell: (item: ScheduledItem) => (
            <span className="row-buttons">
              <Button
                size="compact-sm"
                variant="light"
                aria-label={TEXT.moveOf(subjectOf(item))}
                onClick={() => onMove(item)}
              >
                {TEXT.move}
              </Button>
              <Button
                size="compact-sm"
                variant="subtle"
                color="red"
                aria-label={TEXT.cancelOf(subjectOf(item))}
                onClick={() => onCancel(item)}
              >
                {TEXT.cancelMail}
              </Button>
            </span>
          ),
        },
      ]
    : []),
]

function MoveForm({ item, onClose }: { item: ScheduledItem; onClose: () => void }) {
  const before = Date.parse(item.deliverytime)
  const [time, setTime] = useState(() => localInput(before))
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: [KEY] })
  const moving = useSending({
    mutationFn: async (ms: number) => valueOrThrow(await moveScheduled(item.message_id, ms)),
    async onSuccess(_, ms) {
      notify({
        text: TEXT.moved(shortDateTime(ms)),
        undo: () =>
          void moveScheduled(item.message_id, before).then((answer) => {
            if (!answer.ok) notify({ text: answer.failure.message, tone: 'bad' })
            return refresh()
          }),
      })
      await refresh()
      onClose()
    },
  })
  const offers = [
    [TEXT.hour, () => Date.now() + HOUR_MS],
    [TEXT.tomorrow, () => before + 24 * HOUR_MS],
  ] as const
  const chosen = localInputMs(time)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!moving.isPending) moving.mutate(chosen)
      }}
    >
      <Stack gap="md">
        <strong className="breakable">{subjectOf(item)}</strong>
        <TextInput
          type="datetime-local"
          label={TEXT.newTime}
          description={TEXT.newTimeHint}
          value={time}
          error={moving.error?.message}
          onChange={(event) => {
            setTime(event.currentTarget.value)
            moving.reset()
          }}
          data-autofocus
        />
        <Group gap="xs">
          {offers.map(([label, at]) => (
            <Button key={label} size="compact-sm" variant="light" onClick={() => setTime(localInput(at()))}>
              {label}
            </Button>
          ))}
        </Group>
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.keep}
        </Button>
        <Button type="submit" loading={moving.isPending} disabled={!Number.isFinite(chosen)}>
          {TEXT.move}
        </Button>
      </Group>
    </form>
  )
}

function CancelMail({ item, onClose }: { item: ScheduledItem | undefined; onClose: () => void }) {
  const queries = useQueryClient()
  const cancelling = useSending({
    mutationFn: async (id: string) => valueOrThrow(await cancelScheduled(id)),
    async onSuccess() {
      notify({ text: TEXT.cancelled })
      await queries.invalidateQueries({ queryKey: [KEY] })
      onClose()
    },
  })
  return (
    <Confirm
      opened={item !== undefined}
      title={TEXT.cancelTitle}
      consequence={TEXT.cancelWhy(countOf(item?.recipients ?? 0, 'recipient'))}
      action={TEXT.cancelAction}
      busy={cancelling.isPending}
      failure={cancelling.error?.message}
      onConfirm={() => item && cancelling.mutate(item.message_id)}
      onClose={() => {
        cancelling.reset()
        onClose()
      }}
    />
  )
}
