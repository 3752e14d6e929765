/**
 * Keeps the list up to date without a reload:
 *
 * 1. The stream of arrivals is open while the page is visible (browsers allow six connections per host to
 *    plain HTTP; hidden tabs would use them up).
 * 2. When the stream opens or breaks, events may have been missed: the first page is read again.
 * 3. While it is broken the first page is read every few seconds, and each success tries the stream again.
 *    We reconnect ourselves, after an ordinary request has proved that the session is valid: the
 *    browser's own reconnection cannot distinguish a 401 from a lost network.
 */
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { actingFor } from '../acting.ts'
import { INBOX_STREAM_PATH, type InboxFilters, type InboxItem } from '../api.ts'
import { systemQuery } from '../queries.ts'
import { keepList } from './list-keeper.ts'

export type LiveState = 'connecting' | 'live' | 'polling'

const POLL_MS = 5_000
/** A buffering proxy holds back even the stream's first byte; then polling has to suffice. */
const OPEN_WAIT_MS = 8_000

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
  const list = keepList(queries, filters)
  let stopped = false
  let stream: EventSource | undefined
  let polling: number | undefined
  let opening: number | undefined

  const onArrival = (event: MessageEvent<string>) => {
    const item = readArrival(event.data)
    if (item === undefined) void list.readTop()
    else list.arrived(item)
  }
  const open = () => {
    if (document.hidden || stream !== undefined || stopped) return
    // An event stream of a browser has no headers, so it would be of the session's own account.
    if (actingFor !== undefined) return lose()
    stream = new EventSource(INBOX_STREAM_PATH)
    stream.addEventListener('arrival', onArrival)
    stream.onopen = () => {
      window.clearTimeout(opening)
      onState('live')
      void list.readTop()
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
    const failure = await list.readTop()
    if (stopped || stream !== undefined) return
    if (failure?.status === 401) await queries.invalidateQueries({ queryKey: systemQuery.queryKey })
    window.clearTimeout(polling)
    polling = window.setTimeout(failure === undefined ? open : () => void poll(), POLL_MS)
  }
  const onVisibility = () => (document.hidden ? close() : open())

  document.addEventListener('visibilitychange', onVisibility)
  open()
  return {
    stop() {
      stopped = true
      list.stop()
      document.removeEventListener('visibilitychange', onVisibility)
      window.clearTimeout(polling)
      close()
    },
  }
}

function readArrival(data: string): InboxItem | undefined {
  try {
    return JSON.parse(data) as InboxItem
  } catch {
    return undefined
  }
}
