/** Sending addresses and their warm-up (docs/api/ips-pools.md sections 2, 4, 5 and 6). */
import { queryOptions } from '@tanstack/react-query'
import { followJson, getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export type Ip = Api.IpAddressDetails

export type Block = Api.IpBlock

export type Address = Api.InstalledIpAddress

export type WatchedList = Api.WatchedList

export type Warmup = Api.IpWarmupItem

export type WarmupDetails = Api.IpWarmup

export type WarmupProgress = Api.IpWarmupProgress

/** A warm-up of the list; `paused_at` undefined: not asked. */
export type ListedWarmup = Warmup & { paused_at?: string | null }

/** Prefix of every query about addresses, pools and warm-ups. */
export const IPS_KEY = 'ips'
const segment = encodeURIComponent
const WARMUPS_MAX = 100 // the most that one page has

export const ipsQuery = queryOptions({
  queryKey: [IPS_KEY, 'all'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v3/ips/details/all', signal)).items,
})

/** Dedicated addresses in no pool. */
export const freeIpsQuery = queryOptions({
  queryKey: [IPS_KEY, 'free'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v3/ips', signal)).assignable_to_pools,
})

export const requestableQuery = queryOptions({
  queryKey: [IPS_KEY, 'requestable'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v3/ips/request/new', signal)).allowed.dedicated,
})

export const requestIp = async () => valueOrThrow(await sendJson('POST', '/v3/ips/request/new'))

export const addressesQuery = queryOptions({
  queryKey: [IPS_KEY, 'operator'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/sendwright/v1/ips', signal)).items,
})

export const watchedListsQuery = queryOptions({
  queryKey: [IPS_KEY, 'blocklists'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/sendwright/v1/blocklists', signal)).items,
})

export const enableAddress = async (ip: string, enabled: boolean) =>
  valueOrThrow(await sendForm('PUT', `/sendwright/v1/ips/${segment(ip)}`, { enabled: String(enabled) }))

export const clearBlock = async (ip: string, site: string) =>
  valueOrThrow(await sendJson('DELETE', `/sendwright/v1/ips/${segment(ip)}/blocks/${segment(site)}`))

export const DOMAINS_PAGE_SIZE = 50
export const ipDomainsPath = (ip: string, search: string) => {
  const query = new URLSearchParams({ limit: String(DOMAINS_PAGE_SIZE) })
  if (search !== '') query.set('search', search)
  return `/v3/ips/${segment(ip)}/domains?${query}`
}

export const ipDomainsQuery = (path: string) =>
  queryOptions({
    queryKey: [IPS_KEY, 'domains', path],
    queryFn: async ({ signal }) => valueOrThrow(await followJson<'GET /v3/ips/{}/domains'>(path, signal)),
  })

export const assignToDomain = async (ip: string, domain: string) =>
  valueOrThrow(await sendForm('POST', `/v3/domains/${segment(domain)}/ips`, { ip }))

export const removeFromDomain = async (ip: string, domain: string) =>
  valueOrThrow(await sendJson('DELETE', `/v3/domains/${segment(domain)}/ips/${segment(ip)}`))

export const assignToAll = async (ip: string) =>
  valueOrThrow(await sendJson('POST', `/v3/ips/${segment(ip)}/domains`))

const progressPath = (ip: string) => `/sendwright/v1/ip-warmups/${segment(ip)}` as const
/** Each address is a request; with more of them, only their own pages show what is paused. */
const ASKED_MAX = 20

export const warmupsQuery = queryOptions({
  queryKey: [IPS_KEY, 'warmups'],
  async queryFn({ signal }): Promise<ListedWarmup[]> {
    const path = `/v3/ip_warmups?limit=${WARMUPS_MAX}` as const
    const { items } = valueOrThrow(await getJson(path, signal))
    if (items.length > ASKED_MAX) return items
    return Promise.all(
      items.map(async (warmup) => {
        const answer = await getJson(progressPath(warmup.ip), signal)
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
        getJson(`/v3/ip_warmups/${segment(ip)}`, signal),
        getJson(progressPath(ip), signal),
      ])
      if ([details, progress].some((answer) => !answer.ok && answer.failure.status === 404)) return null
      return { ...valueOrThrow(details).details, ...valueOrThrow(progress) }
    },
  })

export const startWarmup = async (ip: string) =>
  valueOrThrow(await sendJson('POST', `/v3/ip_warmups/${segment(ip)}`))

export const cancelWarmup = async (ip: string) =>
  valueOrThrow(await sendJson('DELETE', `/v3/ip_warmups/${segment(ip)}`))

export const pauseWarmup = async (ip: string) =>
  valueOrThrow(await sendJson('POST', `${progressPath(ip)}/pause`))

export const resumeWarmup = async (ip: string) =>
  valueOrThrow(await sendJson('POST', `${progressPath(ip)}/resume`))
