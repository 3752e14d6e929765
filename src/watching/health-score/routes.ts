/** Health scores over HTTP (health-score.md). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  flagParam,
  limitParam,
  skipParam,
  textParam,
  textsParam,
} from '../../platform/http/request/inputs.ts'
import { listOf } from '../../platform/store/lists.ts'
import { countOf, type Dimension, type Figures, type FilterEntry, type Metric } from '../metrics/figures.ts'
import { conditionSql, matches } from '../metrics/filter.ts'
import { NO_SIGNALS, RATES, type Rates, type Signals, scoreOf, sumOf } from './score.ts'
import { GROUPED, TOTAL } from './shapes.ts'

interface ScoreParts extends Pick<Core, 'store' | 'clock'> {
  figures: Figures
  accounts: Pick<AccountDirectory, 'childrenOf'>
  /** Sees what providers say of addresses: they are the operator's. */
  firstAccountId: string
}

/** The time that a score is of: as long as classified failures are kept by default. */
const WINDOW_MS = 30 * DAY_MS
/** Groups of a table that are read: more are no table that anybody reads. */
const GROUPS_MAX = 20_000
const api = operationsOf({ tag: 'Email Health Score', auth: { area: 'events' }, rateLimit: 'analytics' })
const GROUPS = ['domain', 'ip', 'subaccount', 'timestamp'] as const
type GroupName = (typeof GROUPS)[number]
const ATTRIBUTES = { domain: 'domain', ip: 'ip', account_id: 'subaccount' } as const
const SORTS = [...GROUPS, 'score', ...RATES, 'delivered'] as const
const DIMENSIONS: Readonly<Record<GroupName, readonly Dimension[]>> = {
  domain: ['domain', 'subaccount'],
  ip: ['ip'],
  subaccount: ['subaccount'],
  timestamp: ['time'],
}
const METRICS: readonly Metric[] = [
  ...([
    'delivered_count',
    'processed_count',
    'bounced_count',
    'hard_bounces_count',
    'complained_count',
  ] as const),
]
const INCLUDE = flagParam('Mail of subaccounts too', { default: true })

export function scoreRoutes(parts: ScoreParts): Operation[] {
  return [
    api.get('/v1/maverick-score/total', {
      id: 'readHealthScore',
      summary: 'Health score of the mail of the last 30 days',
      params: { include_subaccounts: INCLUDE },
      answers: { 200: TOTAL },
      async handler({ input, caller }) {
        const accountIds = await accountsOf(parts, caller.accountId, input().include_subaccounts)
        const groups = await signalsOf(parts, { accountIds, group: null, filter: [] })
        return viewOf(groups[0]?.signals ?? NO_SIGNALS)
      },
    }),
    api.get('/v1/maverick-score/grouped', {
      id: 'listHealthScores',
      summary: 'Health scores of the last 30 days by domain, address, account or day',
      params: {
        include_subaccounts: INCLUDE,
        skip: skipParam(),
        limit: limitParam(10, 100),
        group: choiceParam('What to group by', GROUPS, { default: 'domain' }),
        term: textsParam('Exact filter by domain, ip or account_id', { example: 'domain:example.com' }),
        query: textParam('Filter by a part of domain, ip or account_id', { example: 'domain:example' }),
        sort: textParam('Field and direction; default delivered:desc', {
          example: 'score:asc',
          values: SORTS.flatMap((name) => [`${name}:asc`, `${name}:desc`]),
        }),
      },
      answers: { 200: GROUPED },
      async handler({ input, caller }) {
        const { include_subaccounts, skip, limit, group, term, query, sort } = input()
        const all = await accountsOf(parts, caller.accountId, include_subaccounts)
        const filter = [
          ...[...Map.groupBy(term.map(pairOf), ({ attribute }) => attribute)].map(
            ([attribute, pairs]): FilterEntry => ({
              ...{ attribute, comparator: '=', values: pairs.map(({ value }) => value) },
            }),
          ),
          ...[query ?? []].flat().map((text): FilterEntry => {
            const { attribute, value } = pairOf(text)
            return { attribute, comparator: 'contains', values: [value] }
          }),
        ]
        const accountIds = all.filter((id) =>
          filter.every((entry) => entry.attribute !== 'subaccount' || matches(entry, id)),
        )
        const groups = await signalsOf(parts, {
          ...{ accountIds, group },
          filter: filter.filter(({ attribute }) => attribute !== 'subaccount'),
        })
        const items = groups
          .filter(({ signals }) => signals.delivered > 0)
          .map(({ key, accountId, signals }) => ({
            group_key: key,
            ...(accountId !== undefined && { account_id: accountId }),
            ...viewOf(signals),
          }))
        return { items: sorted(items, sort).slice(skip, skip + limit), total: items.length }
      },
    }),
  ]
}

async function accountsOf({ accounts }: ScoreParts, accountId: string, withChildren: boolean) {
  return [accountId, ...(withChildren ? await accounts.childrenOf(accountId) : [])]
}

/** @throws BadRequest unless it is `<attribute>:<value>` */
function pairOf(text: string): { attribute: FilterEntry['attribute']; value: string } {
  const colon = text.indexOf(':')
  const name = text.slice(0, Math.max(colon, 0))
  const value = text.slice(colon + 1)
  if (!Object.hasOwn(ATTRIBUTES, name) || value === '' || value.includes('\0'))
    throw new BadRequest(`invalid filter: ${quotable(text)}`)
  return { attribute: ATTRIBUTES[name as keyof typeof ATTRIBUTES], value }
}

