/**
 * Chooses what a page of logs reads from the index of events. Every condition is applied to each event that was read; the
 * plan only narrows it down.
 *
 * Order of preference: id, message id, recipient, tag, domain, account. All but the first two are ranges in order of time
 * (`Branch`); those of recipients and tags are per domain, so that the domains of the accounts are looked up first.
 */

import type { Store } from '../../platform/store/store.ts'
import { EVENT_NAMES, recipientHash } from '../events/event.ts'
import { bare } from '../events/search/filter.ts'
import type { Branch, Plan } from '../events/search/plan.ts'
import { eventsOf, exactValues, textConditions } from './log-filter.ts'
import type { LogQuery } from './log-query.ts'
import { isWhole, METRIC_EVENTS } from './metric-events.ts'

export interface LogPlan extends Plan {
  accountIds: readonly string[]
  /** Null: all of the accounts. */
  domainNames: readonly string[] | null
  /** The branches contain nothing but what the query asks for. */
  isExact: boolean
}

/** More ranges of tags cost more than reading all events of the accounts. */
const BRANCHES_MAX = 6_000
/** The same where the database finds a further condition in the events' text, which it does along other indexes. */
const SCANNED_MAX = 24
/** Hashes of recipients that are looked up: a step in the index for each, on SQLite per segment. */
const HASHES_MAX = 1_000
/** Domains that are searched for tags: two steps in indexes for each, a few milliseconds in all. */
const DOMAINS_MAX = 2_000

/** `accountIds`: of the caller, with its subaccounts if asked for. */
export async function planLogs(
  store: Store,
  query: LogQuery,
  accountIds: readonly string[],
): Promise<LogPlan> {
  const { filter } = query
  const accounts = accountsIn(query, accountIds)
  const names = namesOf(query)
  const domainNames = lowered(exactValues(filter, 'domain'))
  const common = { accountIds: accounts, domainNames, events: names, hashes: null, isExact: false }
  if (names.length === 0 || accounts.length === 0) return { ...common, branches: [], isExact: true }
  const direct = byIdentity(query)
  if (direct.length > 0 && direct.length <= BRANCHES_MAX) return { ...common, branches: direct }
  const perDomain = await byDomain(store, query, accounts, names)
  if (perDomain) return { ...common, ...perDomain }
  const isExact = isOnlyNames(query)
  if (domainNames && domainNames.length * names.length <= BRANCHES_MAX) {
    const branches = pairs(
      domainNames,
      names,
      (domainName, event): Branch => ({ by: 'event', domainName, event }),
    )
    return { ...common, branches, isExact }
  }
  const branches = pairs(accounts, names, (accountId, event): Branch => ({ by: 'account', accountId, event }))
  return { ...common, branches, isExact: isExact && domainNames === null }
}

const pairs = <T>(
  left: readonly string[],
  right: readonly string[],
  make: (a: string, b: string) => T,
): T[] => left.flatMap((a) => right.map((b) => make(a, b)))

const lowered = (values: readonly string[] | null): string[] | null =>
  values && [...new Set(values.map((value) => value.toLowerCase()))]

/** Without those that the conditions on `subaccount` exclude. */
function accountsIn({ filter }: LogQuery, accountIds: readonly string[]): string[] {
  const wanted = filter.filter(({ attribute }) => attribute === 'subaccount')
  return accountIds.filter((id) =>
    wanted.every(({ comparator, values }) => {
      const isNamed = values.some((value) => value.toLowerCase() === id.toLowerCase())
      return comparator === '=' ? isNamed : !isNamed
    }),
  )
}

/** The names that an event of the list may have. */
function namesOf({ events, metrics, filter }: LogQuery): string[] {
  const selected =
    events === null && metrics === null
      ? null
      : new Set<string>([
          ...(events ?? []),
          ...(metrics ?? []).flatMap((name): readonly string[] => METRIC_EVENTS[name]),
        ])
  const implied = eventsOf(filter)
  return EVENT_NAMES.filter((name) => (selected?.has(name) ?? true) && (implied?.has(name) ?? true))
}

/** Whether names, domains and accounts are all that the query asks for. */
function isOnlyNames({ filter, metrics }: LogQuery): boolean {
  return (
    filter.every(
      ({ attribute, comparator }) =>
        attribute === 'subaccount' ||
        (comparator === '=' && (attribute === 'event' || attribute === 'domain')),
    ) && (metrics ?? []).every(isWhole)
  )
}

