/**
 * Lists in pages. Two styles: a pivot (`page=next&address=A`: the page after the item A) and an opaque
 * token. The four links are always present, absolute and on the configured base address: clients parse
 * each of them, and follow `next` until a page is empty.
 */

import { type Fields, list, named, type ObjectShape, type Shape, text } from '../../../base/shape.ts'
import { invalidFormat } from '../../../base/values.ts'
import { type InputOf, parsedParam, textParam } from './inputs.ts'
import type { Params } from './params.ts'

export interface Paging {
  previous: string
  first: string
  next: string
  last: string
}

export type PageName = 'first' | 'last' | 'next' | 'previous'

const PAGE_NAMES: Readonly<Record<string, PageName>> = {
  first: 'first',
  last: 'last',
  next: 'next',
  previous: 'previous',
  prev: 'previous',
}

/** The `page` parameter: absent means `first`, `prev` means `previous`.
 *  @throws BadRequest for any other name. */
export function pageName(params: Params, name = 'page'): PageName {
  const text = params.text(name)
  if (text === undefined) return 'first'
  const page = Object.hasOwn(PAGE_NAMES, text) ? PAGE_NAMES[text] : undefined
  if (page === undefined) throw invalidFormat(name, text)
  return page
}

/** Parameters of a list, newest first, whose pages are next to the item with an id. */
export const ID_PAGE_PARAMS = {
  page: parsedParam('`first`, `next`, `previous` (or `prev`), `last`', pageName),
  id: textParam('The page is next to the item with this id'),
}

export type IdPage = { kind: 'first' } | { kind: 'last' } | { kind: 'next' | 'previous'; pivot: string }

/** `next` and `previous` without an id are the first page. */
export function idPage({ page: kind, id }: InputOf<typeof ID_PAGE_PARAMS>): IdPage {
  if (kind === 'next' || kind === 'previous') return id ? { kind, pivot: id } : { kind: 'first' }
  return { kind }
}

interface PivotPage {
  /** The configured public address, without a final slash. */
  baseUrl: string
  /** Path of the list, with each part percent-encoded already. */
  path: string
  /** Name of the pivot parameter: `address`, `tag`, `p`. */
  pivotName: string
  /** Values of the first and last item of this page; undefined on an empty page. */
  firstItem?: string | undefined
  lastItem?: string | undefined
  /** Pivot of the request, repeated on an empty page. */
  pivot?: string | undefined
  /** Parameters carried by every link, in this order; undefined ones are left out. */
  carry: Readonly<Record<string, string | number | undefined>>
  /** `page=first` in the first link (mailing lists) instead of no `page` (suppressions). */
  namesFirst?: boolean
}

/** Links of the pivot style. An empty page repeats the request's pivot; without one all four are `first`. */
export function pivotPaging(page: PivotPage): Paging {
  const link = (name: PageName, pivot?: string) => {
    const named = name !== 'first' || page.namesFirst === true
    const head: Array<[string, string | number | undefined]> = named ? [['page', name]] : []
    if (pivot !== undefined) head.push([page.pivotName, pivot])
    return pageUrl(page.baseUrl, page.path, [...head, ...Object.entries(page.carry)])
  }
  const first = link('first')
  const before = page.firstItem ?? page.pivot
  const after = page.lastItem ?? page.pivot
  if (before === undefined || after === undefined) return { previous: first, first, next: first, last: first }
  return { previous: link('previous', before), first, next: link('next', after), last: link('last') }
}

interface TokenPage {
  baseUrl: string
  path: string
  /** Where a token goes: the last part of the path (events) or a query parameter (`page`, `token`). */
  place: 'path' | { query: string }
  tokens: Readonly<Record<PageName, string>>
  carry?: Readonly<Record<string, string | number | undefined>>
}

/** Links of the token style. Tokens are opaque here; they are made of `A-Z a-z 0-9 - _ =`. */
export function tokenPaging(page: TokenPage): Paging {
  const carry = Object.entries(page.carry ?? {})
  const link = (name: PageName) => {
    const token = page.tokens[name]
    if (page.place === 'path') {
      return pageUrl(page.baseUrl, `${page.path}/${encodeURIComponent(token)}`, carry)
    }
    return pageUrl(page.baseUrl, page.path, [[page.place.query, token], ...carry])
  }
  return { previous: link('previous'), first: link('first'), next: link('next'), last: link('last') }
}

/** An absolute URL with a query in the given order; an empty value stays (`term=`), undefined goes. */
export function pageUrl(
  baseUrl: string,
  path: string,
  query: ReadonlyArray<readonly [string, string | number | undefined]>,
): string {
  const pairs = query
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`)
  return `${baseUrl}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
}

const link = (which: string) => text(`Address of the ${which} page`, { only: { format: 'uri' } })

/** The four links of a page. */
export const PAGING = named('Paging', 'Links to the pages around this one', {
  previous: link('previous'),
  first: link('first'),
  next: link('next'),
  last: link('last'),
})

/** `{ items, paging }`, and further members of an area. */
export const pageOf = <T, const F extends Fields>(
  name: string,
  description: string,
  item: Shape<T>,
  more: F = {} as F,
): ObjectShape<{ items: Shape<readonly T[]>; paging: typeof PAGING } & F> =>
  named(name, description, { items: list('The items of this page', item), paging: PAGING, ...more })
