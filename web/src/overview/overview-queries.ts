import { queryOptions } from '@tanstack/react-query'
import { startOfDay } from '../base/format.ts'
import { valueOrThrow } from '../queries.ts'
import { readMetrics } from '../shared/charts/metrics-api.ts'
import { DAY_MS, floorTo } from '../shared/charts/spans.ts'
import { readReasons } from '../shared/mail/reasons-api.ts'
import { shapingQuery } from '../shared/orders-api.ts'
import {
  listDomainsIn,
  listNewestDomains,
  readAccountWebhooks,
  readAttempts,
  readDomainWebhooks,
  readHits,
  readLanes,
  readSystemAlerts,
} from './overview-api.ts'
import { COUNTS } from './overview-search.ts'

const KEY = 'overview'
const FIGURES_REFRESH_MS = 30_000
const HAND_REFRESH_MS = 15_000
export const SPAN_DAYS = 30
const DOMAINS_SHOWN = 5
const REASONS_DAYS = 7

const METRICS = [...COUNTS.map(({ metric }) => metric as string), 'permanent_failed_count']

/** By day, of the last 60 days with today. */
export const daysQuery = queryOptions({
  queryKey: [KEY, 'days'],
  queryFn: async ({ signal }) => {
    const nowMs = Date.now()
    const startMs = floorTo(nowMs, 'day') - (2 * SPAN_DAYS - 1) * DAY_MS
    const query = {
      start: seconds(startMs),
      end: seconds(nowMs),
      dimensions: ['time'],
      resolution: 'day',
      metrics: METRICS,
    } as const
    return { startMs, nowMs, items: valueOrThrow(await readMetrics(query, signal)).items }
  },
  refetchInterval: FIGURES_REFRESH_MS,
})

/** By hour, of the last day: "today" is that of the reader's zone. */
export const todayQuery = queryOptions({
  queryKey: [KEY, 'today'],
  queryFn: async ({ signal }) => {
    const query = {
      start: seconds(startOfDay(Date.now())),
      end: seconds(Date.now()),
      resolution: 'hour',
      metrics: METRICS,
    } as const
    return valueOrThrow(await readMetrics(query, signal)).items[0]?.metrics ?? {}
  },
  refetchInterval: FIGURES_REFRESH_MS,
})

export const reasonsQuery = queryOptions({
  queryKey: [KEY, 'reasons'],
  queryFn: async ({ signal }) => {
    const nowMs = Date.now()
    return valueOrThrow(await readReasons(nowMs - REASONS_DAYS * DAY_MS, nowMs, undefined, signal))
  },
  refetchInterval: 2 * FIGURES_REFRESH_MS,
})

export const blockedDomainsQuery = queryOptions({
  queryKey: [KEY, 'domains'],
  queryFn: async ({ signal }) => {
    const [unverified, disabled] = await Promise.all([
      listDomainsIn('unverified', DOMAINS_SHOWN, signal),
      listDomainsIn('disabled', DOMAINS_SHOWN, signal),
    ])
    return { unverified: valueOrThrow(unverified), disabled: valueOrThrow(disabled) }
  },
  refetchInterval: HAND_REFRESH_MS,
})

export const alertsQuery = queryOptions({
  queryKey: [KEY, 'alerts'],
  queryFn: async ({ signal }) => {
    const [system, hits] = await Promise.all([readSystemAlerts(signal), readHits(signal)])
    return { system: valueOrThrow(system).alerts ?? [], hits: valueOrThrow(hits).items ?? [] }
  },
  refetchInterval: HAND_REFRESH_MS,
})

export const attemptsQuery = queryOptions({
  queryKey: [KEY, 'webhooks'],
  queryFn: async ({ signal }) => valueOrThrow(await readAttempts(signal)).items,
  refetchInterval: HAND_REFRESH_MS,
})

export const lanesQuery = queryOptions({
  queryKey: [KEY, 'lanes'],
  queryFn: async ({ signal }) => valueOrThrow(await readLanes(signal)).items,
  refetchInterval: HAND_REFRESH_MS,
})

/** Who may read what the operator has ordered for providers. */
export const READS_ORDERS = { area: 'account', only: 'first' } as const

export const ordersQuery = { ...shapingQuery, refetchInterval: HAND_REFRESH_MS }

/**
 * `newest`, `active`: the newest domain, and the newest that is verified, without the sandbox, which is there from the start;
 * `sending`: the newest that is verified. Each undefined if there is none.
 */
export const ownDomainsQuery = queryOptions({
  queryKey: ['domains', 'own'],
  queryFn: async ({ signal }) => {
    const pages = await Promise.all([listNewestDomains(signal), listDomainsIn('active', 2, signal)])
    const [newest = [], active = []] = pages.map((page) => valueOrThrow(page).items)
    const ownOf = (domains: typeof newest) => domains.find(({ type }) => type !== 'sandbox')?.name
    return { newest: ownOf(newest), active: ownOf(active), sending: active[0]?.name }
  },
})

/** Whether the account or the domain has a webhook. */
export const anyWebhookQuery = (domain: string | undefined) =>
  queryOptions({
    queryKey: [KEY, 'any-webhook', domain ?? ''],
    queryFn: async ({ signal }) => {
      const own = valueOrThrow(await readAccountWebhooks(signal)).webhooks ?? []
      if (own.length > 0 || domain === undefined) return own.length > 0
      return Object.keys(valueOrThrow(await readDomainWebhooks(domain, signal)).webhooks).length > 0
    },
    refetchInterval: HAND_REFRESH_MS,
  })

const seconds = (ms: number) => String(Math.floor(ms / 1000))
