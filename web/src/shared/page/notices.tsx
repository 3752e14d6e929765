/**
 * Short notices at the edge of the window: what was done, with a way back where there is one. A failure is shown where
 * it happened instead, with the server's sentence.
 */
import { CloseButton } from '@mantine/core'
import { useEffect, useSyncExternalStore } from 'react'
import { TEXT } from '../text.ts'

export interface Notice {
  text: string
  /** Default `ok`. */
  tone?: 'ok' | 'bad'
  /** Takes back what was done. */
  undo?: () => void
}

interface ShownNotice extends Notice {
  id: number
}

const NOTICES_MAX = 3 // more would cover the page
const SHOWN_MS = 6_000
const SHOWN_WITH_UNDO_MS = 15_000 // long enough to read, decide and reach the button

let shown: readonly ShownNotice[] = []
let lastId = 0
const listeners = new Set<() => void>()

function change(next: readonly ShownNotice[]) {
  shown = next
  for (const listener of listeners) listener()
}

export function notify(notice: Notice): void {
  lastId += 1
  change([...shown, { ...notice, id: lastId }].slice(-NOTICES_MAX))
}

const dismiss = (id: number) => change(shown.filter((notice) => notice.id !== id))

export function Notices() {
  const notices = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => shown,
  )
  return (
    <div className="notices" role="status" aria-label={TEXT.notices}>
      {notices.map((notice) => (
        <NoticeCard key={notice.id} notice={notice} />
      ))}
    </div>
  )
}

function NoticeCard({ notice: { id, text, tone = 'ok', undo } }: { notice: ShownNotice }) {
  const lifetimeMs = undo === undefined ? SHOWN_MS : SHOWN_WITH_UNDO_MS
  useEffect(() => {
    const timer = window.setTimeout(() => dismiss(id), lifetimeMs)
    return () => window.clearTimeout(timer)
  }, [id, lifetimeMs])
  return (
    <div className="notice-card" data-tone={tone}>
      <span className="breakable">{text}</span>
      {undo && (
        <button
          type="button"
          className="notice-undo"
          onClick={() => {
            dismiss(id)
            undo()
          }}
        >
          {TEXT.undo}
        </button>
      )}
      <CloseButton size="sm" aria-label={TEXT.dismiss} onClick={() => dismiss(id)} />
    </div>
  )
}
