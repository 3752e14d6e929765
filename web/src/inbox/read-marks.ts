import { useEffect, useSyncExternalStore } from 'react'

const STORAGE_KEY = 'sendwright.inbox.read'
/** Number of stored ids; 22 characters each, so the total is far below a browser's storage limit. */
const MARKS_MAX = 2000

/** Which messages this browser has opened. It only affects the display: the API has no such state. */
let marks: ReadonlySet<string> = load()
const listeners = new Set<() => void>()

function load(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '[]')
    return new Set(Array.isArray(stored) ? stored.filter((id) => typeof id === 'string') : [])
  } catch {
    return new Set() // storage is forbidden or contains something else: everything looks unread
  }
}

function markRead(id: string) {
  if (marks.has(id)) return
  store(new Set([...marks, id].slice(-MARKS_MAX)))
}

export function markUnread(id: string) {
  if (!marks.has(id)) return
  store(new Set([...marks].filter((each) => each !== id)))
}

function store(changed: ReadonlySet<string>) {
  marks = changed
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify([...marks]))
  } catch {
    // Storage is full or forbidden: the marks last as long as the page.
  }
  for (const listener of listeners) listener()
}

export function useReadMarks(): ReadonlySet<string> {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => marks,
  )
}

export function useMarkRead(id: string) {
  useEffect(() => markRead(id), [id])
}
