import { useEffect, useSyncExternalStore } from 'react'

const STORAGE_KEY = 'sendwright.inbox.read'
/** Ids remembered; 22 characters each, so the whole stays far below what a browser stores for a page. */
const MARKS_MAX = 2000

/** Which messages this browser has opened. It is a look, not a state of the message: the API knows nothing of it. */
let marks: ReadonlySet<string> = load()
const listeners = new Set<() => void>()

function load(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? '[]')
    return new Set(Array.isArray(stored) ? stored.filter((id) => typeof id === 'string') : [])
  } catch {
    return new Set() // storage is forbidden or holds something else: everything looks unread
  }
}

function markRead(id: string) {
  if (marks.has(id)) return
  marks = new Set([...marks, id].slice(-MARKS_MAX))
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
