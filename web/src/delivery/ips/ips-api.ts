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

interface ProviderStage {
  stage_number: number
  stage_start_time: string
  stage_volume_limit: number
  hourly_limit: number
  sent_within_stage: string
  throttle: number
}

/** A warm-up with its plan at each provider. */
export interface WarmupProgress extends ProviderStage {
  /** Null: it is not paused. */
  paused_at: string | null
  total_stages: number
  /** `provider` `*`: all that the shaping does not name. `sent`: in all stages. */
  providers: (ProviderStage & { provider: string; sent: number })[]
}

/** A warm-up of the list; `paused_at` undefined: not asked. */
export interface ListedWarmup extends Warmup {
  paused_at?: string | null
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

const progressPath = (ip: string) => `/sendwright/v1/ip-warmups/${segment(ip)}`
/** Of longer lists the pages of the addresses tell what is paused: each is a request. */
const ASKED_MAX = 20

export const warmupsQuery = queryOptions({
  queryKey: [IPS_KEY, 'warmups'],
  async queryFn({ signal }): Promise<ListedWarmup[]> {
    const path = `/v3/ip_warmups?limit=${WARMUPS_MAX}`
    const { items } = valueOrThrow(await getJson<{ items: Warmup[] }>(path, signal))
    if (items.length > ASKED_MAX) return items
    return Promise.all(
      items.map(async (warmup) => {
        const answer = await getJson<WarmupProgress>(progressPath(warmup.ip), signal)
        // It may have ended since.
        return answer.ok ? { ...warmup, paused_at: answer.value.paused_at } : warmup
      }),
    )
  },
})

/** Null: the address is not on warm-up. */
export const warmupQuery = (ip: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'warmup', ip],
    async queryFn({ signal }): Promise<(WarmupDetails & WarmupProgress) | null> {
      const [details, progress] = await Promise.all([
        getJson<{ details: WarmupDetails }>(`/v3/ip_warmups/${segment(ip)}`, signal),
        getJson<WarmupProgress>(progressPath(ip), signal),
      ])
      if ([details, progress].some((answer) => !answer.ok && answer.failure.status === 404)) return null
      return { ...valueOrThrow(details).details, ...valueOrThrow(progress) }
    },
  })

export const startWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `/v3/ip_warmups/${segment(ip)}`))

export const cancelWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('DELETE', `/v3/ip_warmups/${segment(ip)}`))

export const pauseWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `${progressPath(ip)}/pause`))

export const resumeWarmup = async (ip: string) =>
  valueOrThrow(await sendJson<unknown>('POST', `${progressPath(ip)}/resume`))
