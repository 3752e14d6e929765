/** The operations of the queue that the page uses (docs/api/own-operations.md section 3). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'

export type Lane = Api.Lane

export type QueueDomain = Api.QueueDomain

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
export const REFRESH_MS = 3_000 // the service keeps its counts for two seconds

export const lanesQuery = queryOptions({
  queryKey: [QUEUE_KEY, 'lanes'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${BASE}/lanes`, signal)).items,
  refetchInterval: REFRESH_MS,
})

export const queueDomainsQuery = queryOptions({
  queryKey: [QUEUE_KEY, 'domains'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(`${BASE}/domains`, signal)),
  refetchInterval: REFRESH_MS,
})

export type HeldContent = Api.ContentHold

const HOLDS = '/sendwright/v1/content-holds'

/** What the content check keeps (docs/api/content-check.md section 3). */
export const heldContentQuery = queryOptions({
  queryKey: [QUEUE_KEY, 'held-content'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(HOLDS, signal)).items,
  refetchInterval: 10 * REFRESH_MS,
})

export const releaseHeld = async (id: string) =>
  valueOrThrow(await sendJson('POST', `${HOLDS}/${id}/release`))

export const dropHeld = async (id: string) => valueOrThrow(await sendJson('DELETE', `${HOLDS}/${id}`))

export type UnknownReplies = Api.Answers['GET /sendwright/v1/unknown-replies']

export const unknownRepliesQuery = queryOptions({
  queryKey: ['unknown-replies'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/sendwright/v1/unknown-replies', signal)),
})

export interface Order {
  action: QueueAction
  filter: QueueFilter
  /** For `move`. */
  pool?: string
}

const run = (order: Order, dryRun: boolean) =>
  sendJson('POST', `${BASE}/actions`, { ...order, dry_run: dryRun })

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
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v3/ip_pools', signal)).ip_pools,
})
