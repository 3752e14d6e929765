import { queryOptions } from '@tanstack/react-query'
import { getOwnJson } from '../api.ts'
import { valueOrThrow } from '../queries.ts'
import { type ApiDescription, readDescription } from './description.ts'

export const referenceQuery = queryOptions({
  queryKey: ['api-reference'],
  queryFn: async ({ signal }) =>
    readDescription(valueOrThrow(await getOwnJson('/openapi.json', signal)) as unknown as ApiDescription),
  staleTime: Number.POSITIVE_INFINITY, // made once, at the start of the service
  structuralSharing: false, // it has a Map
  meta: { needsNoSession: true },
})