interface Scope {
  accountIds: readonly string[]
  /** Null: all mail is one group. */
  group: GroupName | null
  /** By domain and address. */
  filter: readonly FilterEntry[]
}

interface Group {
  key: string
  accountId?: string
  signals: Signals
}

async function signalsOf(parts: ScoreParts, scope: Scope): Promise<Group[]> {
  const { accountIds, group, filter } = scope
  if (accountIds.length === 0) return []
  const now = parts.clock.now()
  const dimensions = group === null ? [] : DIMENSIONS[group]
  const rows = await parts.figures.read({
    ...{ accountIds, startMs: now - WINDOW_MS, endMs: now, resolution: 'day', dimensions, filter },
    metrics: METRICS,
  })
  const groups = new Map<string, Group>()
  const add = (values: readonly string[], signals: Partial<Signals>) => {
    const [value = '', owner] = values
    const id = values.join('\n')
    const known = groups.get(id)
    const accountId = group === 'subaccount' ? value : owner
    const key = group === 'timestamp' ? new Date(Number(value)).toISOString().slice(0, 10) : value
    groups.set(id, {
      key,
      ...(accountId !== undefined && { accountId }),
      signals: sumOf(known?.signals ?? NO_SIGNALS, signals),
    })
  }
  for (const { values, counts } of rows)
    add(values, {
      delivered: countOf('delivered_count', counts),
      processed: countOf('processed_count', counts),
      bounced: countOf('bounced_count', counts),
      hardBounces: countOf('hard_bounces_count', counts),
      complaints: countOf('complained_count', counts),
    })
  for (const { values, count } of await fullMailboxes(parts, scope, dimensions, now))
    add(values, { fullMailboxes: count })
  for (const { values, count } of await trapHits(parts, scope, now)) add(values, { traps: count })
  return [...groups.values()]
}

interface Counted {
  values: readonly string[]
  count: number
}

const COLUMNS: Readonly<Partial<Record<Dimension, string>>> = {
  domain: 'domain_name',
  subaccount: 'account_id',
  ip: "COALESCE(sending_ip, 'none')",
  time: `failed_at - failed_at % ${DAY_MS}`,
}

async function fullMailboxes(
  { store }: ScoreParts,
  { accountIds, filter }: Scope,
  dimensions: readonly Dimension[],
  now: number,
): Promise<Counted[]> {
  const conditions = filter.map((one) => conditionSql(COLUMNS[one.attribute] as string, one, store.kind))
  const columns = dimensions.map((name, at) => `${COLUMNS[name]} AS g${at}`)
  const ids = listOf(store.kind, accountIds)
  const rows = await store.read({
    sql: `SELECT ${[...columns, 'count(*) AS total'].join(', ')} FROM classified_failures
      WHERE account_id IN ${ids.sql} AND failed_at >= ? AND category = 'MAILBOXFULL'
        ${conditions.map(({ sql }) => `AND ${sql}`).join(' ')}
      ${dimensions.length > 0 ? `GROUP BY ${dimensions.map((_, at) => `g${at}`)}` : ''} LIMIT ${GROUPS_MAX}`,
    values: [...ids.values, Math.floor(now - WINDOW_MS), ...conditions.flatMap(({ values }) => values)],
  })
  return rows.map((row) => ({
    values: dimensions.map((_, at) => String(row[`g${at}`])),
    count: Number(row['total']),
  }))
}

/** Figures of Microsoft's SNDS, by address and day: the operator's, without a domain or an account. */
async function trapHits(
  { store, firstAccountId }: ScoreParts,
  scope: Scope,
  now: number,
): Promise<Counted[]> {
  const { accountIds, group, filter } = scope
  const byAddress = filter.every(({ attribute }) => attribute === 'ip')
  if (accountIds[0] !== firstAccountId || !byAddress || group === 'domain' || group === 'subaccount')
    return []
  const rows = await store.db
    .selectFrom('snds_days')
    .select(['ip', 'day', 'trap_hits'])
    .where('day', '>=', Math.floor(now - WINDOW_MS))
    .where('trap_hits', '>', 0)
    .limit(GROUPS_MAX)
    .execute()
  return rows
    .filter(({ ip }) => filter.every((entry) => matches(entry, ip)))
    .map(({ ip, day, trap_hits }) => ({
      values: group === null ? [] : [group === 'ip' ? ip : String(day)],
      count: Number(trap_hits),
    }))
}

const viewOf = (signals: Signals): Of<typeof TOTAL> => ({
  ...scoreOf(signals),
  counters: { delivered: signals.delivered },
})

type Item = { group_key: string; score: number; rates: Rates; counters: { delivered: number } }

/** @throws BadRequest for an unknown field or direction */
function sorted<I extends Item>(items: I[], sort = 'delivered:desc'): I[] {
  const [field = '', direction = 'asc'] = sort.split(':')
  const name = SORTS.find((one) => one === field)
  if (name === undefined || !['asc', 'desc'].includes(direction))
    throw new BadRequest(`invalid sort: ${quotable(sort)}`)
  const sign = direction === 'asc' ? 1 : -1
  const valueIn = (item: Item): number => {
    if (name === 'delivered') return item.counters.delivered
    return name === 'score' ? item.score : (item.rates[name as keyof Rates] ?? 0)
  }
  const byKey = (one: Item, other: Item) => (one.group_key < other.group_key ? -1 : 1)
  const isKey = (GROUPS as readonly string[]).includes(name)
  return items.sort((one, other) =>
    isKey ? sign * byKey(one, other) : sign * (valueIn(one) - valueIn(other)) || byKey(one, other),
  )
}
