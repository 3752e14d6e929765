/** IP pools (docs/api/ips-pools.md section 3). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'
import { IPS_KEY } from '../ips/ips-api.ts'

export interface Pool {
  pool_id: string
  name: string
  description: string
  ips: string[]
  is_linked: boolean
  /** Delegated by the parent: it can be used, not changed. */
  is_inherited: boolean
  /** At most 1000. */
  linked_domains?: string[]
}

const BASE = '/v3/ip_pools'
const pathOf = (id: string) => `${BASE}/${encodeURIComponent(id)}`

export const poolsQuery = queryOptions({
  queryKey: [IPS_KEY, 'pools'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson<{ ip_pools: Pool[] }>(BASE, signal)).ip_pools,
})

export const poolQuery = (id: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'pool', id],
    queryFn: async ({ signal }) => valueOrThrow(await getJson<{ details: Pool }>(pathOf(id), signal)).details,
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
  valueOrThrow(await sendForm<{ pool_id: string }>('POST', BASE, fieldsOf(pool))).pool_id

type Edit = 'name' | 'description' | 'add_ip' | 'remove_ip' | 'link_domain' | 'unlink_domain'

export const editPool = async (id: string, changes: Partial<Record<Edit, string>>) =>
  valueOrThrow(await sendForm<unknown>('PATCH', pathOf(id), changes as Record<string, string>))

/** `replacement`: what linked domains get; '' for a pool without addresses. */
export const deletePool = async (id: string, replacement: string) => {
  const query =
    replacement === ''
      ? ''
      : `?${new URLSearchParams(
          replacement.startsWith('pool:') ? { pool_id: replacement.slice(5) } : { ip: replacement },
        )}`
  return valueOrThrow(await sendJson<unknown>('DELETE', `${pathOf(id)}${query}`))
}

export interface Delegation {
  pool_id: string
  subaccount_id: string
}

export const delegationsQuery = queryOptions({
  queryKey: [IPS_KEY, 'delegations'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: Delegation[] }>('/v5/accounts/subaccounts/ip_pools/all', signal))
      .items,
})

export const delegatePool = async (id: string, subaccountId: string) =>
  valueOrThrow(await sendForm<unknown>('PUT', `${pathOf(id)}/delegate`, { subaccount_id: subaccountId }))

export const revokePool = async (id: string, subaccountId: string) =>
  valueOrThrow(
    await sendJson<unknown>(
      'DELETE',
      `${pathOf(id)}/delegate?${new URLSearchParams({ subaccount_id: subaccountId })}`,
    ),
  )

const SUBACCOUNTS_MAX = 1_000 // the most that one page has

export const subaccountNamesQuery = queryOptions({
  queryKey: ['subaccounts', 'names'],
  queryFn: async ({ signal }) =>
    valueOrThrow(
      await getJson<{ subaccounts: { id: string; name: string }[] }>(
        `/v5/accounts/subaccounts?limit=${SUBACCOUNTS_MAX}&sort=asc`,
        signal,
      ),
    ).subaccounts,
})
