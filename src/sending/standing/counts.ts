/**
 * What each account and domain has sent by hour, and what came of it. The counters of statistics read each event once, in
 * order of commit, also after a crash and on several nodes; what they read is counted here in the same commit (decision 196).
 *
 * Test mode, forwarded mail and mail of the service itself do not count, nor mail of an account to domains of its own: by that a
 * sender would lower its rates at will.
 */
import { HOUR_MS } from '../../base/time/durations.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import { listOf } from '../../platform/store/lists.ts'
import type { StandingCountRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import { within } from '../../watching/metrics/counters.ts'
import type { CountedEvent, StepCount } from '../../watching/metrics/counting.ts'
import type { SentFigures } from './judge.ts'

export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS

interface StepParts {
  store: Store
  isUnknownUser(ruleId: string): boolean
  isTrap(address: string): boolean
}

type Counted = Pick<StandingCountRow, 'sent' | 'bounced' | 'unknown_users' | 'complained' | 'trapped'>
const NOTHING: Counted = { sent: 0, bounced: 0, unknown_users: 0, complained: 0, trapped: 0 }

const ADD = `ON CONFLICT (account_id, domain_name, hour_at) DO UPDATE SET
  ${Object.keys(NOTHING)
    .map((name) => `${name} = standing_counts.${name} + excluded.${name}`)
    .join(', ')}`

/** Counts one step of the counters. */
export function stepCount(parts: StepParts): StepCount {
  const counts = new Map<string, { row: StandingCountRow; recipientDomain: string }>()
  return {
    add(event) {
      const counted = countedOf(parts, event)
      if (counted === null) return
      const { accountId: account_id, domainName: domain_name, at } = event
      const hour_at = hourOf(at)
      const recipientDomain = domainOf(event.recipient ?? '')
      const key = `${account_id} ${domain_name} ${hour_at} ${recipientDomain}`
      const row = { account_id, domain_name, hour_at, ...NOTHING, first_at: Math.floor(at) }
      const count = counts.get(key) ?? { row, recipientDomain }
      counts.set(key, count)
      addTo(count.row, counted)
    },
    async statements() {
      const owners = await ownersOf(
        parts.store,
        [...counts.values()].map(({ recipientDomain }) => recipientDomain),
      )
      const rows = new Map<string, StandingCountRow>()
      for (const { row, recipientDomain } of counts.values()) {
        if (isOwn(owners, row.account_id, recipientDomain)) continue
        const key = `${row.account_id} ${row.domain_name} ${row.hour_at}`
        const sum = rows.get(key)
        if (sum === undefined) rows.set(key, row)
        else addTo(sum, row)
      }
      return insertMany('standing_counts', [...rows.values()]).map(
        (statement): Statement => ({ ...statement, sql: `${statement.sql} ${ADD}` }),
      )
    },
  }
}

function addTo(row: StandingCountRow, counted: Partial<Counted>): void {
  for (const name of Object.keys(NOTHING) as (keyof Counted)[]) row[name] += counted[name] ?? 0
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

/** A domain and the names above it; those of hosts have no more labels. */
const LABELS_MAX = 8
function namesAbove(domain: string): string[] {
  const labels = domain.split('.').slice(-LABELS_MAX)
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'))
}

/** The accounts that have proved these domains, or those above them, to be theirs; by name. */
async function ownersOf(store: Store, domains: readonly string[]): Promise<Map<string, string>> {
  const names = [...new Set([...domains].flatMap(namesAbove))]
  if (names.length === 0) return new Map()
  const { sql, values } = listOf(store.kind, names)
  const rows = await store.read({
    sql: `SELECT name, account_id FROM domains WHERE state = 'active' AND name IN ${sql}`,
    values,
  })
  return new Map(rows.map((row) => [String(row['name']), String(row['account_id'])]))
}

const isOwn = (owners: ReadonlyMap<string, string>, accountId: string, domain: string): boolean =>
  namesAbove(domain).some((name) => owners.get(name) === accountId)

/** Null: it says nothing about its sender. */
function countedOf(
  parts: StepParts,
  { accountId, event, recipient, payload }: CountedEvent,
): Partial<Counted> | null {
  if (payload === null || accountId === SYSTEM_ACCOUNT_ID) return null
  const flags = within(payload, 'flags')
  if (flags['is-test-mode'] === true || flags['is-routed'] === true) return null
  switch (event) {
    case 'complained':
      return { complained: 1 }
    case 'delivered':
      return { sent: 1, trapped: parts.isTrap(recipient ?? '') ? 1 : 0 }
    case 'failed': {
      const type = within(payload, 'delivery-status')['bounce-type']
      // Suppressed recipients were not written to.
      if (payload['severity'] !== 'permanent' || type === undefined) return null
      const isHard = type === 'hard'
      const isUnknown = isHard && parts.isUnknownUser(String(payload['i-classification-rule-id']))
      return {
        // What comes back later was delivered before.
        sent: flags['is-delayed-bounce'] === true ? 0 : 1,
        bounced: isHard ? 1 : 0,
        unknown_users: isUnknown ? 1 : 0,
      }
    }
    default:
      return null
  }
}

/** Accounts judged by one query. */
const ACCOUNTS_MAX = 100

export interface DomainCounts {
  accountId: string
  domainName: string
  figures: SentFigures
}

/** Accounts that have sent something since an hour; `onlyBad`: something that came to nothing good. */
export async function activeAccounts(store: Store, sinceHour: number, onlyBad: boolean): Promise<string[]> {
  const bad = onlyBad ? 'AND bounced + complained + trapped > 0' : ''
  const rows = await store.read({
    // An expression fits no index: SQLite would read the counts of all hours in the order of accounts.
    sql: `SELECT DISTINCT account_id || '' AS account_id FROM standing_counts WHERE hour_at >= ? ${bad}`,
    values: [sinceHour],
  })
  return rows.map((row) => String(row['account_id']))
}

/** The figures of all domains of these accounts, since an hour. */
export async function countsOf(
  store: Store,
  accountIds: readonly string[],
  sinceHour: number,
): Promise<DomainCounts[]> {
  const all: DomainCounts[] = []
  for (let from = 0; from < accountIds.length; from += ACCOUNTS_MAX) {
    const { fn } = store.db
    const rows = await store.db
      .selectFrom('standing_counts')
      .select(['account_id', 'domain_name'])
      .select([
        fn.sum<number>('sent').as('sent'),
        fn.sum<number>('bounced').as('bounced'),
        fn.sum<number>('unknown_users').as('unknownUsers'),
        fn.sum<number>('complained').as('complained'),
        fn.sum<number>('trapped').as('trapped'),
      ])
      .where('account_id', 'in', accountIds.slice(from, from + ACCOUNTS_MAX))
      .where('hour_at', '>=', sinceHour)
      .groupBy(['account_id', 'domain_name'])
      .execute()
    for (const { account_id: accountId, domain_name: domainName, ...sums } of rows) {
      const [sent, bounced, unknownUsers, complained, trapped] = [
        ...[sums.sent, sums.bounced, sums.unknownUsers, sums.complained, sums.trapped],
      ].map(Number) as [number, number, number, number, number]
      const figures = { sent, bounced, unknownUsers, complained, trapped, checked: 0, badContent: 0 }
      all.push({ accountId, domainName, figures })
    }
  }
  return all
}

/** Messages sent since an hour, and when the first of them was; `domainName` empty: by all domains. */
export async function sentSince(
  store: Store,
  accountId: string,
  domainName: string,
  sinceHour: number,
): Promise<{ sent: number; firstAt: number | null }> {
  let query = store.db
    .selectFrom('standing_counts')
    .select(({ fn }) => [fn.sum<number>('sent').as('sent'), fn.min('first_at').as('first_at')])
    .where('account_id', '=', accountId)
    .where('hour_at', '>=', sinceHour)
  if (domainName !== '') query = query.where('domain_name', '=', domainName)
  const row = await query.executeTakeFirst()
  return { sent: Number(row?.sent ?? 0), firstAt: row?.first_at == null ? null : Number(row.first_at) }
}

/** Judgement begins anew: what was counted so far is forgotten. */
export const forgetCounts = (accountId: string, domainName: string): Statement => ({
  sql: `DELETE FROM standing_counts WHERE account_id = ?${domainName === '' ? '' : ' AND domain_name = ?'}`,
  values: domainName === '' ? [accountId] : [accountId, domainName],
})
