/** Routes over HTTP (routes-inbound.md section 1). */
import { BadRequest } from '../base/errors.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import { routeView } from './route.ts'
import type { RouteChanges, Routes } from './service.ts'
import type { RouteStore } from './store.ts'

const COMMON = { tag: 'Routes' } as const
const PATH = '/v3/routes'
const READ = { area: 'routes', access: 'read' } as const
const WRITE = { area: 'routes', access: 'write' } as const
const ONE = { 200: { description: 'The route' } } as const
const PRIORITY_MAX = 2_147_483_647

const PRIORITY: ParamDoc = {
  name: 'priority',
  type: 'integer',
  description: 'Routes are evaluated from the lowest number to the highest',
  default: 0,
}
const DESCRIPTION: ParamDoc = { name: 'description', type: 'string', description: 'For people' }
const EXPRESSION: ParamDoc = {
  name: 'expression',
  type: 'string',
  description:
    'Which mail: `match_recipient("...")`, `match_header("name", "...")`, `catch_all()`, and, or, not',
}
const ACTION: ParamDoc = {
  name: 'action',
  type: 'string',
  repeated: true,
  description: 'What is done: `forward("...")`, `store()`, `store(notify="...")`, `stop()`',
}

export function routeRoutes(routes: Routes, table: RouteStore): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'POST',
      path: PATH,
      id: 'createRoute',
      audit: { action: 'route.create', given: ['expression'], made: ['route.id'] },
      summary: 'Make a route for received mail',
      auth: WRITE,
      params: [PRIORITY, DESCRIPTION, { ...EXPRESSION, required: true }, { ...ACTION, required: true }],
      responses: ONE,
      async handler({ params, caller }) {
        const expression = params.required('expression')
        const actions = params.texts('action')
        if (actions.length === 0) throw new BadRequest("'action' parameter is required")
        const route = await routes.create(caller.accountId, { ...readChanges(params), expression, actions })
        return { message: 'Route has been created', route: routeView(route) }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: PATH,
      id: 'listRoutes',
      summary: 'List the routes of the account in the order of evaluation',
      auth: READ,
      params: [
        { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
      ],
      responses: { 200: { description: 'Routes' } },
      async handler({ params, caller }) {
        const page = limitAndSkip(params, { default: 100, max: 1000 })
        const { routes: found, total } = await table.list(caller.accountId, page)
        return { total_count: total, items: found.map(routeView) }
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: `${PATH}/match`,
      id: 'matchRoute',
      summary: 'The first route that is true for mail to an address',
      auth: READ,
      params: [{ name: 'address', type: 'string', required: true, description: 'May have a display name' }],
      responses: ONE,
      handler: async ({ params, caller }) => ({
        route: routeView(await routes.match(caller.accountId, params.required('address'))),
      }),
    }),
    ...oneRoute(routes),
  ]
}

function oneRoute(routes: Routes): Operation[] {
  const path = `${PATH}/{route_id}` as const
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path,
      id: 'readRoute',
      summary: 'Read a route',
      auth: READ,
      params: [],
      responses: ONE,
      handler: async ({ path: parts, caller }) => ({
        route: routeView(await routes.read(caller.accountId, parts.route_id)),
      }),
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path,
      id: 'updateRoute',
      audit: { action: 'route.update', given: ['expression'] },
      summary: 'Change a route; given actions replace all of them',
      auth: WRITE,
      params: [
        { name: 'id', type: 'string', description: 'Accepted and without effect' },
        PRIORITY,
        DESCRIPTION,
        EXPRESSION,
        ACTION,
      ],
      responses: ONE,
      async handler({ params, path: parts, caller }) {
        const view = routeView(await routes.update(caller.accountId, parts.route_id, readChanges(params)))
        return { message: 'Route has been updated', route: view, ...view }
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path,
      id: 'deleteRoute',
      audit: { action: 'route.delete' },
      summary: 'Delete a route',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Deleted' } },
      async handler({ path: parts, caller }) {
        await routes.remove(caller.accountId, parts.route_id)
        return { message: 'Route has been deleted', id: parts.route_id }
      },
    }),
  ]
}

/** An empty description clears it; an empty expression or action counts as not given (rule 2). */
function readChanges(params: Params): RouteChanges {
  const actions = params.texts('action')
  return {
    priority: params.integer('priority', { min: -PRIORITY_MAX - 1, max: PRIORITY_MAX }),
    description: params.given('description'),
    expression: params.text('expression'),
    actions: actions.length > 0 ? actions : undefined,
  }
}
