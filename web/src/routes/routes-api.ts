/** The operations of routes (docs/api/routes-inbound.md). */
import { queryOptions } from '@tanstack/react-query'
import { followJson, getJson, sendForm, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'
import { RefusedRequest, valueOrThrow } from '../queries.ts'

export type Route = Api.Route

export type RouteFields = Omit<Route, 'id' | 'created_at'>

const PATH = '/v3/routes'
const NOT_FOUND = 404

export const ROUTES_KEY = 'routes'
export const ROUTES_PAGE_SIZE = 50 // about three screens
export const ROUTES_PATH = `${PATH}?limit=${ROUTES_PAGE_SIZE}`

export const routesQuery = (path: string) =>
  queryOptions({
    queryKey: [ROUTES_KEY, path],
    queryFn: async ({ signal }) => valueOrThrow(await followJson<'GET /v3/routes'>(path, signal)),
  })

export const routeQuery = (id: string) =>
  queryOptions({
    queryKey: [ROUTES_KEY, 'one', id],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${PATH}/${encodeURIComponent(id)}`, signal)).route,
  })

/** The first route that is true for mail to the address; null: none is. */
export const matchQuery = (address: string) =>
  queryOptions({
    queryKey: [ROUTES_KEY, 'match', address],
    enabled: address !== '',
    async queryFn({ signal }): Promise<Route | null> {
      const query = new URLSearchParams({ address })
      const answer = await getJson(`${PATH}/match?${query}`, signal)
      if (answer.ok) return answer.value.route
      if (answer.failure.status === NOT_FOUND) return null
      throw new RefusedRequest(answer.failure)
    },
  })

function formOf({ priority, description, expression, actions }: RouteFields): URLSearchParams {
  const form = new URLSearchParams({ priority: String(priority), description, expression })
  for (const action of actions) form.append('action', action)
  return form
}

export const createRoute = async (fields: RouteFields) =>
  valueOrThrow(await sendForm('POST', PATH, formOf(fields))).route

export const updateRoute = async (id: string, fields: RouteFields) =>
  valueOrThrow(await sendForm('PUT', `${PATH}/${encodeURIComponent(id)}`, formOf(fields))).route

export const deleteRoute = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${PATH}/${encodeURIComponent(id)}`))
