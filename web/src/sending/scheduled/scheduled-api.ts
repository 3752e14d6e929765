/** The operations on scheduled mail (own-operations.md section 2). */
import { followJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { placePath } from '../../shared/page/paging.ts'
import type { ScheduledSearch } from './scheduled-search.ts'

export type ScheduledItem = Api.ScheduledMessage

export type ScheduledPage = Api.ScheduledPage

const PATH = '/sendwright/v1/scheduled'
export const SCHEDULED_PAGE_SIZE = 50 // about three screens

export function listScheduled({ at, ...filters }: ScheduledSearch, signal?: AbortSignal) {
  const query = new URLSearchParams({ limit: String(SCHEDULED_PAGE_SIZE), ...filters })
  return followJson<'GET /sendwright/v1/scheduled'>(placePath(`${PATH}?${query}`, at), signal)
}

const onePath = (id: string) => `${PATH}/${encodeURIComponent(id)}` as const

/** `timeMs`: Unix milliseconds. */
export const moveScheduled = (id: string, timeMs: number) =>
  sendForm('PATCH', onePath(id), { deliverytime: String(Math.round(timeMs / 1000)) })

export const cancelScheduled = (id: string) => sendJson('DELETE', onePath(id))
