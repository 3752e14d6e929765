/**
 * Keeps the list up to date without a reload:
 *
 * 1. The stream of arrivals is open while the page is visible (browsers allow six connections per host to
 *    plain HTTP; hidden tabs would use them up).
 * 2. Arrivals are gathered for a moment, then put on top of the list in one step. With filters in force
 *    the service decides what matches: the first page is read again instead.
 * 3. When the stream opens or breaks, something may have been missed: the first page is read again.
 * 4. While it is broken the first page is read every few seconds, and each success tries the stream again.
 *    We reconnect ourselves, after an ordinary request has proved that the session still holds: the
 *    browser's own reconnecting cannot be told a 401 from a lost network.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import {
  type ApiFailure,
  INBOX_STREAM_PATH,
  type InboxFilters,
  type InboxItem,
  inboxPath,
  listInbox,
} from '../api.ts'
import { systemQuery } from '../queries.ts'
import { inboxQuery } from './inbox-queries.ts'
import { withArrivals, withFirstPage } from './pages.ts'

export type LiveState = 'connecting' | 'live' | 'polling'

const GATHER_MS = 150
const POLL_MS = 5_000
/** A proxy that buffers holds even the stream's first byte back; then polling has to do. */
const OPEN_WAIT_MS = 8_000
/** More than this in one gathering and reading one page is cheaper than keeping them. */
const GATHERED_MAX = 500

export function useLiveInbox(filters: InboxFilters): LiveState {
  const queries = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  const filterKey = JSON.stringify(filters)
  useEffect(() => {
    const live = watchInbox(queries, JSON.parse(filterKey) as InboxFilters, setState)
    return () => live.stop()
  }, [queries, filterKey])
  return state
}

function watchInbox(queries: QueryClient, filters: InboxFilters, onState: (state: LiveState) => void) {
  const stopped = new AbortController()
  const filtered = Object.keys(filters).length > 0
  let stream: EventSource | undefined
  let gathered: InboxItem[] = []
  let gathering: number | undefined
  let polling: number | undefined
  let opening: number | undefined

  const flush = () => {
    gathering = undefined
    const arrivals = gathered
    gathered = []
    if (filtered || arrivals.length >= GATHERED_MAX || !putOnTop(queries, filters, arrivals)) void catchUp()
  }
  const onArrival = (event: MessageEvent<string>) => {
    const item = readArrival(event.data)
    if (item !== undefined && gathered.length < GATHERED_MAX) gathered.push(item)
    gathering ??= window.setTimeout(flush, GATHER_MS)
  }
  const catchUp = () => readTop(queries, filters, stopped.signal)

  const open = () => {
    if (document.hidden || stream !== undefined || stopped.signal.aborted) return
    stream = new EventSource(INBOX_STREAM_PATH)
    stream.addEventListener('arrival', onArrival)
    stream.onopen = () => {
      window.clearTimeout(opening)
      onState('live')
      void catchUp()
    }
    stream.onerror = lose
    opening = window.setTimeout(lose, OPEN_WAIT_MS)
  }
  const lose = () => {
    close()
    onState('polling')
    void poll()
  }
  const close = () => {
    window.clearTimeout(opening)
    stream?.close()
    stream = undefined
  }
  const poll = async () => {
    const failure = await catchUp()
    if (stopped.signal.aborted || stream !== undefined) return
    if (failure?.status === 401) await queries.invalidateQueries({ queryKey: systemQuery.queryKey })
    window.clearTimeout(polling)
    polling = window.setTimeout(failure === undefined ? open : () => void poll(), POLL_MS)
  }
  const onVisibility = () => (document.hidden ? close() : open())

  document.addEventListener('visibilitychange', onVisibility)
  open()
  return {
    stop() {
      stopped.abort()
      document.removeEventListener('visibilitychange', onVisibility)
      window.clearTimeout(gathering)
      window.clearTimeout(polling)
      close()
    },
  }
}

/** False when the list is not loaded or would grow too long: the caller reads the first page instead. */
function putOnTop(queries: QueryClient, filters: InboxFilters, arrivals: readonly InboxItem[]): boolean {
  const { queryKey } = inboxQuery(filters)
  const list = queries.getQueryData(queryKey)
  const longer = list && withArrivals(list, arrivals)
  if (longer === undefined) return false
  queries.setQueryData(queryKey, longer)
  return true
}

/** Reads the first page and lays it over the list; a list not loaded yet is left to its own query. */
async function readTop(
  queries: QueryClient,
  filters: InboxFilters,
  signal: AbortSignal,
): Promise<ApiFailure | undefined> {
  const { queryKey } = inboxQuery(filters)
  const path = inboxPath(filters)
  const answer = await listInbox(path, signal)
  if (!answer.ok) return answer.failure
  queries.setQueryData(queryKey, (list) => list && withFirstPage(list, answer.value, path))
  return undefined
}

function readArrival(data: string): InboxItem | undefined {
  try {
    return JSON.parse(data) as InboxItem
  } catch {
    return undefined // the flush that follows finds no items and changes nothing
  }
}
