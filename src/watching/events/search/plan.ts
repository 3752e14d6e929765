/**
 * Chooses the index for a query. Every filter is finally applied to every event that was read (`passes`); the plan only
 * chooses the smallest part of an index that contains all matches.
 *
 * Order of preference: message id, recipient, tag (with event), event, time. Lists of several domains have the events of
 * their accounts instead of time (`src/watching/logs`). Each value (or pair of tag and event) is a *branch*: one range of an index in order of time. The first rows of all branches are merged.
 */

import { EVENT_NAMES, recipientHash } from '../event.ts'
import { bare, evaluate, exactWords, type Filter, fold, isWholeAddress } from './filter.ts'
import type { CommitPosition, Gap, PageRequest } from './page-request.ts'

export type Branch =
  | { by: 'id'; id: string }
  | { by: 'message'; messageId: string }
  | { by: 'recipient'; hash: number }
  | { by: 'tag'; domainName: string; tag: string; event: string }
  | { by: 'event'; domainName: string; event: string }
  | { by: 'account'; accountId: string; event: string }
  | { by: 'time'; accountId: string; domainName: string }

export interface Plan {
  /** All of one kind. Empty: nothing can match. */
  branches: readonly Branch[]
  /** Conditions that every match satisfies, checked in addition to the branch; null: none. */
  events: readonly string[] | null
  /** Hashes of domain and recipient (`recipientHash`). */
  hashes: readonly number[] | null
}

/** More ranges than this cost more than a single longer one. */
const BRANCHES_MAX = 60

export function planOf(
  filters: readonly Filter[],
  { accountId, domainName }: { accountId: string; domainName: string },
): Plan {
  const events = eventsOf(filters)
  const recipients = lowered(wholeValues(filters, 'recipient'))
  const messageIds = wholeValues(filters, 'message-id')
  const tags = lowered(wholeValues(filters, 'tags'))
  const eventNames = events ?? EVENT_NAMES
  const hashes = recipients?.map((recipient) => recipientHash(domainName, recipient)) ?? null
  const candidates: Branch[][] = [
    (messageIds ?? []).map((messageId) => ({ by: 'message', messageId })),
    (hashes ?? []).map((hash) => ({ by: 'recipient', hash })),
    (tags ?? []).flatMap((tag) => eventNames.map((event) => ({ by: 'tag', domainName, tag, event }))),
    (events ?? []).map((event) => ({ by: 'event', domainName, event })),
  ]
  const best = candidates.find(({ length }) => length > 0 && length <= BRANCHES_MAX)
  const branches = best ?? [{ by: 'time', accountId, domainName }]
  return { branches: events?.length === 0 ? [] : branches, events, hashes }
}

/** The event names that satisfy all `event` and `severity` filters; null: every name. */
function eventsOf(filters: readonly Filter[]): string[] | null {
  const eventFilters = filters.filter(({ name }) => name === 'event')
  const passes = (event: string) =>
    eventFilters.every(({ expression }) =>
      evaluate(expression, (term) => term.kind !== 'compare' && term.text === event),
    )
  // Only failed events have a severity: a filter that requires one excludes all others.
  const failedOnly = filters.some(
    ({ name, expression }) => name === 'severity' && exactWords(expression, () => true),
  )
  if (eventFilters.length === 0) return failedOnly ? ['failed'] : null
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

/** Rows have recipients and tags in lower case, message ids as written. */
const lowered = (values: string[] | null) => values && unique(values.map(fold))

export interface KeySearch {
  /** What the list is of; `domainNames` null: all domains of these accounts. */
  scope: { accountIds: readonly string[]; domainNames: readonly string[] | null }
  request: Pick<PageRequest, 'ascending' | 'up'>
  plan: Plan
  /** Microseconds, both inclusive. */
  lowUs: number
  highUs: number
  /** Where the area *since* begins. */
  start: CommitPosition
}

/** One read of an area: `size` keys after `gap`. */
export type Scan = KeySearch & { gap: Gap | null; size: number }

export interface Key {
  seq: number
  tx: number
  timestamp_us: number
}

export const keyOfRow = (row: Record<string, unknown>): Key => ({
  seq: Number(row['seq']),
  tx: Number(row['tx']),
  timestamp_us: Number(row['timestamp_us']),
})
