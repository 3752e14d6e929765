/** The operations of inbox placement (validation.md section 6), and the fields that pages show. */
import { getJson, sendForm, sendJson } from '../../api.ts'

export interface Counts {
  inbox: number
  spam: number
  missing: number
  pending: number
  total: number
}

export interface SeedList {
  kid: string
  name: string
  target_email: string
  seed_filter: string
  provider_filter: string
  last_result_at: string
  has_results: boolean
  Seeds: unknown[] | null
  is_auto_generated: boolean
}

export interface SeedResult {
  email: string
  provider: string
  destination: string
  state: 'pending' | 'delivered' | 'missing'
  dkim: string
  spf: string
  dmarc: string
  extensions: { category: string; seconds?: number; problem?: string }
}

export interface PlacementResult {
  result_id: string
  subject: string
  sender: string
  seedlist_name: string
  status: string
  created_at: string
  sharing_enabled: boolean
  seed_results: SeedResult[]
  delivery_stats: Record<string, Counts>
  spamassassin?: { score: number; is_spam: boolean }
}

export interface Sharing {
  enabled: boolean
  url: string
  expires_at: string
}

export const PAGE_SIZE = 25

const segment = encodeURIComponent
const resultPath = (id: string) => `/v4/inbox/results/${segment(id)}`
const listPath = (id: string) => `/v4/inbox/seedlists/${segment(id)}`

export const readProviders = (signal?: AbortSignal) =>
  getJson<{ items: { domain: string; display_name: string }[] }>('/v4/inbox/providers', signal)

export const readResults = (offset: number, signal?: AbortSignal) =>
  getJson<{ items: PlacementResult[]; total: number }>(
    `/v4/inbox/results?limit=${PAGE_SIZE}&offset=${offset}`,
    signal,
  )

export const readResult = (id: string, signal?: AbortSignal) =>
  getJson<{ result: PlacementResult }>(resultPath(id), signal)

export const deleteResult = (id: string) => sendJson<unknown>('DELETE', resultPath(id))

export interface NewTest {
  from: string
  subject: string
  html: string
  /** '': all seeds. */
  seedList: string
}

export const runTest = ({ from, subject, html, seedList }: NewTest) =>
  sendJson<{ result_id: string }>('POST', '/v4/inbox/tests', {
    ...{ from, subject, html },
    ...(seedList !== '' && { seed_list: seedList }),
  })

/** An account has at most 100. */
export const readLists = (signal?: AbortSignal) =>
  getJson<{ items: SeedList[] }>('/v4/inbox/seedlists?limit=100', signal)

export type ListFields = Record<'name' | 'seed_filter' | 'provider_filter', string>

/** `id` undefined: a new one. */
export const saveList = (id: string | undefined, fields: ListFields) =>
  id === undefined
    ? sendForm<SeedList>('POST', '/v4/inbox/seedlists', fields)
    : sendForm<SeedList>('PUT', listPath(id), fields)

export const deleteList = (id: string) => sendJson<unknown>('DELETE', listPath(id))

const sharingPath = (id: string) => `/v4/inbox/sharing/${segment(id)}`

export const readSharing = (id: string, signal?: AbortSignal) =>
  getJson<{ sharing: Sharing }>(sharingPath(id), signal)

export const changeSharing = (id: string, enabled: boolean) =>
  sendForm<{ sharing: Sharing }>('PUT', sharingPath(id), { enabled: enabled ? 'true' : 'false' })

/** Of all providers together. */
export function sumOf({ delivery_stats }: PlacementResult): Counts {
  const sum: Counts = { inbox: 0, spam: 0, missing: 0, pending: 0, total: 0 }
  for (const counts of Object.values(delivery_stats))
    for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name]
  return sum
}
