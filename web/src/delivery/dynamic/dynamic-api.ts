/** Pools that are chosen by reputation (docs/api/dynamic-pools.md). */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'
import { IPS_KEY } from '../ips/ips-api.ts'

export const BANDS = ['dynamic_good', 'dynamic_new', 'dynamic_poor'] as const
export type Band = (typeof BANDS)[number]

/** The names of the sets where all of them are given. */
export const SETS = {
  dynamic_good: 'good_reputation',
  dynamic_new: 'new_senders',
  dynamic_poor: 'poor_reputation',
} as const satisfies Record<Band, string>

export interface DynamicPool {
  name: Band
  ips: string[]
}

export interface EnrolledDomain {
  id: string
  name: string
  account_name: string
  pool: Band
  override: boolean
  bounce_rate: number | null
  complaint_rate: number | null
  processed_count: number
}

export interface HistoryRecord {
  id: string
  account_name: string
  domain_name: string
  new_band: Band | ''
  prev_band: Band | ''
  reason: string
  initiated_by: string
  timestamp: string
}

export interface ListOf<T> {
  items: T[]
  total_items: number
  paging: { Next?: string; Previous?: string }
}

export const PAGE_SIZE = 50 // about three screens
const segment = encodeURIComponent

export const poolsQuery = queryOptions({
  queryKey: [IPS_KEY, 'dynamic'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ pools: DynamicPool[] }>('/v3/dynamic_pools', signal)).pools,
})

export const setPools = async (sets: Readonly<Record<Band, readonly string[]>>) => {
  const fields = new URLSearchParams()
  for (const band of BANDS) for (const ip of sets[band]) fields.append(SETS[band], ip)
  return valueOrThrow(await sendForm<unknown>('POST', '/v3/dynamic_pools/all', fields))
}

export const removePools = async () =>
  valueOrThrow(await sendJson<unknown>('DELETE', '/v3/dynamic_pools/all'))

export const enrolledPath = (pool: string, sort: string) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE) })
  if (pool !== '') query.set('pool', pool)
  if (sort !== '') {
    query.set('sort_by', sort)
    query.set('sort_order', sort === 'name' ? 'ascending' : 'descending')
  }
  return `/v1/dynamic_pools/domains?${query}`
}

export const enrolledQuery = (path: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'dynamic', 'domains', path],
    queryFn: async ({ signal }) => valueOrThrow(await getJson<ListOf<EnrolledDomain>>(path, signal)),
    placeholderData: keepPreviousData,
  })

export const historyPath = (domain: string) => {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE), include_subaccounts: 'true' })
  if (domain !== '') query.set('domain', domain)
  return `/v1/dynamic_pools/history?${query}`
}

export const historyQuery = (path: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'dynamic', 'history', path],
    queryFn: async ({ signal }) => valueOrThrow(await getJson<ListOf<HistoryRecord>>(path, signal)),
    placeholderData: keepPreviousData,
  })

export const assignableQuery = queryOptions({
  queryKey: [IPS_KEY, 'dynamic', 'assignable'],
  queryFn: async ({ signal }) =>
    valueOrThrow(
      await getJson<{ items: { id: string; name: string }[] }>(
        '/v3/domains/dynamic_pools/assignable',
        signal,
      ),
    ).items,
})

export const enroll = async (domain: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `/v3/domains/${segment(domain)}/dynamic_pools`))

export const enrollAll = async () =>
  valueOrThrow(await sendJson<unknown>('POST', '/v3/domains/all/dynamic_pools/enroll'))

/** `replacement`: an address, `shared`, or `pool:` and an id. */
export const leave = async (domain: string, replacement: string) => {
  const query = new URLSearchParams(
    replacement.startsWith('pool:')
      ? { replacement_pool_id: replacement.slice(5) }
      : { replacement_ip: replacement },
  )
  return valueOrThrow(
    await sendJson<unknown>('DELETE', `/v3/domains/${segment(domain)}/dynamic_pools?${query}`),
  )
}

const overridePath = (domain: string) => `/v1/dynamic_pools/domains/${segment(domain)}/override`

/** `band` '': the checks choose. */
export const setOverride = async (domain: string, band: Band | '') =>
  valueOrThrow(
    await (band === ''
      ? sendJson<unknown>('DELETE', overridePath(domain))
      : sendForm<unknown>('PUT', overridePath(domain), { pool: band })),
  )
