/** The operations of the queue that the page uses (docs/api/own-operations.md section 3). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../api.ts'
import { valueOrThrow } from '../queries.ts'
import type { Override } from '../shared/orders-api.ts'

export interface Lane {
  lane: string
  /** Sending address or pool; `any`: no address is set. */
  source: string
  /** Servers that take the mail, such as a common MX host. */
  site: string
  provider: string
  queued: number
  due: number
  deferred: number
  paused: number
  connections: number
  /** Null: no such limit, or the lane is idle. */
  limits: {
    connections: number | null
    messages_per_connection: number | null
    messages_per_second: number | null
  }
  /** RFC 3339. */
  backed_off_until: string | null
  backed_off_why: string | null
  /** The provider refuses the address: `closed` until `until`, then one message at a time tries it. */
  blocked: { state: 'closed' | 'probing'; reply: string; until: string } | null
  /** What the operator has ordered for the site. */
  override: Override | null
  oldest_due: string | null
}

export interface QueueDomain {
  domain: string
  queued: number
  deferred: number
  paused: number
  oldest: string | null
}

export const ACTIONS = ['pause', 'resume', 'retry', 'move', 'drop'] as const
export type QueueAction = (typeof ACTIONS)[number]

export const FILTERS = [
  'recipient_domain',
  'provider',
  'lane',
  'domain',
  'tag',
  'message_id',
  'older_than',
] as const
export type FilterName = (typeof FILTERS)[number]
export type QueueFilter = Partial<Record<FilterName, string>>

const BASE = '/sendwright/v1/queue'
/** Prefix of every query about the queue. */
export const QUEUE_KEY = 'queue'
const REFRESH_MS = 3_000 // the service keeps its counts for two seconds

export const lanesQuery = queryOptions({
  queryKey: [QUEUE_KEY, 'lanes'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ items: Lane[] }>(`${BASE}/lanes`, signal)).items,
  refetchInterval: REFRESH_MS,
})

export const queueDomainsQuery = queryOptions({
  queryKey: [QUEUE_KEY, 'domains'],
  queryFn: async ({ signal }) =>
    valueOrThrow(
      await getJson<{ sending: QueueDomain[]; recipient: QueueDomain[] }>(`${BASE}/domains`, signal),
    ),
  refetchInterval: REFRESH_MS,
})

/** Replies that no rule of the service knows (own-operations.md section 11). */
export interface UnknownReplies {
  days: number
  items: { text: string; count: number; sample: string; last_at: string }[]
}

export const unknownRepliesQuery = queryOptions({
  queryKey: ['unknown-replies'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<UnknownReplies>('/sendwright/v1/unknown-replies', signal)),
})

export interface Order {
  action: QueueAction
  filter: QueueFilter
  /** For `move`. */
  pool?: string
}

const run = (order: Order, dryRun: boolean) =>
  sendJson<{ matched: number; changed: number }>('POST', `${BASE}/actions`, { ...order, dry_run: dryRun })

export const runAction = async (order: Order) => valueOrThrow(await run(order, false))

export const countAction = async (order: Order) => valueOrThrow(await run(order, true)).matched

/** How many messages the action would change now. */
export const countQuery = (order: Order) =>
  queryOptions({
    queryKey: [QUEUE_KEY, 'count', order],
    queryFn: () => countAction(order),
    staleTime: 0,
    gcTime: 0,
    enabled: Object.keys(order.filter).length > 0 && (order.action !== 'move' || (order.pool ?? '') !== ''),
  })

export const poolsQuery = queryOptions({
  queryKey: ['ip-pools'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson<{ ip_pools: { pool_id: string; name: string }[] }>('/v3/ip_pools', signal))
      .ip_pools,
})
