/**
 * Which index answers a query. Pure. Every filter is held against every event in the end (`filter.ts`); the
 * plan only finds the smallest stretch of an index that holds all matches.
 *
 * Order of choice: message id, recipient, tag (with event), event, time. Each value (or pair of tag and event)
 * is a *branch*: one stretch of an index in order of time, of which the first rows are taken and merged.
 */
import { EVENT_NAMES } from './event.ts'
import { bare, evaluate, exactWords, type Filter, fold, isWholeAddress } from './filter.ts'

export type Branch =
  | { by: 'message'; messageId: string }
  | { by: 'recipient'; recipient: string }
  | { by: 'tag'; tag: string; event: string }
  | { by: 'event'; event: string }
  | { by: 'time' }

export interface Plan {
  /** Empty: nothing can match. */
  branches: Branch[]
  /** Conditions that hold for every match, to be checked beside the branch; null: none. */
  events: string[] | null
  recipients: string[] | null
}

/** More stretches than this cost more than one longer one. */
const BRANCHES_MAX = 60

export function planOf(filters: readonly Filter[]): Plan {
  const events = eventsOf(filters)
  const recipients = lowered(wholeValues(filters, 'recipient'))
  const messageIds = wholeValues(filters, 'message-id')
  const tags = lowered(wholeValues(filters, 'tags'))
  const named = events ?? EVENT_NAMES
  const ways: Branch[][] = [
    (messageIds ?? []).map((messageId) => ({ by: 'message', messageId })),
    (recipients ?? []).map((recipient) => ({ by: 'recipient', recipient })),
    (tags ?? []).flatMap((tag) => named.map((event) => ({ by: 'tag', tag, event }))),
    (events ?? []).map((event) => ({ by: 'event', event })),
  ]
  const best = ways.find((way) => way.length > 0 && way.length <= BRANCHES_MAX) ?? [{ by: 'time' }]
  return { branches: events?.length === 0 ? [] : best, events, recipients }
}

/** The event names that all `event` and `severity` filters let through; null: every name. */
function eventsOf(filters: readonly Filter[]): string[] | null {
  const given = filters.filter(({ name }) => name === 'event')
  const passes = (event: string) =>
    given.every(({ expression }) =>
      evaluate(expression, (term) => term.kind !== 'compare' && term.text === event),
    )
  // Only failed events have a severity: a filter that asks for one lets nothing else through.
  const failedOnly = filters.some(
    ({ name, expression }) => name === 'severity' && exactWords(expression, () => true),
  )
  if (given.length === 0) return failedOnly ? ['failed'] : null
  return EVENT_NAMES.filter((event) => passes(event) && (!failedOnly || event === 'failed'))
}

function wholeValues(filters: readonly Filter[], name: Filter['name']): string[] | null {
  const isWhole = name === 'tags' ? () => true : isWholeAddress
  const sets = filters
    .filter((filter) => filter.name === name)
    .flatMap(({ expression }) => exactWords(expression, isWhole) ?? [])
  const smallest = sets.sort((a, b) => a.size - b.size)[0]
  return smallest ? unique([...smallest].map((value) => (name === 'message-id' ? bare(value) : value))) : null
}

const unique = (values: string[]) => [...new Set(values)]

/** Rows hold recipients and tags in lower case, message ids as they were written. */
const lowered = (values: string[] | null) => values && unique(values.map(fold))
