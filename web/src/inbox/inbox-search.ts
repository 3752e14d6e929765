import type { InboxFilters } from '../api.ts'

export const MESSAGE_TABS = [
  'html',
  'text',
  'amp',
  'links',
  'checks',
  'headers',
  'source',
  'attachments',
  'events',
] as const

export type MessageTab = (typeof MESSAGE_TABS)[number]

/** Search parameters of an inbox page's URL: filters, and the open tab. */
export interface InboxSearch extends InboxFilters {
  tab?: MessageTab
}

export const FILTER_FIELDS = ['to', 'from', 'subject', 'body', 'tag', 'domain'] as const

/** Reads the query string; anything unknown or empty is dropped. */
export function readInboxSearch(search: Record<string, unknown>): InboxSearch {
  const read: InboxSearch = {}
  for (const field of ['q', ...FILTER_FIELDS] as const) {
    const value = search[field]
    if (typeof value === 'string' && value !== '') read[field] = value
  }
  const tab = MESSAGE_TABS.find((name) => name === search['tab'])
  if (tab !== undefined) read.tab = tab
  return read
}

export function filtersOf({ tab: _, ...filters }: InboxSearch): InboxFilters {
  return filters
}

/** `search` with one filter set, or removed if `value` is empty. */
export function withFilter(search: InboxSearch, field: keyof InboxFilters, value: string): InboxSearch {
  const { [field]: _, ...rest } = search
  return value === '' ? rest : { ...rest, [field]: value }
}

export const isFiltered = (search: InboxSearch) => Object.keys(filtersOf(search)).length > 0
