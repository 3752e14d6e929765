import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { valueOrThrow } from '../queries.ts'
import {
  applyDns,
  listDnsChanges,
  listDnsProviders,
  listDomainKeys,
  listDomainPage,
  readDomain,
  readDomainDns,
  readZone,
  undoDns,
} from './domains-api.ts'

/** Prefix of every query about domains, also of other folders', so that one call invalidates them all after a change. */
export const DOMAINS_KEY = 'domains'

/** Polling interval of the stored results while a domain waits; the service queries DNS far less often. */
export const WAITING_REFRESH_MS = 10_000

export const domainPagesQuery = (search: string) =>
  infiniteQueryOptions({
    queryKey: [DOMAINS_KEY, 'pages', search],
    queryFn: async ({ pageParam, signal }) => valueOrThrow(await listDomainPage(search, pageParam, signal)),
    initialPageParam: 0,
    getNextPageParam(page, pages) {
      const seen = pages.reduce((sum, { items }) => sum + items.length, 0)
      return page.items.length > 0 && seen < page.total_count ? seen : undefined
    },
  })

export const domainQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'one', name],
    queryFn: async ({ signal }) => valueOrThrow(await readDomain(name, signal)).domain,
    refetchInterval: ({ state }) => (state.data?.state === 'unverified' ? WAITING_REFRESH_MS : false),
  })

/** `isWaiting`: the domain is not verified yet, so the stored results may change at any time. */
export const domainDnsQuery = (name: string, isWaiting: boolean) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'dns', name],
    queryFn: async ({ signal }) => valueOrThrow(await readDomainDns(name, signal)),
    refetchInterval: isWaiting && WAITING_REFRESH_MS,
  })

export const zoneQuery = (name: string, isWaiting: boolean) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'zone', name],
    queryFn: async ({ signal }) => valueOrThrow(await readZone(name, signal)),
    refetchInterval: isWaiting && WAITING_REFRESH_MS,
  })

export const domainKeysQuery = (authority: string, isWaiting: boolean) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'keys', authority],
    queryFn: async ({ signal }) => valueOrThrow(await listDomainKeys(authority, signal)).items,
    refetchInterval: isWaiting && WAITING_REFRESH_MS,
  })

/** Prefix of queries about what is written at DNS providers. */
export const CHANGES_KEY = 'dns-changes'

export const dnsProvidersQuery = queryOptions({
  queryKey: [CHANGES_KEY, 'providers'],
  queryFn: async ({ signal }) => valueOrThrow(await listDnsProviders(signal)).items,
})

export const dnsChangesQuery = (name: string) =>
  queryOptions({
    queryKey: [CHANGES_KEY, 'done', name],
    queryFn: async ({ signal }) => valueOrThrow(await listDnsChanges(name, signal)).items,
  })

/** What would be written, or taken back; asked for each time that it is shown. */
export const dnsPlanQuery = (name: string, undoes: string | null) =>
  queryOptions({
    queryKey: ['dns-plan', name, undoes],
    queryFn: async () =>
      valueOrThrow(
        await (undoes === null
          ? applyDns(name, { dry_run: true })
          : undoDns(name, undoes, { dry_run: true })),
      ),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
