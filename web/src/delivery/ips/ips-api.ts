/** Sending addresses and their warm-up (docs/api/ips-pools.md sections 2, 4, 5 and 6). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'

export interface Ip {
  ip: string
  rdns: string
  dedicated: boolean
  enabled: boolean
  is_on_warmup: boolean
  pool_id?: string
  domains_count: number
}

export interface Block {
  site: string
  provider: string
  state: 'closed' | 'probing'
  reply: string
  times: number
  since: string
  until: string
}

/** As the operator sees it. */
export interface Address {
  ip: string
  dedicated: boolean
  account_id: string | null
  enabled: boolean
  usable: boolean
  configured_here: boolean
  is_on_warmup: boolean
  blocked_by: Block[]
  check: {
    checked_at: string | null
    bound: boolean | null
    dns_agrees: boolean | null
    /** Empty: none. */
    fault: string
  }
}

export interface Warmup {
  ip: string
  /** `34%` of the limit in the present 24 hours. */
  sent_within_stage: string
  /** Percent of the messages of this hour that were kept away. */
  throttle: number
  stage_number: number
  stage_start_volume: number
  stage_start_time: string
  stage_volume_limit: number
}

export interface WarmupDetails extends Warmup {
  hourly_limit: number
  total_stages: number
  plan_started_at: string
  stage_history: { limit: number; completed_at: string }[]
}

/** Prefix of every query about addresses, pools and warm-ups. */
export const IPS_KEY = 'ips'
const segment = encodeURIComponent
const WARMUPS_MAX = 100 // the most that one page has

export const ipsQuery = queryOptions({
  queryKey: [IPS_KEY, 'all'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: Ip[] }>('/v3/ips/details/all', signal)).items,
})

/** Dedicated addresses in no pool. */
export const freeIpsQuery = queryOptions({
  queryKey: [IPS_KEY, 'free'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ assignable_to_pools: string[] }>('/v3/ips', signal)).assignable_to_pools,
})

export const requestableQuery = queryOptions({
  queryKey: [IPS_KEY, 'requestable'],
  queryFn: async ({ signal }) =>
    valueOrThrow(
      await getJson<{ allowed: { dedicated: number; shared: number } }>('/v3/ips/request/new', signal),
    ).allowed.dedicated,
})

export const requestIp = async () => valueOrThrow(await sendJson<unknown>('POST', '/v3/ips/request/new'))

export const addressesQuery = queryOptions({
  queryKey: [IPS_KEY, 'operator'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: Address[] }>('/sendwright/v1/ips', signal)).items,
})

export const enableAddress = async (ip: string, enabled: boolean) =>
  valueOrThrow(
    await sendForm<Address>('PUT', `/sendwright/v1/ips/${segment(ip)}`, { enabled: String(enabled) }),
  )

export const clearBlock = async (ip: string, site: string) =>
  valueOrThrow(await sendJson<unknown>('DELETE', `/sendwright/v1/ips/${segment(ip)}/blocks/${segment(site)}`))

export const DOMAINS_PAGE_SIZE = 50
export const ipDomainsPath = (ip: string, search: string) => {
  const query = new URLSearchParams({ limit: String(DOMAINS_PAGE_SIZE) })
  if (search !== '') query.set('search', search)
  return `/v3/ips/${segment(ip)}/domains?${query}`
}

export const ipDomainsQuery = (path: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'domains', path],
    queryFn: async ({ signal }) =>
      valueOrThrow(
        await getJson<{ items: { domain: string; ips: string[] }[]; total_count: number }>(path, signal),
      ),
  })

export const assignToDomain = async (ip: string, domain: string) =>
  valueOrThrow(await sendForm<unknown>('POST', `/v3/domains/${segment(domain)}/ips`, { ip }))

export const removeFromDomain = async (ip: string, domain: string) =>
  valueOrThrow(await sendJson<unknown>('DELETE', `/v3/domains/${segment(domain)}/ips/${segment(ip)}`))

export const assignToAll = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `/v3/ips/${segment(ip)}/domains`))

export const warmupsQuery = queryOptions({
  queryKey: [IPS_KEY, 'warmups'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: Warmup[] }>(`/v3/ip_warmups?limit=${WARMUPS_MAX}`, signal)).items,
})

/** Null: the address is not on warm-up. */
export const warmupQuery = (ip: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'warmup', ip],
    async queryFn({ signal }) {
      const answer = await getJson<{ details: WarmupDetails }>(`/v3/ip_warmups/${segment(ip)}`, signal)
      if (!answer.ok && answer.failure.status === 404) return null
      return valueOrThrow(answer).details
    },
  })

export const startWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `/v3/ip_warmups/${segment(ip)}`))

export const cancelWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('DELETE', `/v3/ip_warmups/${segment(ip)}`))
