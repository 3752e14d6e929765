/** Routes over HTTP (routes-inbound.md section 1). */

import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  givenParam,
  type InputOf,
  integerParam,
  limitParam,
  otherParam,
  skipParam,
  textParam,
  textsParam,
} from '../../platform/http/request/inputs.ts'
import { routeView } from './match/route.ts'
import type { RouteChanges, Routes } from './service.ts'
import { ONE_ROUTE, ROUTE_CREATED, ROUTE_DELETED, ROUTE_UPDATED, ROUTES } from './shapes.ts'
import type { RouteStore } from './store.ts'

const api = operationsOf({ tag: 'Routes', auth: { area: 'routes' } })
const PATH = '/v3/routes'
const PRIORITY = 'Routes are evaluated from the lowest number to the highest'
const PRIORITIES = { min: -2_147_483_648, max: 2_147_483_647 }
const EXPRESSION =
  'Which mail: `match_recipient("...")`, `match_header("name", "...")`, `catch_all()`, and, or, not'
const ACTION = 'What is done: `forward("...")`, `store()`, `store(notify="...")`, `stop()`'
const PARAMS = {
  priority: integerParam(PRIORITY, PRIORITIES),
  description: givenParam('For people'),
  expression: textParam(EXPRESSION),
  action: textsParam(ACTION),
}

export function routeRoutes(routes: Routes, table: RouteStore): Operation[] {
  return [
    api.post(PATH, {
      id: 'createRoute',
      audit: { action: 'route.create', given: ['expression'], made: ['route.id'] },
      summary: 'Make a route for received mail',
      params: {
        expression: textParam(EXPRESSION, { required: true }),
        action: textsParam(ACTION, { required: true, missing: "'action' parameter is required" }),
        priority: integerParam(PRIORITY, { ...PRIORITIES, default: 0 }),
        description: PARAMS.description,
      },
      answers: { 200: ROUTE_CREATED },
      async handler({ input, caller }) {
        const { action: actions, ...given } = input()
        const route = await routes.create(caller.accountId, { ...given, actions })
        return { message: 'Route has been created', route: routeView(route) }
      },
    }),
    api.get(PATH, {
      id: 'listRoutes',
      summary: 'List the routes of the account in the order of evaluation',
      params: { limit: limitParam(100, 1000), skip: skipParam() },
      answers: { 200: ROUTES },
      async handler({ input, caller }) {
        const { routes: found, total } = await table.list(caller.accountId, input())
        return { total_count: total, items: found.map(routeView) }
      },
    }),
    api.get(`${PATH}/match`, {
      id: 'matchRoute',
      summary: 'The first route that is true for mail to an address',
      params: { address: textParam('May have a display name', { required: true }) },
      answers: { 200: ONE_ROUTE, 404: 'Route not found' },
      handler: async ({ input, caller }) => ({
        route: routeView(await routes.match(caller.accountId, input().address)),
      }),
    }),
    ...oneRoute(routes),
  ]
}

function oneRoute(routes: Routes): Operation[] {
  const path = `${PATH}/{route_id}` as const
  return [
    api.get(path, {
      id: 'readRoute',
      summary: 'Read a route',
      answers: { 200: ONE_ROUTE },
      handler: async ({ path: parts, caller }) => ({
        route: routeView(await routes.read(caller.accountId, parts.route_id)),
      }),
    }),
    api.put(path, {
      id: 'updateRoute',
      audit: { action: 'route.update', given: ['expression'] },
      summary: 'Change a route; given actions replace all of them',
      params: { id: otherParam('Accepted and without effect'), ...PARAMS },
      answers: { 200: ROUTE_UPDATED },
      async handler({ input, path: parts, caller }) {
        const view = routeView(await routes.update(caller.accountId, parts.route_id, changes(input())))
        return { message: 'Route has been updated', route: view, ...view }
      },
    }),
    api.delete(path, {
      id: 'deleteRoute',
      audit: { action: 'route.delete' },
      summary: 'Delete a route',
      answers: { 200: ROUTE_DELETED },
      async handler({ path: parts, caller }) {
        await routes.remove(caller.accountId, parts.route_id)
        return { message: 'Route has been deleted', id: parts.route_id }
      },
    }),
  ]
}

/** An empty description clears it; an empty expression or action counts as not given (rule 2). */
function changes({ priority, description, expression, action }: InputOf<typeof PARAMS>): RouteChanges {
  return { priority, description, expression, actions: action.length > 0 ? action : undefined }
}
