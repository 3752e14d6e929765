/** Pools that are chosen by reputation (docs/api/dynamic-pools.md). */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { followJson, getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
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

export type DynamicPool = Api.DynamicPool

export type EnrolledDomain = Api.EnrolledDomain

export type HistoryRecord = Api.DynamicPoolHistoryRecord

export interface ListOf<T> {
  items: T[]
  total_items: number
  paging: { Next?: string; Previous?: string }
}

export const PAGE_SIZE = 50 // about three screens
const segment = encodeURIComponent

export const poolsQuery = queryOptions({
  queryKey: [IPS_KEY, 'dynamic'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v3/dynamic_pools', signal)).pools,
})

export const setPools = async (sets: Readonly<Record<Band, readonly string[]>>) => {
  const fields = new URLSearchParams()
  for (const band of BANDS) for (const ip of sets[band]) fields.append(SETS[band], ip)
  return valueOrThrow(await sendForm('POST', '/v3/dynamic_pools/all', fields))
}

export const removePools = async () => valueOrThrow(await sendJson('DELETE', '/v3/dynamic_pools/all'))

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
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /v1/dynamic_pools/domains'>(path, signal)),
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
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /v1/dynamic_pools/history'>(path, signal)),
    placeholderData: keepPreviousData,
  })

export const assignableQuery = queryOptions({
  queryKey: [IPS_KEY, 'dynamic', 'assignable'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson('/v3/domains/dynamic_pools/assignable', signal)).items,
})

export const enroll = async (domain: string) =>
  valueOrThrow(await sendJson('POST', `/v3/domains/${segment(domain)}/dynamic_pools`))

export const enrollAll = async () =>
  valueOrThrow(await sendJson('POST', '/v3/domains/all/dynamic_pools/enroll'))

/** `replacement`: an address, `shared`, or `pool:` and an id. */
export const leave = async (domain: string, replacement: string) => {
  const query = new URLSearchParams(
    replacement.startsWith('pool:')
      ? { replacement_pool_id: replacement.slice(5) }
      : { replacement_ip: replacement },
  )
  return valueOrThrow(await sendJson('DELETE', `/v3/domains/${segment(domain)}/dynamic_pools?${query}`))
}

const overridePath = (domain: string) => `/v1/dynamic_pools/domains/${segment(domain)}/override` as const

/** `band` '': the checks choose. */
export const setOverride = async (domain: string, band: Band | '') =>
  valueOrThrow(
    await (band === ''
      ? sendJson('DELETE', overridePath(domain))
      : sendForm('PUT', overridePath(domain), { pool: band })),
  )
