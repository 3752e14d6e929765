import { infiniteQueryOptions } from '@tanstack/react-query'
import { type InboxFilters, inboxPath, listInbox, pathOfLink } from '../api.ts'
import { valueOrThrow } from '../queries.ts'

export const INBOX_KEY = 'inbox'

/** Pages of the filtered list, newest first. An empty page is the end (the last full one still has a `next`). */
export const inboxQuery = (filters: InboxFilters) =>
  infiniteQueryOptions({
    queryKey: [INBOX_KEY, filters],
    queryFn: async ({ pageParam, signal }) => valueOrThrow(await listInbox(pageParam, signal)),
    initialPageParam: inboxPath(filters),
    getNextPageParam: (page) => (page.items.length > 0 ? pathOfLink(page.paging.next) : undefined),
    // The stream of arrivals keeps it up to date; reloading every page would be wasted work.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
