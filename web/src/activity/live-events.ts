/**
 * Follows the stream of events for a search, as the inbox follows its own (inbox/live-inbox.ts):
 *
 * 1. The stream is open while the page is visible: one per tab, none for a hidden one.
 * 2. When it opens, events may have been missed: `onOpen` reads the list again.
 * 3. When it breaks, it is tried again after some seconds; an ordinary request finds out whether the session is over.
 */
import { useEffect, useEffectEvent, useState } from 'react'
import { actingFor } from '../acting.ts'
import type { LogItem, LogQuery } from './activity-api.ts'

/** `off`: nothing follows, or the stream cannot be had. */
export type LiveState = 'off' | 'live'

export interface LiveEvents {
  items: LogItem[]
  /** More has happened than can be read. */
  skipped: boolean
}

interface Listener {
  onOpen: () => void
  onEvents: (events: LiveEvents) => void
}

const STREAM_PATH = '/sendwright/v1/events/stream'
const RETRY_MS = 10_000

/** An event stream of a browser has no headers, so it would be of the session's own account. */
export const hasStream = actingFor === undefined

/** `query`: what to follow; undefined: nothing. */
export function useLiveEvents(query: LogQuery | undefined, listener: Listener): LiveState {
  const [state, setState] = useState<LiveState>('off')
  const path = query && hasStream ? streamPath(query) : undefined
  const onOpen = useEffectEvent(listener.onOpen)
  const onEvents = useEffectEvent(listener.onEvents)
  useEffect(() => {
    if (path === undefined) return
    return follow(path, { setState, onOpen: () => onOpen(), onEvents: (events) => onEvents(events) })
  }, [path])
  return state
}

export function streamPath({ events, metric_events, filter }: LogQuery): string {
  const search = new URLSearchParams()
  for (const name of events ?? []) search.append('events', name)
  for (const name of metric_events ?? []) search.append('metric_events', name)
  if (filter !== undefined) search.set('filter', JSON.stringify(filter))
  return search.size === 0 ? STREAM_PATH : `${STREAM_PATH}?${search}`
}

/** Returns what ends it. */
function follow(path: string, parts: Listener & { setState: (state: LiveState) => void }): () => void {
  const { setState, onOpen, onEvents } = parts
  let stream: EventSource | undefined
  let retry: number | undefined
  const close = () => {
    window.clearTimeout(retry)
    stream?.close()
    stream = undefined
    setState('off')
  }
  const open = () => {
    if (document.hidden || stream !== undefined) return
    stream = new EventSource(path)
    stream.onopen = () => {
      setState('live')
      onOpen()
    }
    stream.onerror = () => {
      close()
      retry = window.setTimeout(open, RETRY_MS)
    }
    stream.addEventListener('events', (event: MessageEvent<string>) => onEvents(JSON.parse(event.data)))
  }
  const onVisibility = () => (document.hidden ? close() : open())
  document.addEventListener('visibilitychange', onVisibility)
  open()
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    close()
  }
}
