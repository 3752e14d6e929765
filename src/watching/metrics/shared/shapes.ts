/** Links to figures (metrics-logs.md section 7). */
import {
  anyJson,
  integer,
  list,
  map,
  media,
  named,
  nullable,
  object,
  optional,
  rfc3339,
  text,
} from '../../../base/shape.ts'
import { ACCOUNT_METRICS } from '../figures.ts'
import { ATTRIBUTES } from '../request.ts'
import { metricsQuery } from '../shapes.ts'

export const SHARED_FIGURE = named('SharedFigure', 'A link that shows one figure', {
  id: text('Id of the link'),
  title: text('Heading of its page'),
  key_id: text('Key that made it, or session of a user or the operator'),
  user_id: nullable(text('User of that key or session, with whose rights it ends')),
  query: map('What is counted, as it was given', anyJson('Member of the query')),
  created_at: rfc3339('When it was made'),
  expires_at: rfc3339('Until when it is valid'),
})
export const SHARED_FIGURES = object('Links that are valid, newest first', {
  items: list('At most 50', SHARED_FIGURE),
})
export const SHARED_FIGURE_MADE = object('The link, whose address is shown this once', {
  ...SHARED_FIGURE.fields,
  url: text('Address of its page'),
})
export const SHARED_PAGE = media('text/html', 'The page')
export const NO_LINK = media('text/plain', 'No such link, or not any more')
export const NEW_SHARED_FIGURE = object('What to show', {
  title: text('Heading of the page, 1 to 100 characters', { example: 'Delivered by day' }),
  days: optional(integer('How long it is valid, 1 to 90', { unit: 'days', default: 7 })),
  query: metricsQuery(ACCOUNT_METRICS, ATTRIBUTES),
})
