/** The search parameters of the activity list, and the query of the logs that they stand for. Pure. */
import { condition, type LogFilter, type LogQuery } from './activity-api.ts'

export const FIELDS = ['recipient', 'from', 'subject', 'tag', 'message_id', 'domain'] as const
export type Field = (typeof FIELDS)[number]

export const KINDS = [
  'accepted',
  'delivered',
  'deferred',
  'bounced',
  'suppressed',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
  'rejected',
  'stored',
] as const
export type Kind = (typeof KINDS)[number]

export const SPANS = ['1h', '24h', '7d', '30d'] as const
export type Span = (typeof SPANS)[number]
export const DEFAULT_SPAN: Span = '7d'

export interface ActivitySearch {
  /** What is sought, in `by`; without `by` the field follows from its form. */
  q?: string
  by?: Field
  event?: Kind
  span?: Span
  provider?: string
  domain?: string
  /** Opens and clicks of people, not of machines; for these events only. */
  people?: 'only'
  /** Token of the page. */
  at?: string
}

export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const text = (name: string) => {
    const value = search[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const oneOf = <T extends string>(name: string, values: readonly T[]) =>
    values.find((value) => value === search[name])
  const all = {
    q: text('q'),
    by: oneOf('by', FIELDS),
    event: oneOf('event', KINDS),
    span: oneOf('span', SPANS),
    provider: text('provider'),
    domain: text('domain'),
    people: oneOf('people', ['only'] as const),
    at: text('at'),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as ActivitySearch
}

/** The field that a text is sought in: an id of ours is recognised, anything with an @ is a recipient, else a subject. */
export function fieldOf(text: string): Field {
  if (/^<?\d{14}\.[0-9a-f]{8,16}@\S+$/i.test(text)) return 'message_id'
  return text.includes('@') ? 'recipient' : 'subject'
}

const WHOLE_ADDRESS = /^[^\s@<>]+@[^\s@<>.]+(?:\.[^\s@<>.]+)+$/

/** What the logs are asked for what was typed. A whole address is looked up in an index, a part of one is sought. */
function sought(text: string, field: Field): LogFilter {
  const value = text.trim().replace(/^<|>$/g, '')
  const isExact =
    field === 'tag' || field === 'message_id' || (field === 'recipient' && WHOLE_ADDRESS.test(value))
  return condition(field, isExact ? '=' : 'contains', value)
}

/** Machines cause many of these events: image proxies and scanners of links. */
export const isVisit = (event: string | undefined) => event === 'opened' || event === 'clicked'

/** Events and the metrics whose events they are. */
const METRIC_OF: Partial<Record<Kind, readonly string[]>> = {
  deferred: ['temporary_failed'],
  bounced: ['bounced'],
  suppressed: ['suppressed_bounces', 'suppressed_unsubscribed', 'suppressed_complaints'],
}

const PAGE_SIZE = 50 // about three screens

export function logQueryOf(search: ActivitySearch): LogQuery {
  if (search.at !== undefined) return { pagination: { token: search.at, limit: PAGE_SIZE } }
  const { q, by, event, span = DEFAULT_SPAN, provider, domain, people } = search
  const filters = [
    ...(q === undefined ? [] : [sought(q, by ?? fieldOf(q.trim()))]),
    ...(provider === undefined ? [] : [condition('recipient_provider', '=', provider)]),
    ...(domain === undefined ? [] : [condition('domain', '=', domain)]),
    ...(people !== undefined && isVisit(event) ? [condition('bot', '=', 'None')] : []),
  ]
  const metrics = event === undefined ? undefined : METRIC_OF[event]
  return {
    duration: span,
    ...(metrics !== undefined ? { metric_events: metrics } : event !== undefined && { events: [event] }),
    ...(filters.length > 0 && { filter: { AND: filters } }),
    pagination: { limit: PAGE_SIZE },
  }
}

/** Whether the service looks the query up in an index, so that it may be asked every few seconds. */
export function isIndexed(query: LogQuery): boolean {
  return (query.filter?.AND ?? []).every(
    ({ attribute, comparator }) =>
      comparator === '=' && ['recipient', 'tag', 'message_id', 'domain'].includes(attribute),
  )
}
