/**
 * Changes the loaded list step by step, because older data must not replace newer data:
 *
 * 1. Arrivals are batched for a moment, then added on top in one step. With active filters the service
 *    decides what matches: the first page is read instead.
 * 2. Messages that arrive while the first page is read are added on top afterwards.
 * 3. A request for the first page while it is read causes another read: the pending response may be too old.
 * 4. The list's own query (the first load, older pages while scrolling) replaces the whole list when it ends:
 *    every step waits for that.
 */
import type { QueryClient } from '@tanstack/react-query'
import { type ApiFailure, type InboxFilters, type InboxItem, inboxPath, listInbox } from '../api.ts'
import { inboxQuery } from './inbox-queries.ts'
import { withArrivals, withFirstPage, without } from './pages.ts'

const GATHER_MS = 150
/** With more than this in one batch, reading one page is cheaper than keeping them. */
const GATHERED_MAX = 500

export interface ListKeeper {
  /** Merges the first page into the list; resolves the failure of its last read. */
  readTop(): Promise<ApiFailure | undefined>
  arrived(item: InboxItem): void
  stop(): void
}

/** `read` is replaced in tests. */
export function keepList(queries: QueryClient, filters: InboxFilters, read = listInbox): ListKeeper {
  const stopped = new AbortController()
  const { queryKey } = inboxQuery(filters)
  const path = inboxPath(filters)
  const filtered = Object.keys(filters).length > 0
  let topWanted = false
  let gathered: InboxItem[] = []
  let gathering: ReturnType<typeof setTimeout> | undefined
  let running: Promise<ApiFailure | undefined> | undefined

  const update = () => {
    running ??= run()
    return running
  }
  async function run() {
    let failure: ApiFailure | undefined
    do {
      await listAtRest(queries, filters)
      const placed = putOnTop(takeGathered())
      if (topWanted || !placed) failure = await layTop()
    } while (!stopped.signal.aborted && (topWanted || gathered.length > 0))
    running = undefined // in the same turn as the condition: later requests start again
    return failure
  }
  const takeGathered = () => {
    clearTimeout(gathering)
    gathering = undefined
    const taken = gathered
    gathered = []
    return taken
  }
  /** False if the first page has to be read instead: filters, no list loaded, or one that would become too long. */
  const putOnTop = (arrivals: readonly InboxItem[]) => {
    const list = queries.getQueryData(queryKey)
    if (filtered || list === undefined || arrivals.length >= GATHERED_MAX) return false
    const longer = withArrivals(list, arrivals)
    if (longer === undefined) return false
    queries.setQueryData(queryKey, longer)
    return true
  }
  /** A list that changed since the page was requested (a deletion, an older page) is left for the next turn. */
  const layTop = async () => {
    topWanted = false
    const before = queries.getQueryData(queryKey)
    const answer = await read(path, stopped.signal)
    if (!answer.ok) return answer.failure
    if (queries.getQueryData(queryKey) !== before || isBusy(queries, filters)) topWanted = true
    else queries.setQueryData(queryKey, (list) => list && withFirstPage(list, answer.value, path))
    return undefined
  }

  return {
    readTop() {
      topWanted = true
      return update()
    },
    arrived(item) {
      if (gathered.length < GATHERED_MAX) gathered.push(item)
      gathering ??= setTimeout(update, GATHER_MS)
    },
    stop() {
      stopped.abort()
      clearTimeout(gathering)
    },
  }
}

/** Removes a deleted message from the list, and from the result of a pending read. */
export async function removeFromList(queries: QueryClient, filters: InboxFilters, id: string): Promise<void> {
  const { queryKey } = inboxQuery(filters)
  const remove = () => queries.setQueryData(queryKey, (list) => list && without(list, id))
  remove()
  if (!isBusy(queries, filters)) return
  await listAtRest(queries, filters)
  remove()
}

const isBusy = (queries: QueryClient, filters: InboxFilters) =>
  queries.isFetching({ queryKey: inboxQuery(filters).queryKey, exact: true }) > 0

async function listAtRest(queries: QueryClient, filters: InboxFilters): Promise<void> {
  while (isBusy(queries, filters))
    await new Promise<void>((resolve) => {
      const leave = queries.getQueryCache().subscribe(() => {
        leave()
        resolve()
      })
    })
}