/** Rows have ids and message ids as written; a filter may have them in lower case. */
function byIdentity({ filter }: LogQuery): Branch[] {
  const ids = exactValues(filter, 'id')
  if (ids) return ids.map((id) => ({ by: 'id', id }))
  const messageIds = exactValues(filter, 'message_id')?.map(bare)
  const spellings = messageIds?.flatMap((id) => [id, id.toLowerCase()]) ?? []
  return [...new Set(spellings)].map((messageId) => ({ by: 'message', messageId }))
}

/** Null: neither recipients nor tags are named, or there are too many ranges. */
async function byDomain(
  store: Store,
  { filter }: LogQuery,
  accounts: readonly string[],
  names: readonly string[],
): Promise<Pick<LogPlan, 'branches' | 'hashes'> | null> {
  const recipients = lowered(exactValues(filter, 'recipient'))
  const tags = lowered(exactValues(filter, 'tag'))
  const isScanned =
    textConditions(filter.filter(({ attribute }) => !['tag', 'domain'].includes(attribute))).length > 0
  const perDomain = recipients?.length ?? (tags?.length ?? 0) * names.length
  if (perDomain === 0) return null
  const domainsMax = recipients ? Math.floor(HASHES_MAX / perDomain) : DOMAINS_MAX
  const named = lowered(exactValues(filter, 'domain')) ?? (await domainsOf(store, accounts, domainsMax + 1))
  if (named.length > domainsMax) return null
  const domains = recipients ? named : await withTags(store, named, tags ?? [])
  if (!recipients && domains.length * perDomain > (isScanned ? SCANNED_MAX : BRANCHES_MAX)) return null
  if (recipients) {
    const hashes = [...new Set(pairs(domains, recipients, recipientHash))]
    return { hashes, branches: hashes.map((hash) => ({ by: 'recipient', hash })) }
  }
  const branches = domains.flatMap((domainName) =>
    pairs(tags ?? [], names, (tag, event): Branch => ({ by: 'tag', domainName, tag, event })),
  )
  return { hashes: null, branches }
}

/** The domains among these that have events with one of the tags. */
async function withTags(
  store: Store,
  domains: readonly string[],
  tags: readonly string[],
): Promise<string[]> {
  const isSqlite = store.kind === 'sqlite'
  const list = isSqlite ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const rows = await store.read({
    sql: `SELECT DISTINCT name FROM (
        SELECT domains.value AS name, (SELECT 1 FROM event_tags
          WHERE domain_name = domains.value AND tag = tags.value LIMIT 1) AS found
        FROM ${list} AS domains CROSS JOIN ${list} AS tags) AS names
      WHERE found = 1 ${
        isSqlite
          ? `UNION SELECT domain_name FROM events CROSS JOIN json_each(tags_json) AS carried
              WHERE seq > (SELECT seq FROM event_index_place) AND carried.value IN (SELECT value FROM json_each(?))`
          : ''
      }`,
    values: [JSON.stringify(domains), JSON.stringify(tags), ...(isSqlite ? [JSON.stringify(tags)] : [])],
  })
  const wanted = new Set(rows.map((row) => String(row['name'])))
  return domains.filter((name) => wanted.has(name))
}

/** The names under which the accounts have events, those of deleted domains included: a step in the index for each. */
async function domainsOf(store: Store, accounts: readonly string[], max: number): Promise<string[]> {
  const isSqlite = store.kind === 'sqlite'
  const table = isSqlite ? 'event_index' : 'events'
  const list = isSqlite ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const unindexed = isSqlite
    ? `UNION SELECT domain_name FROM events WHERE seq > (SELECT seq FROM event_index_place)
        AND account_id IN (SELECT value FROM ${list})`
    : ''
  const ids = JSON.stringify(accounts)
  const rows = await store.read({
    sql: `WITH RECURSIVE names(account, name) AS (
        SELECT accounts.value, (SELECT min(domain_name) FROM ${table} WHERE account_id = accounts.value)
        FROM ${list} AS accounts
        UNION ALL
        SELECT account, (SELECT min(domain_name) FROM ${table} WHERE account_id = account AND domain_name > name)
        FROM names WHERE name IS NOT NULL)
      SELECT name FROM (SELECT name FROM names WHERE name IS NOT NULL LIMIT ?) AS found ${unindexed}`,
    values: [ids, max, ...(isSqlite ? [ids] : [])],
  })
  return [...new Set(rows.map((row) => String(row['name'])))]
}
