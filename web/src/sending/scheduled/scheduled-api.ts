/** The operations on scheduled mail (own-operations.md section 2). */
import { getJson, sendForm, sendJson } from '../../api.ts'
import { placePath } from '../../shared/paging.ts'
import type { ScheduledSearch } from './scheduled-search.ts'

export interface ScheduledItem {
  message_id: string
  storage_key: string
  domain: string
  /** RFC 3339. */
  deliverytime: string
  from: string
  to: string
  subject: string
  tags: string[]
  recipients: number
}

export interface ScheduledPage {
  items: ScheduledItem[]
  paging: { first: string; next: string }
}

const PATH = '/sendwright/v1/scheduled'
export const SCHEDULED_PAGE_SIZE = 50 // about three screens

export function listScheduled({ at, ...filters }: ScheduledSearch, signal?: AbortSignal) {
  const query = new URLSearchParams({ limit: String(SCHEDULED_PAGE_SIZE), ...filters })
  return getJson<ScheduledPage>(placePath(`${PATH}?${query}`, at), signal)
}

const onePath = (id: string) => `${PATH}/${encodeURIComponent(id)}`

/** `timeMs`: Unix milliseconds. */
export const moveScheduled = (id: string, timeMs: number) =>
  sendForm<{ message: string }>('PATCH', onePath(id), { deliverytime: String(Math.round(timeMs / 1000)) })

export const cancelScheduled = (id: string) => sendJson<{ message: string }>('DELETE', onePath(id))
