import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { isOn, isTyping, SEQUENCE_MS } from '../../shared/shortcuts.tsx'
import { inboxQuery } from '../inbox-queries.ts'
import { filtersOf } from '../inbox-search.ts'
import { itemsOf } from '../pages.ts'
import { markUnread } from '../read-marks.ts'

const route = getRouteApi('/captured/inbox/$id')

/** Keys of the open message: n and p open its neighbours, u marks it as unread, d asks to delete it. */
export function useMessageKeys(id: string, askToDelete: () => void) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const filters = filtersOf(route.useSearch())
  const act = (key: string) => {
    const search = (kept: object) => kept
    if (key === 'd') askToDelete()
    else if (key === 'u') void navigate({ to: '/', search }).then(() => markUnread(id))
    else {
      const items = itemsOf(queries.getQueryData(inboxQuery(filters).queryKey))
      const place = items.findIndex((item) => item.id === id)
      const to = place < 0 ? undefined : items[place + (key === 'n' ? 1 : -1)]
      if (to !== undefined) void navigate({ to: '/inbox/$id', params: { id: to.id }, search })
    }
  }
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    let goAt = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent) => {
      // The letter after a g names a section (shared/shortcuts.tsx).
      const isGoing = event.timeStamp - goAt < SEQUENCE_MS
      goAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
      if (isGoing) return
      if (!['n', 'p', 'u', 'd'].includes(event.key) || !isOn() || isTyping(event.target)) return
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (document.querySelector('[role="dialog"]') !== null) return
      event.preventDefault()
      latest.current(event.key)
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
}
