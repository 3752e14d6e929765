/** Answers of the operations on routes (routes-inbound.md section 1). */
import { gmtDate, integer, list, named, object, text } from '../../base/shape.ts'

export const ROUTE = named('Route', 'What is done with received mail of a kind', {
  id: text('24 hex digits', { example: '4f3bad2335335426750048c6' }),
  priority: integer('Routes are evaluated from the lowest number to the highest'),
  description: text('For people'),
  expression: text('Which mail', { example: 'match_recipient(".*@mail.example.com")' }),
  actions: list('What is done, in this order', text('Action', { example: 'store()' })),
  created_at: gmtDate('When it was made'),
})

const MESSAGE = text('What was done')

export const ONE_ROUTE = object('The route', { route: ROUTE })
export const ROUTE_CREATED = object('Created', { message: MESSAGE, route: ROUTE })
/** Some clients read the members of the route nested, others at top level. */
export const ROUTE_UPDATED = object('Updated; the route is nested and at top level', {
  message: MESSAGE,
  route: ROUTE,
  ...ROUTE.fields,
})
export const ROUTE_DELETED = object('Deleted', { message: MESSAGE, id: ROUTE.fields.id })
export const ROUTES = named('RouteList', 'Routes in the order of evaluation', {
  total_count: integer('Number of all routes of the account'),
  items: list('The routes asked for', ROUTE),
})
