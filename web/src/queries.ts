import { QueryCache, QueryClient, queryOptions } from '@tanstack/react-query'
import {
  type Answer,
  type ApiFailure,
  listEvents,
  readMessage,
  readSignInMethods,
  readSystem,
} from './api.ts'

declare module '@tanstack/react-query' {
  interface Register {
    defaultError: Error
  }
}

/** Passes a failure through the query library, which recognises a failed query by its exception. */
export class RefusedRequest extends Error {
  readonly status: number
  readonly retrySeconds: number | undefined
  readonly codeNeeded: boolean
  readonly passkey: ApiFailure['passkey']
  readonly proofNeeded: boolean

  constructor(failure: ApiFailure) {
    super(failure.message)
    this.name = 'RefusedRequest'
    this.status = failure.status
    this.retrySeconds = failure.retrySeconds
    this.codeNeeded = failure.codeNeeded === true
    this.passkey = failure.passkey
    this.proofNeeded = failure.proofNeeded === true
  }
}

export function valueOrThrow<T>(answer: Answer<T>): T {
  if (answer.ok) return answer.value
  throw new RefusedRequest(answer.failure)
}

export const isUnauthorized = (error: Error | null) => error instanceof RefusedRequest && error.status === 401

const RETRIES_MAX = 2 // a restart of the service takes a second or two; a refusal is permanent
const EVENTS_REFRESH_MS = 5_000 // opens and clicks arrive while the page is open

export const systemQuery = queryOptions({
  queryKey: ['system'],
  queryFn: async ({ signal }) => valueOrThrow(await readSystem(signal)),
})

export const signInMethodsQuery = queryOptions({
  queryKey: ['sign-in-methods'],
  queryFn: async () => valueOrThrow(await readSignInMethods()),
  staleTime: Number.POSITIVE_INFINITY, // set at the start of the service
  meta: { needsNoSession: true },
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

/**
 * A 401 to a query that needs a session runs the session's own query again, which decides what is
 * shown. The sign-in page makes queries too: a 401 to one of those would load that page again, for ever.
 */
export function createQueries(): QueryClient {
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError(error, query) {
        const isSessionQuery = query.queryKey[0] === systemQuery.queryKey[0]
        if (isUnauthorized(error) && !isSessionQuery && query.meta?.needsNoSession !== true)
          void queries.invalidateQueries({ queryKey: systemQuery.queryKey })
      },
    }),
    defaultOptions: {
      // A local service responds without a network too, even if the browser reports that it is offline.
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
