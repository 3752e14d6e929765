import { QueryCache, QueryClient, queryOptions } from '@tanstack/react-query'
import { type Answer, type ApiFailure, listDomains, listEvents, readMessage, readSystem } from './api.ts'

declare module '@tanstack/react-query' {
  interface Register {
    defaultError: Error
  }
}

/** Carries a failure through the query library, which knows a failed query by what it throws. */
export class RefusedRequest extends Error {
  readonly status: number
  readonly retrySeconds: number | undefined

  constructor(failure: ApiFailure) {
    super(failure.message)
    this.name = 'RefusedRequest'
    this.status = failure.status
    this.retrySeconds = failure.retrySeconds
  }
}

export function valueOrThrow<T>(answer: Answer<T>): T {
  if (answer.ok) return answer.value
  throw new RefusedRequest(answer.failure)
}

export const isUnauthorized = (error: Error | null) => error instanceof RefusedRequest && error.status === 401

const RETRIES_MAX = 2 // a restart of the service takes a second or two; a refusal stays one
const EVENTS_REFRESH_MS = 5_000 // opens and clicks come while one looks

export const systemQuery = queryOptions({
  queryKey: ['system'],
  queryFn: async ({ signal }) => valueOrThrow(await readSystem(signal)),
})

export const domainsQuery = queryOptions({
  queryKey: ['domains'],
  queryFn: async ({ signal }) => valueOrThrow(await listDomains(signal)).items,
})

export const messageQuery = (id: string) =>
  queryOptions({
    queryKey: ['inbox-message', id],
    queryFn: async ({ signal }) => valueOrThrow(await readMessage(id, signal)),
    staleTime: Number.POSITIVE_INFINITY, // a captured message never changes
  })

export const eventsQuery = (domain: string, messageId: string) =>
  queryOptions({
    queryKey: ['events', domain, messageId],
    queryFn: async ({ signal }) => valueOrThrow(await listEvents(domain, messageId, signal)).items,
    refetchInterval: EVENTS_REFRESH_MS,
    enabled: domain !== '' && messageId !== '',
  })

/** A 401 to any query makes the session's own query run again, and that one decides what is shown. */
export function createQueries(): QueryClient {
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError(error, query) {
        if (isUnauthorized(error) && query.queryKey[0] !== systemQuery.queryKey[0])
          void queries.invalidateQueries({ queryKey: systemQuery.queryKey })
      },
    }),
    defaultOptions: {
      // A service on one's own machine answers without a network too, whatever the browser says of itself.
      mutations: { networkMode: 'always' },
      queries: {
        networkMode: 'always',
        staleTime: 30_000,
        retry(failures, error) {
          const transient = error instanceof RefusedRequest && (error.status === 0 || error.status >= 500)
          return transient && failures < RETRIES_MAX
        },
      },
    },
  })
  return queries
}
