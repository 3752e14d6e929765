/** Rows of days: written by the daily read, read by the operations and the alerts, kept for a year. */

import { parseIp } from '../../base/net/ip.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { removeRows } from '../../platform/store/commits.ts'
import { inList } from '../../platform/store/lists.ts'
import type { GmailDayRow, SndsBlockRow, SndsDayRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import type { GmailDay, Requirement } from './google/figures.ts'
import type { SndsBlock, SndsDay } from './snds/feed.ts'

export const KEPT_MS = 366 * DAY_MS

const upsert = (statements: Statement[], key: string, columns: readonly string[]): Statement[] =>
  statements.map(({ sql, values }) => ({
    sql: `${sql} ON CONFLICT (${key}) DO UPDATE SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    values,
  }))

const GMAIL_FIGURES = [
  ...['spam_rate', 'spf_rate', 'dkim_rate', 'dmarc_rate', 'tls_rate', 'error_rate'],
  ...['errors_json', 'loops_json'],
]

export const gmailStatements = (domainId: string, days: readonly GmailDay[]): Statement[] =>
  upsert(
    insertMany(
      'gmail_days',
      days.map(({ day, spam, spf, dkim, dmarc, tls, errors, errorRates, loops }) => ({
        ...{ domain_id: domainId, day, spam_rate: spam, spf_rate: spf, dkim_rate: dkim, dmarc_rate: dmarc },
        ...{ tls_rate: tls, error_rate: errors },
        ...{ errors_json: JSON.stringify(errorRates), loops_json: JSON.stringify(loops) },
      })),
    ),
    'domain_id, day',
    GMAIL_FIGURES,
  )

interface GmailDomainState {
  compliance: readonly Requirement[]
  /** Null: nothing was asked for. */
  readThrough: number | null
  failure: string | null
}

/** Without an answer about compliance or days the earlier one stays. */
export const gmailDomainStatement = (domainId: string, state: GmailDomainState, now: number): Statement => ({
  sql: `INSERT INTO gmail_domains (domain_id, compliance_json, read_through, read_at, failure) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (domain_id) DO UPDATE SET read_at = excluded.read_at, failure = excluded.failure,
      read_through = COALESCE(excluded.read_through, gmail_domains.read_through),
      compliance_json = CASE WHEN excluded.failure IS NULL THEN excluded.compliance_json
        ELSE gmail_domains.compliance_json END`,
  values: [
    ...[domainId, JSON.stringify(state.compliance), state.readThrough],
    ...[Math.floor(now), state.failure],
  ],
})

const SNDS_FIGURES = ['recipients', 'filter_result', 'complaint_rate', 'trap_hits', 'trap_period']

export const sndsStatements = (day: number, rows: readonly SndsDay[]): Statement[] =>
  upsert(
    insertMany(
      'snds_days',
      rows.map(({ ip, recipients, filterResult, complaintRate, trapHits, trapPeriod }) => ({
        ...{ ip, day, recipients, filter_result: filterResult, complaint_rate: complaintRate },
        ...{ trap_hits: trapHits, trap_period: trapPeriod },
      })),
    ),
    'ip, day',
    SNDS_FIGURES,
  )

export const blockStatements = (blocks: readonly SndsBlock[]): Statement[] => [
  { sql: 'DELETE FROM snds_blocks', values: [] },
  ...insertMany(
    'snds_blocks',
    blocks.map(({ firstIp, lastIp, detail }) => ({ first_ip: firstIp, last_ip: lastIp, detail })),
  ),
]

/** Removes days before `before`, in portions. */
export async function removeOldDays(store: Store, before: number, signal: AbortSignal): Promise<void> {
  const old = { where: 'day < ? ORDER BY day', values: [before] }
  await removeRows(store, { from: 'gmail_days', key: 'domain_id, day', ...old }, signal)
  await removeRows(store, { from: 'snds_days', key: 'ip, day', ...old }, signal)
}

export async function removeDomain(store: Store, domainId: string): Promise<void> {
  await store.commit(
    ['gmail_days', 'gmail_domains'].map((table) => ({
      sql: `DELETE FROM ${table} WHERE domain_id = ?`,
      values: [domainId],
    })),
  )
}

export interface DayRange {
  /** First milliseconds of days, both included. */
  from: number
  to: number
}

export type GmailRow = GmailDayRow & { name: string; account_id: string }

export const GMAIL_RATES = [
  'spam_rate',
  'spf_rate',
  'dkim_rate',
  'dmarc_rate',
  'tls_rate',
  'error_rate',
] as const

/** Days of these accounts' domains. */
const daysOfAccounts = (store: Store, accountIds: readonly string[], { from, to }: DayRange) =>
  store.db
    .selectFrom('gmail_days')
    .innerJoin('domains', 'domains.id', 'gmail_days.domain_id')
    .where('domains.account_id', 'in', inList(store, accountIds))
    .where('day', '>=', from)
    .where('day', '<=', to)

/** Domains in one answer that sums up; an account with more has the first by name. */
const DOMAINS_MAX = 1_000

/** Domains of these accounts that have days in the range, by name: the newest day, their number, and the means of the rates. */
export const gmailDomains = (store: Store, accountIds: readonly string[], range: DayRange) =>
  daysOfAccounts(store, accountIds, range)
    .leftJoin('gmail_domains', 'gmail_domains.domain_id', 'gmail_days.domain_id')
    .select(({ fn }) => [
      ...(['domains.id', 'domains.name', 'gmail_domains.compliance_json'] as const),
      fn.max('day').as('newest'),
      fn.countAll().as('days'),
      ...GMAIL_RATES.map((name) => fn.avg(name).as(name)),
    ])
    .groupBy(['domains.id', 'domains.name', 'gmail_domains.compliance_json'])
    .orderBy('domains.name')
    .limit(DOMAINS_MAX)
    .execute()

/** The same over all domains. Rates are null without any. */
export const gmailMeans = (store: Store, accountIds: readonly string[], range: DayRange) =>
  daysOfAccounts(store, accountIds, range)
    .select(({ fn }) => [
      fn.count('domain_id').distinct().as('domains'),
      fn.countAll().as('days'),
      ...GMAIL_RATES.map((name) => fn.avg(name).as(name)),
    ])
    .executeTakeFirstOrThrow()

interface Page {
  limit: number
  offset: number
}

/** Days of these accounts' domains, or of one, newest first, and how many there are. */
export async function gmailDays(
  store: Store,
  { accountIds, domainId }: { accountIds: readonly string[]; domainId?: string },
  range: DayRange,
  { limit, offset }: Page,
): Promise<{ rows: GmailRow[]; total: number }> {
  const found = daysOfAccounts(store, accountIds, range).$if(domainId !== undefined, (query) =>
    query.where('gmail_days.domain_id', '=', domainId as string),
  )
  const [rows, counted] = await Promise.all([
    found
      .selectAll('gmail_days')
      .select(['domains.name', 'domains.account_id'])
      .orderBy('day', 'desc')
      .orderBy('domains.name')
      .limit(limit)
      .offset(offset)
      .execute(),
    found.select(({ fn }) => fn.countAll().as('total')).executeTakeFirst(),
  ])
  return { rows, total: Number(counted?.total ?? 0) }
}

export async function complianceOf(store: Store, domainId: string): Promise<Requirement[]> {
  const row = await store.db
    .selectFrom('gmail_domains')
    .select('compliance_json')
    .where('domain_id', '=', domainId)
    .executeTakeFirst()
  return row === undefined ? [] : (JSON.parse(row.compliance_json) as Requirement[])
}

/** The newest day of each of these addresses in the range, or of all. */
export async function newestSndsDays(
  store: Store,
  ips: readonly string[] | null,
  { from, to }: DayRange,
): Promise<SndsDayRow[]> {
  if (ips?.length === 0) return []
  return store.db
    .selectFrom('snds_days')
    .selectAll()
    .where('day', '>=', from)
    .where('day', '=', ({ selectFrom, ref }) =>
      selectFrom('snds_days as other')
        .select(({ fn }) => fn.max('other.day').as('newest'))
        .where('other.ip', '=', ref('snds_days.ip'))
        .where('other.day', '<=', to),
    )
    .$if(ips !== null, (query) => query.where('ip', 'in', ips as string[]))
    .orderBy('ip')
    .execute()
}

/** The newest day with a spam rate of each domain in the range. */
export async function newestSpamRates(store: Store, { from, to }: DayRange) {
  return store.db
    .selectFrom('gmail_days')
    .innerJoin('domains', 'domains.id', 'gmail_days.domain_id')
    .select(['domains.name', 'day', 'spam_rate'])
    .where('day', '>=', from)
    .where('day', '=', ({ selectFrom, ref }) =>
      selectFrom('gmail_days as other')
        .select(({ fn }) => fn.max('other.day').as('newest'))
        .where('other.domain_id', '=', ref('gmail_days.domain_id'))
        .where('other.day', '<=', to)
        .where('other.spam_rate', 'is not', null),
    )
    .orderBy('domains.name')
    .execute()
}

/** Days of these addresses in the range, newest first; `hit`: only those with hits of spam traps. */
export async function sndsDays(
  store: Store,
  ips: readonly string[],
  { from, to }: DayRange,
  which: 'all' | 'hit' = 'all',
): Promise<SndsDayRow[]> {
  if (ips.length === 0) return []
  return store.db
    .selectFrom('snds_days')
    .selectAll()
    .where('ip', 'in', ips)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .$if(which === 'hit', (query) => query.where('trap_hits', '>', 0))
    .orderBy('day', 'desc')
    .orderBy('ip')
    .limit(ROWS_MAX)
    .execute()
}

/** A year of 50 addresses that hit traps on every day. */
const ROWS_MAX = 20_000

/** Why SNDS says that the address is blocked; null: it does not. */
export type BlockOf = (ip: string) => string | null

export async function readBlocks(store: Store): Promise<{ rows: SndsBlockRow[]; blockOf: BlockOf }> {
  const rows = await store.db.selectFrom('snds_blocks').selectAll().orderBy('first_ip').execute()
  const ranges = rows.map(({ first_ip: first, last_ip: last, detail }) => ({
    ...{ first: parseIp(first), last: parseIp(last), detail },
  }))
  return {
    rows,
    blockOf(ip) {
      const address = parseIp(ip)
      if (address === null) return null
      const range = ranges.find(
        ({ first, last }) =>
          first?.family === address.family &&
          first.bits <= address.bits &&
          address.bits <= (last?.bits ?? -1n),
      )
      return range === undefined ? null : range.detail || 'blocked'
    },
  }
}
