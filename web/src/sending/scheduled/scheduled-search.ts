import { searchText } from '../../shared/page/search.ts'

/** Search parameters of the page of scheduled mail. */
export interface ScheduledSearch {
  domain?: string
  /** Bare address of a recipient. */
  recipient?: string
  tag?: string
  /** Query string of the page of the list. */
  at?: string
}

export function readScheduledSearch(search: Record<string, unknown>): ScheduledSearch {
  const read: ScheduledSearch = {}
  for (const name of ['domain', 'recipient', 'tag', 'at'] as const) {
    const value = searchText(search[name])
    if (value !== undefined) read[name] = value
  }
  return read
}
