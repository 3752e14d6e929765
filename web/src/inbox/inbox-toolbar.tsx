import { ActionIcon, CloseButton, TextInput } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { deleteAllMessages, type InboxFilters } from '../api.ts'
import { Confirm } from '../base/confirm.tsx'
import { useTyped } from '../base/use-typed.ts'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { DomainChoice } from '../shared/forms/domain-choice.tsx'
import { useSending } from '../shared/forms/use-sending.ts'
import { INBOX_KEY } from './inbox-queries.ts'
import { FILTER_FIELDS, readInboxSearch, withFilter } from './inbox-search.ts'
import type { LiveState } from './live-inbox.ts'

const route = getRouteApi('/captured')

const LIVE_WORDS: Record<LiveState, { label: string; title: string }> = {
  connecting: { label: 'Connecting', title: 'Connecting to the stream of arrivals' },
  live: { label: 'Live', title: 'New mail shows as it arrives' },
  polling: {
    label: 'Every 5 s',
    title: 'The stream of arrivals is interrupted: looking for new mail every 5 seconds',
  },
}

export function InboxToolbar({ live }: { live: LiveState }) {
  const search = route.useSearch()
  const inUse = FILTER_FIELDS.filter((field) => search[field] !== undefined).length
  const [expanded, setExpanded] = useState(inUse > 0)
  const searchBox = useRef<HTMLInputElement>(null)
  useHotkeys([['/', () => searchBox.current?.focus()]])
  return (
    <div className="inbox-toolbar">
      <div className="inbox-heading">
        <h1>Inbox</h1>
        <span className="live" data-state={live} title={LIVE_WORDS[live].title} role="status">
          {LIVE_WORDS[live].label}
        </span>
        <span className="grow" />
        <ActionIcon
          variant={expanded || inUse > 0 ? 'light' : 'subtle'}
          color={inUse > 0 ? 'petrol' : 'gray'}
          size="lg"
          aria-expanded={expanded}
          aria-label={inUse > 0 ? `Filters, ${inUse} in use` : 'Filters'}
          title="Filters"
          onClick={() => setExpanded(!expanded)}
        >
          <Icon name="filter" />
        </ActionIcon>
        <DeleteAllButton />
      </div>
      <FilterInput field="q" label="Search" placeholder="Search mail" inputRef={searchBox} />
      {expanded && (
        <div className="inbox-filters">
          <FilterInput field="to" label="To" placeholder="To" />
          <FilterInput field="from" label="From" placeholder="From" />
          <FilterInput field="subject" label="Subject" placeholder="Subject" />
          <FilterInput field="body" label="Text" placeholder="Text or file" />
          <FilterInput field="tag" label="Tag" placeholder="Tag" />
          <DomainFilter />
        </div>
      )}
    </div>
  )
}

/** An input whose value is in the URL, so that a search can be bookmarked, shared and undone with the back button. */
function FilterInput(props: {
  field: keyof InboxFilters
  label: string
  placeholder: string
  inputRef?: React.Ref<HTMLInputElement>
}) {
  const { field } = props
  const applied = route.useSearch()[field] ?? ''
  const navigate = useNavigate()
  const [typed, change] = useTyped(applied, (value) => {
    void navigate({
      to: '.',
      replace: true,
      search: (search) => withFilter(readInboxSearch(search), field, value),
    })
  })
  return (
    <TextInput
      type="search"
      size="sm"
      aria-label={props.label}
      placeholder={props.placeholder}
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
      {...(props.inputRef && { ref: props.inputRef })}
      leftSection={field === 'q' ? <Icon name="search" size={16} /> : undefined}
      rightSection={
        typed !== '' && (
          <CloseButton size="sm" aria-label={`Clear ${props.label}`} onClick={() => change('')} />
        )
      }
    />
  )
}

function DomainFilter() {
  const { domain = '' } = route.useSearch()
  const navigate = useNavigate()
  return (
    <DomainChoice
      none="All domains"
      value={domain}
      onChange={(value) =>
        void navigate({
          to: '.',
          replace: true,
          search: (search) => withFilter(readInboxSearch(search), 'domain', value),
        })
      }
    />
  )
}

function DeleteAllButton() {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteAllMessages()),
    async onSuccess() {
      setAsking(false)
      await navigate({ to: '/', search: {} })
      await queries.resetQueries({ queryKey: [INBOX_KEY] })
    },
  })
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label="Delete all messages"
        title="Delete all messages"
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
      </ActionIcon>
      <Confirm
        opened={asking}
        title="Delete all captured messages?"
        consequence="Every message in the inbox is removed, also those that the filters hide. This cannot be undone."
        action="Delete all"
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => setAsking(false)}
      />
    </>
  )
}
