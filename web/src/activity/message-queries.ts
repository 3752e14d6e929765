import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { RefusedRequest, valueOrThrow } from '../queries.ts'
import { placePath } from '../shared/page/paging.ts'
import {
  condition,
  deliveriesPath,
  readDeliveries,
  readDialogues,
  readLogs,
  readRules,
  readSource,
  readStored,
} from './activity-api.ts'

/** Prefix of every query about a message. */
export const messageKey = (id: string) => ['activity-message', id] as const

const DELIVERIES_SHOWN = 25 // a screen or two of recipients
const EVENTS_MAX = 100 // the most that one page of logs holds
const REFRESH_MS = 5_000 // attempts, opens and clicks happen while the page is open
/** Longer than events are kept anywhere. */
const ALL_TIME = '1000d'

/** The first events of the message, which say what it is. */
export const headQuery = (id: string) =>
  queryOptions({
    queryKey: [...messageKey(id), 'head'],
    queryFn: async ({ signal }) =>
      valueOrThrow(
        await readLogs(
          {
            duration: ALL_TIME,
            filter: { AND: [condition('message_id', '=', id)] },
            pagination: { sort: 'timestamp:asc', limit: 1 },
          },
          signal,
        ),
      ).items[0] ?? null,
    // Logs show an event within five seconds, and the message may be that new.
    refetchInterval: ({ state }) => (state.data === null ? REFRESH_MS : false),
  })

/** Events of one recipient of the message, oldest first. */
export const timelineQuery = (id: string, recipient: string) =>
  queryOptions({
    queryKey: [...messageKey(id), 'events', recipient],
    queryFn: async ({ signal }) => {
      const filter = {
        AND: [condition('message_id', '=', id), condition('recipient', '=', recipient)],
      }
      const pagination = { sort: 'timestamp:desc', limit: EVENTS_MAX }
      const page = valueOrThrow(await readLogs({ duration: ALL_TIME, filter, pagination }, signal))
      return [...page.items].reverse()
    },
    refetchInterval: REFRESH_MS,
  })

/** Null: the message is no longer stored. */
export const deliveriesQuery = (id: string, at: string | undefined) =>
  queryOptions({
    queryKey: [...messageKey(id), 'deliveries', at ?? ''],
    queryFn: async ({ signal }) => {
      const answer = await readDeliveries(placePath(deliveriesPath(id, DELIVERIES_SHOWN), at), signal)
      return !answer.ok && answer.failure.status === 404 ? null : valueOrThrow(answer)
    },
    refetchInterval: ({ state }) => (state.data?.items.some(isOpen) ? REFRESH_MS : false),
    placeholderData: keepPreviousData,
  })

/** Not delivered and not failed yet. */
export const isOpen = ({ state }: { state: string }) => ['scheduled', 'queued', 'sending'].includes(state)

export const dialoguesQuery = (deliveryId: string, attempts: number) =>
  queryOptions({
    queryKey: ['dialogues', deliveryId, attempts],
    queryFn: async ({ signal }) => valueOrThrow(await readDialogues(deliveryId, signal)).items,
  })

export const rulesQuery = queryOptions({
  queryKey: ['reply-rules'],
  queryFn: async ({ signal }) => valueOrThrow(await readRules(signal)),
  staleTime: Number.POSITIVE_INFINITY, // part of the release
})

/** Null: the content is no longer stored. */
export const storedQuery = (domain: string, key: string) =>
  queryOptions({
    queryKey: ['stored-message', domain, key],
    queryFn: async ({ signal }) => {
      try {
        return valueOrThrow(await readStored(domain, key, signal))
      } catch (error) {
        if (error instanceof RefusedRequest && error.status === 404) return null
        throw error
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
  })

export const sourceQuery = (domain: string, key: string) =>
  queryOptions({
    queryKey: ['stored-source', domain, key],
    queryFn: async ({ signal }) => valueOrThrow(await readSource(domain, key, signal))['body-mime'],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  })
