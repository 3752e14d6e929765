/** IP pools (docs/api/ips-pools.md section 3). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { IPS_KEY } from '../ips/ips-api.ts'

export type Pool = Api.IpPool

const BASE = '/v3/ip_pools'
const pathOf = (id: string) => `${BASE}/${encodeURIComponent(id)}` as const

export const poolsQuery = queryOptions({
  queryKey: [IPS_KEY, 'pools'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(BASE, signal)).ip_pools,
})

export const poolQuery = (id: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'pool', id],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(pathOf(id), signal)).details,
  })

export interface NewPool {
  name: string
  description: string
  ips: readonly string[]
}

const fieldsOf = ({ name, description, ips }: NewPool) => {
  const fields = new URLSearchParams({ name, description })
  for (const ip of ips) fields.append('ip', ip)
  return fields
}

export const createPool = async (pool: NewPool) =>
  valueOrThrow(await sendForm('POST', BASE, fieldsOf(pool))).pool_id

type Edit = 'name' | 'description' | 'add_ip' | 'remove_ip' | 'link_domain' | 'unlink_domain'

export const editPool = async (id: string, changes: Partial<Record<Edit, string>>) =>
  valueOrThrow(await sendForm('PATCH', pathOf(id), changes as Record<string, string>))

/** `replacement`: what linked domains get; '' for a pool without addresses. */
export const deletePool = async (id: string, replacement: string) => {
  const query = new URLSearchParams(
    replacement.startsWith('pool:') ? { pool_id: replacement.slice(5) } : replacement && { ip: replacement },
  )
  return valueOrThrow(await sendJson('DELETE', `${pathOf(id)}?${query}`))
}

export type Delegation = Api.IpPoolDelegation

export const delegationsQuery = queryOptions({
  queryKey: [IPS_KEY, 'delegations'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson('/v5/accounts/subaccounts/ip_pools/all', signal)).items,
})

export const delegatePool = async (id: string, subaccountId: string) =>
  valueOrThrow(await sendForm('PUT', `${pathOf(id)}/delegate`, { subaccount_id: subaccountId }))

export const revokePool = async (id: string, subaccountId: string) =>
  valueOrThrow(
    await sendJson(
      'DELETE',
      `${pathOf(id)}/delegate?${new URLSearchParams({ subaccount_id: subaccountId })}`,
    ),
  )

const SUBACCOUNTS_MAX = 1_000 // the most that one page has

export const subaccountNamesQuery = queryOptions({
  queryKey: ['subaccounts', 'names'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson(`/v5/accounts/subaccounts?limit=${SUBACCOUNTS_MAX}&sort=asc`, signal))
      .subaccounts,
})
