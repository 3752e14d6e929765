import { Alert, Button, Loader, Skeleton, Text } from '@mantine/core'
import type { UseInfiniteQueryResult } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { memo, useEffect, useRef } from 'react'
import type { InboxItem } from '../api.ts'
import { displayName, exactTime, formatBytes, shortAge } from '../base/format.ts'
import { useNow } from '../base/use-now.ts'
import { EmptyInbox } from './empty-inbox.tsx'
import { isFiltered } from './inbox-search.ts'
import { itemsOf, type Pages } from './pages.ts'
import { useReadMarks } from './read-marks.ts'

const route = getRouteApi('/captured')
const TAGS_SHOWN_MAX = 3 // a row has space for about three words

export function MessageList(props: {
  list: UseInfiniteQueryResult<Pages<InboxItem>>
  openId: string | undefined
}) {
  const { list, openId } = props
  const search = route.useSearch()
  const marks = useReadMarks()
  const now = useNow()
  const rows = useRef<HTMLUListElement>(null)
  useArrowKeys(rows)
  const items = itemsOf(list.data)

  if (list.isPending) return <ListSkeleton />
  if (list.data === undefined) return <ListFailure list={list} />
  if (items.length === 0) return isFiltered(search) ? <NothingMatches /> : <EmptyInbox />
  return (
    <div className="inbox-scroll">
      <ul className="inbox-rows" ref={rows}>
        {items.map((item) => (
          <MessageRow
            key={item.id}
            item={item}
            read={marks.has(item.id)}
            open={item.id === openId}
            age={shortAge(Date.parse(item.received_at), now)}
          />
        ))}
      </ul>
      <MoreRows list={list} />
    </div>
  )
}

const keepSearch = (search: object) => search

const MessageRow = memo(function MessageRow(props: {
  item: InboxItem
  read: boolean
  open: boolean
  age: string
}) {
  const { item, read, open, age } = props
  const hidden = item.tags.length - TAGS_SHOWN_MAX
  return (
    <li>
      <Link
        to="/inbox/$id"
        params={{ id: item.id }}
        search={keepSearch}
        className="inbox-row"
        data-unread={!read || undefined}
        aria-current={open ? 'true' : undefined}
      >
        <span className="inbox-row-line">
          <bdi className="inbox-row-from ellipsis">{displayName(item.from) || '(no sender)'}</bdi>
          <time dateTime={item.received_at} title={exactTime(Date.parse(item.received_at))}>
            {age}
          </time>
        </span>
        <span className="inbox-row-subject ellipsis" dir="auto">
          {item.subject || '(no subject)'}
        </span>
        <span className="inbox-row-line inbox-row-small">
          <span className="ellipsis">
            to <bdi>{item.envelope.to.join(', ') || displayName(item.to)}</bdi>
          </span>
          {item.tags.slice(0, TAGS_SHOWN_MAX).map((tag) => (
            <bdi className="tag ellipsis" key={tag}>
              {tag}
            </bdi>
          ))}
          {hidden > 0 && <span title={item.tags.slice(TAGS_SHOWN_MAX).join(', ')}>+{hidden}</span>}
          <span className="grow" />
          <span className="inbox-row-size">{formatBytes(item.size)}</span>
        </span>
      </Link>
    </li>
  )
})

/** Up and down (or k and j) move through the rows from anywhere except an input; Enter opens, as on any link. */
function useArrowKeys(rows: React.RefObject<HTMLUListElement | null>) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = STEPS[event.key]
      if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return
      if (
        event.target instanceof Element &&
        event.target.closest(event.key.length === 1 ? OWN_LETTERS : OWN_ARROWS)
      )
        return
      const links = [...(rows.current?.querySelectorAll<HTMLElement>('a.inbox-row') ?? [])]
      if (!links[0]?.checkVisibility()) return // none, or on a narrow screen a message covers them
      const active = document.activeElement
      const focused = active instanceof HTMLElement ? links.indexOf(active) : -1
      const from = focused >= 0 ? focused : links.findIndex((link) => link.ariaCurrent === 'true')
      const to = from < 0 ? 0 : Math.min(Math.max(from + step, 0), links.length - 1)
      event.preventDefault()
      links[to]?.focus()
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [rows])
}

const STEPS: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }
/** Elements that letters are typed into. */
const OWN_LETTERS = 'input, textarea, select, [contenteditable], [role=dialog]'
/** Elements that use the arrow keys themselves, to move or to scroll. */
const OWN_ARROWS = 'input, textarea, select, [contenteditable], [role=tab], [role=dialog], .message'

/** Loads the next page near the end of the list, whether reached by wheel, touch or arrow key. */
function MoreRows({ list }: { list: UseInfiniteQueryResult<Pages<InboxItem>> }) {
  const end = useRef<HTMLDivElement>(null)
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = list
  useEffect(() => {
    if (end.current === null || !hasNextPage || isFetchingNextPage || isFetchNextPageError) return
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && void fetchNextPage(),
      { rootMargin: '600px' },
    )
    observer.observe(end.current)
    return () => observer.disconnect()
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage])
  return (
    <div className="inbox-end" ref={end}>
      {isFetchingNextPage && <Loader size="sm" aria-label="Loading older messages" />}
      {isFetchNextPageError && !isFetchingNextPage && (
        <Button variant="subtle" size="xs" onClick={() => void fetchNextPage()}>
          Loading older messages failed: try again
        </Button>
      )}
    </div>
  )
}

function NothingMatches() {
  return (
    <div className="notice">
      <Text fw={600}>Nothing matches</Text>
      <Text size="sm" c="dimmed" mt={4}>
        No captured message fits the search and filters.
      </Text>
      <Link to="." search={{}} className="button-link">
        Clear search and filters
      </Link>
    </div>
  )
}

function ListFailure({ list }: { list: UseInfiniteQueryResult<Pages<InboxItem>> }) {
  return (
    <Alert m="md" color="red" title="The inbox cannot be read">
      <Text size="sm" className="breakable">
        {list.error?.message}
      </Text>
      <Button mt="sm" size="xs" variant="default" onClick={() => void list.refetch()}>
        Try again
      </Button>
    </Alert>
  )
}

function ListSkeleton() {
  return (
    <div className="inbox-skeleton" role="status" aria-label="Loading messages">
      {[72, 55, 80, 64, 48].map((width) => (
        <div key={width}>
          <Skeleton height={12} width="40%" />
          <Skeleton height={12} width={`${width}%`} mt={8} />
        </div>
      ))}
    </div>
  )
}
