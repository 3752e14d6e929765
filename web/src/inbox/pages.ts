/**
 * Changes to the loaded pages of a newest-first list. The service's cursors ("older than this item") join the
 * pages, so new items can be added in front without loading anything again.
 */
import type { Page } from '../api.ts'

interface Identified {
  id: string
}

/** The query library's form of an endless list. */
export interface Pages<Item> {
  pages: Page<Item>[]
  pageParams: unknown[]
}

/**
 * Maximum number of rows in the page. Each has about ten elements; a browser handles some ten thousand of
 * them easily, and a load test must not end in a frozen tab.
 */
export const ROWS_MAX = 3000

/**
 * Each item once: the page after an empty list is the list again, and repeats the items that arrived meanwhile.
 */
export function itemsOf<Item extends Identified>(list: Pages<Item> | undefined): Item[] {
  const seen = new Set<string>()
  return (list?.pages ?? [])
    .flatMap((page) => page.items)
    .filter((item) => !seen.has(item.id) && seen.add(item.id))
}

/** Adds `arrivals` (oldest first) in front; `undefined` if the list would exceed ROWS_MAX: start over. */
export function withArrivals<Item extends Identified>(
  list: Pages<Item>,
  arrivals: readonly Item[],
): Pages<Item> | undefined {
  const known = new Set(itemsOf(list).map((item) => item.id))
  const fresh = arrivals.filter((item) => !known.has(item.id) && known.add(item.id)).reverse()
  if (known.size > ROWS_MAX) return undefined
  const [first, ...rest] = list.pages
  if (first === undefined) return undefined
  return { ...list, pages: [{ ...first, items: [...fresh, ...first.items] }, ...rest] }
}

/**
 * Replaces the top of the list with a newly read first page, whatever was added or removed there, and keeps the
 * pages below it. If there is a gap between the two, only the new page is kept.
 */
export function withFirstPage<Item extends Identified>(
  list: Pages<Item>,
  fresh: Page<Item>,
  firstParam: string,
): Pages<Item> {
  const alone = { pages: [fresh], pageParams: [firstParam] }
  const last = fresh.items.at(-1)
  if (last === undefined) return alone
  const meeting = list.pages.findIndex((page) => page.items.some((item) => item.id === last.id))
  const page = list.pages[meeting]
  if (page === undefined) return alone
  const below = page.items.slice(page.items.findIndex((item) => item.id === last.id) + 1)
  return {
    pages: [{ items: [...fresh.items, ...below], paging: page.paging }, ...list.pages.slice(meeting + 1)],
    pageParams: [firstParam, ...list.pageParams.slice(meeting + 1)],
  }
}

export const without = <Item extends Identified>(list: Pages<Item>, id: string): Pages<Item> => ({
  ...list,
  pages: list.pages.map((page) => ({ ...page, items: page.items.filter((item) => item.id !== id) })),
})
