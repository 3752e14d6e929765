/** The captured inbox: list and open message side by side. Calls /sendwright/v1/inbox. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Outlet, useParams } from '@tanstack/react-router'
import { inboxQuery } from './inbox-queries.ts'
import { filtersOf } from './inbox-search.ts'
import { InboxToolbar } from './inbox-toolbar.tsx'
import { useLiveInbox } from './live-inbox.ts'
import { MessageList } from './message-list.tsx'
import './inbox.css'

const route = getRouteApi('/captured')

/** List and message side by side; on a narrow screen one at a time (the style sheet decides). */
export function InboxPage() {
  const search = route.useSearch()
  const filters = filtersOf(search)
  const openId = useParams({ strict: false }).id
  const live = useLiveInbox(filters)
  const list = useInfiniteQuery(inboxQuery(filters))
  return (
    <main className={openId === undefined ? 'inbox' : 'inbox inbox-reading'} id="main" tabIndex={-1}>
      <section className="inbox-list-pane" aria-label="Captured messages">
        <InboxToolbar live={live} />
        <MessageList list={list} openId={openId} />
      </section>
      <section className="inbox-message-pane" aria-label="Message">
        <Outlet />
      </section>
    </main>
  )
}
