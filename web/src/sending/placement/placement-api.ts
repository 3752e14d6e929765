/** The operations of inbox placement (validation.md section 6), and the fields that pages show. */
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'

export type Counts = Pick<Api.PlacementCounts, 'inbox' | 'spam' | 'missing' | 'pending' | 'total'>

export type SeedList = Api.SeedList

export type SeedResult = Api.PlacementResult['seed_results'][number]

export type PlacementResult = Api.PlacementResult

export type Sharing = Api.PlacementSharing

export const PAGE_SIZE = 25

const segment = encodeURIComponent
const resultPath = (id: string) => `/v4/inbox/results/${segment(id)}` as const
const listPath = (id: string) => `/v4/inbox/seedlists/${segment(id)}` as const

export const readProviders = (signal?: AbortSignal) => getJson('/v4/inbox/providers', signal)

export const readResults = (offset: number, signal?: AbortSignal) =>
  getJson(`/v4/inbox/results?limit=${PAGE_SIZE}&offset=${offset}`, signal)

export const readResult = (id: string, signal?: AbortSignal) => getJson(resultPath(id), signal)

export const deleteResult = (id: string) => sendJson('DELETE', resultPath(id))

export interface NewTest {
  from: string
  subject: string
  html: string
  /** '': all seeds. */
  seedList: string
}

export const runTest = ({ from, subject, html, seedList }: NewTest) =>
  sendJson('POST', '/v4/inbox/tests', {
    ...{ from, subject, html },
    ...(seedList !== '' && { seed_list: seedList }),
  })

/** An account has at most 100. */
export const readLists = (signal?: AbortSignal) => getJson('/v4/inbox/seedlists?limit=100', signal)

export type ListFields = Record<'name' | 'seed_filter' | 'provider_filter', string>

/** `id` undefined: a new one. */
export const saveList = (id: string | undefined, fields: ListFields) =>
  id === undefined ? sendForm('POST', '/v4/inbox/seedlists', fields) : sendForm('PUT', listPath(id), fields)

export const deleteList = (id: string) => sendJson('DELETE', listPath(id))

const sharingPath = (id: string) => `/v4/inbox/sharing/${segment(id)}` as const

export const readSharing = (id: string, signal?: AbortSignal) => getJson(sharingPath(id), signal)

export const changeSharing = (id: string, enabled: boolean) =>
  sendForm('PUT', sharingPath(id), { enabled: enabled ? 'true' : 'false' })

/** The counts of all providers together. */
export function sumOf({ delivery_stats }: PlacementResult): Counts {
  const sum: Counts = { inbox: 0, spam: 0, missing: 0, pending: 0, total: 0 }
  for (const counts of Object.values(delivery_stats))
    for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name]
  return sum
}
