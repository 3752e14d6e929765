/**
 * Paging whose place is in the URL of the page. The API's lists have links to their neighbouring pages; the query string
 * of the link in use is the search parameter `at`, so that reload, back and a shared link show the same page.
 */
import { pathOfLink } from '../../api.ts'

/** Links of a list; missing or empty: there is no such page. */
export interface PageLinks {
  previous?: string | undefined
  next?: string | undefined
  first?: string | undefined
}

/** The path to request for the place `at`; `first`: path and query of the first page. */
export function placePath(first: string, at: string | undefined): string {
  if (at === undefined || at === '') return first
  const [path] = first.split('?', 1)
  return `${path}?${at}`
}

/** The value of `at` for a link of the API; undefined for the first page. */
export function placeOf(link: string): string | undefined {
  const query = pathOfLink(link).split('?', 2)[1]
  return query === undefined || query === '' ? undefined : query
}

/**
 * Links of a page of the API's lists, which have all links always: a short page is the last one, and only a page behind a
 * link has one before it.
 */
export const pageLinks = (
  page: { items: readonly unknown[]; paging: { previous: string; next: string } } | undefined,
  at: string | undefined,
  pageSize: number,
): PageLinks | undefined =>
  page && {
    ...(at !== undefined && { previous: page.paging.previous }),
    ...(page.items.length >= pageSize && { next: page.paging.next }),
  }

/** Links of a list with `skip` and `limit`, as query strings that `placeOf` understands. */
export function skipLinks(path: string, skip: number, limit: number, total: number): PageLinks {
  const link = (to: number) => {
    const [base, query = ''] = path.split('?', 2)
    const parameters = new URLSearchParams(query)
    parameters.set('limit', String(limit))
    parameters.set('skip', String(to))
    return `${base}?${parameters}`
  }
  return {
    ...(skip > 0 && { previous: link(Math.max(0, skip - limit)), first: link(0) }),
    ...(skip + limit < total && { next: link(skip + limit) }),
  }
}
