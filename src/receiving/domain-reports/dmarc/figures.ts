/**
 * Figures of DMARC reports by source, host and address. Totals are by day and address, of authenticated reports only; a
 * source is the registrable domain of an address's confirmed name, so the same mail is one source on every day.
 */
import { DAY_MS } from '../../../base/time/durations.ts'
import type { Store } from '../../../platform/store/store.ts'
import { confirmName } from '../../../protocols/dns/confirmed-name.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { rootDomainOf } from '../../../sending/domains/names/domain-names.ts'
import type { DmarcRow } from '../shapes.ts'
import { dayOf, OTHER } from '../store.ts'
import { type Sums, sum } from '../summary.ts'

export interface Period {
  /** Unix milliseconds. */
  from: number
  to: number
}

export interface DayOfAddress extends Sums {
  /** Unix milliseconds. */
  day: number
  /** Or `other`. */
  ip: string
}

/** An address with its place in the levels. */
export interface Place {
  source: string
  host: string
}

export interface EventRow extends DmarcRow {
  reporter: string
  /** Unix milliseconds. */
  beginAt: number
}

/** Days of a year with 200 addresses each would be 73,000. */
const ROWS_MAX = 20_000
/** Addresses with the most mail, whose names are looked up for one answer. */
const NAMED_MAX = 100
const AT_ONCE = 20
/** Reverse zones belong to those who send: they must not hold up an answer. */
const NAMING_MS = 5_000
/** Reports of the period whose rows are read, the newest ones. */
const REPORTS_READ = 200
export const UNKNOWN = 'unknown'

const NO_SUMS: Sums = { passed: 0, failed: 0, quarantined: 0, rejected: 0 }

/** Mail by day and domain of an account, for its first 1,000 domains by name. */
export async function accountDays(
  store: Store,
  accountId: string,
  { from, to }: Period,
): Promise<{ names: string[]; days: (Sums & { domain: string; day: number })[] }> {
  const domains = await store.db
    .selectFrom('domains')
    .select('name')
    .where('account_id', '=', accountId)
    .orderBy('name')
    .limit(DOMAINS_MAX)
    .execute()
  const rows = await store.read({
    sql: `SELECT d.name AS domain, t.day_at, t.passed, t.failed, t.quarantined, t.rejected
      FROM (SELECT id, name FROM domains WHERE account_id = ? ORDER BY name LIMIT ${DOMAINS_MAX}) d
      JOIN domain_report_totals t ON t.domain_id = d.id
      WHERE t.type = 'dmarc' AND t.name = '' AND t.day_at >= ? AND t.day_at <= ?`,
    values: [accountId, dayOf(from), dayOf(to)],
  })
  const days = rows.map((row) => ({
    ...{ domain: String(row['domain']), day: Number(row['day_at']) },
    ...sumsOf(row),
  }))
  return { names: domains.map(({ name }) => name), days }
}

const DOMAINS_MAX = 1_000

/** Mail of a domain by day and address. */
export async function addressDays(
  store: Store,
  domainId: string,
  { from, to }: Period,
): Promise<DayOfAddress[]> {
  const rows = await store.read({
    sql: `SELECT day_at, name, passed, failed, quarantined, rejected FROM domain_report_totals
      WHERE domain_id = ? AND type = 'dmarc' AND day_at >= ? AND day_at <= ? AND name <> ''
      ORDER BY day_at DESC LIMIT ${ROWS_MAX}`,
    values: [domainId, dayOf(from), dayOf(to)],
  })
  return rows.map((row) => ({ day: Number(row['day_at']), ip: String(row['name']), ...sumsOf(row) }))
}

function sumsOf(row: Record<string, unknown>): Sums {
  const of = (column: string) => Number(row[column])
  return {
    ...{ passed: of('passed'), failed: of('failed') },
    ...{ quarantined: of('quarantined'), rejected: of('rejected') },
  }
}

/** Rows with the most messages of the newest authenticated reports. */
export async function eventRows(store: Store, domainId: string, { from, to }: Period): Promise<EventRow[]> {
  const reports = await store.db
    .selectFrom('domain_reports')
    .select(['organization', 'begin_at', 'rows_json'])
    .where('domain_id', '=', domainId)
    .where('type', '=', 'dmarc')
    .where('authenticated', '=', 1)
    .where('begin_at', '>=', dayOf(from))
    .where('begin_at', '<', dayOf(to) + DAY_MS)
    .orderBy('begin_at', 'desc')
    .limit(REPORTS_READ)
    .execute()
  return reports.flatMap(({ organization: reporter, begin_at, rows_json }) =>
    (JSON.parse(rows_json) as DmarcRow[]).map((row) => ({ ...row, reporter, beginAt: Number(begin_at) })),
  )
}

/** Where each address belongs. Those beyond the 100 with the most mail are `unknown`, as those without a confirmed name. */
export async function placesOf(
  resolver: Resolver,
  days: readonly DayOfAddress[],
): Promise<(ip: string) => Place> {
  const total = (some: readonly DayOfAddress[]) => messagesOf(some.reduce<Sums>(sum, NO_SUMS))
  const byAddress = [...Map.groupBy(days, ({ ip }) => ip)].filter(([ip]) => ip !== OTHER)
  const named = byAddress
    .toSorted(([, one], [, other]) => total(other) - total(one))
    .slice(0, NAMED_MAX)
    .map(([ip]) => ip)
  const places = new Map<string, Place>([[OTHER, { source: OTHER, host: OTHER }]])
  const signal = AbortSignal.timeout(NAMING_MS)
  const bounded: Resolver = {
    query: (name, type, options = {}) => resolver.query(name, type, { ...options, signal }),
    close() {},
  }
  const queue = [...named]
  const worker = async () => {
    for (let ip = queue.shift(); ip !== undefined && !signal.aborted; ip = queue.shift()) {
      const name = await confirmName(bounded, ip).then(
        (found) => found.name.toLowerCase(),
        () => '',
      )
      if (name !== '') places.set(ip, { source: rootDomainOf(name), host: name })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return (ip) => places.get(ip) ?? { source: UNKNOWN, host: UNKNOWN }
}

export const messagesOf = ({ passed, failed }: Sums): number => passed + failed

/** `fail`: what failed and was delivered all the same. */
export const countsOf = ({ passed, failed, quarantined, rejected }: Sums) => ({
  pass: passed,
  fail: Math.max(0, failed - quarantined - rejected),
  quarantine: quarantined,
  reject: rejected,
})

/** Sums by key, most messages first. */
export function grouped<T extends Sums>(
  rows: readonly T[],
  keyOf: (row: T) => string,
): { key: string; total: Sums; rows: T[] }[] {
  return [...Map.groupBy(rows, keyOf)]
    .map(([key, some]) => ({ key, total: some.reduce<Sums>(sum, NO_SUMS), rows: some }))
    .toSorted(
      (one, other) => messagesOf(other.total) - messagesOf(one.total) || one.key.localeCompare(other.key),
    )
}

export const chartOf = (days: readonly (Sums & { day: number })[]) =>
  [...Map.groupBy(days, ({ day }) => day)]
    .toSorted(([one], [other]) => one - other)
    .map(([day, some]) => ({ timestamp: day / 1000, ...countsOf(some.reduce<Sums>(sum, NO_SUMS)) }))
