/**
 * Counts of received mail for DMARC reports: kept in memory, written every minute and at the end. A crash loses the counts
 * of the last minute.
 *
 * Anybody who sends mail chooses the names in it, and a wildcard in DNS makes each of a million domains one with a record of
 * its own. So a day has so many domains, each registrable domain so many of them, and each domain so many rows; what does
 * not fit is not reported, and takes neither memory nor rows.
 */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import type { ReportedRow } from '../../protocols/reports/dmarc/write-report.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { type DayDomain, dayText } from './daily-reports.ts'
import type { ObservedMail } from './observed.ts'

export interface Bounds {
  domainsPerDay: number
  domainsPerRoot: number
  rowsPerDay: number
  rowsPerDomain: number
}

/** Rows have some 400 bytes: 8 MB a day, and as much for each of the days that could not be reported yet. */
export const BOUNDS: Bounds = {
  domainsPerDay: 1_000,
  domainsPerRoot: 10,
  rowsPerDay: 20_000,
  rowsPerDomain: 1_000,
}

interface Counted {
  day: string
  domain: string
  root: string
  record: string
  rows: Map<string, number>
}

export type DmarcResults = ReturnType<typeof createDmarcResults>

export function createDmarcResults(
  { store, clock, log }: { store: Store; clock: Clock; log: Logger },
  bounds: Bounds = BOUNDS,
) {
  let counts = new Map<string, Counted>()
  let rowsHeld = 0
  let left = 0
  let timer: Timer | null = null

  async function write(): Promise<void> {
    timer = null
    const batch = counts
    counts = new Map()
    rowsHeld = 0
    const byDay = Map.groupBy(batch.values(), ({ day }) => day)
    for (const [day, some] of byDay) {
      const { statements, unwritten } = addStatements(some, await dayState(store, day), bounds)
      left += unwritten
      if (statements.length > 0) await store.commit(statements)
    }
    if (left > 0) log.warn({ left }, 'mail is missing in DMARC reports: too many domains or sources in a day')
    left = 0
  }

  return {
    record({ domain, record, row }: ObservedMail): void {
      const day = dayText(clock.now())
      const key = `${day} ${domain}`
      const known = counts.get(key)
      const text = JSON.stringify(row)
      const isNewRow = known?.rows.has(text) !== true
      const isFull =
        (known === undefined && counts.size >= bounds.domainsPerDay) ||
        (isNewRow && (rowsHeld >= bounds.rowsPerDay || (known?.rows.size ?? 0) >= bounds.rowsPerDomain))
      timer ??= clock.setTimer(
        MINUTE_MS,
        () => void write().catch((err: unknown) => log.warn({ err }, FAILED)),
      )
      if (isFull) {
        left++
        return
      }
      const counted = known ?? { day, domain, root: rootDomainOf(domain), record, rows: new Map() }
      counted.record = record
      counted.rows.set(text, (counted.rows.get(text) ?? 0) + 1)
      if (isNewRow) rowsHeld++
      counts.set(key, counted)
    },
    async close(): Promise<void> {
      timer?.cancel()
      await write()
    },
  }
}

const FAILED = 'counts for DMARC reports were lost'

/** What a day has already. */
interface DayState {
  roots: Map<string, string>
  rows: Map<string, number>
}

async function dayState(store: Store, day: string): Promise<DayState> {
  const [policies, rows] = await Promise.all([
    store.read({ sql: 'SELECT domain, root FROM dmarc_policies WHERE day = ?', values: [day] }),
    store.read({
      sql: 'SELECT domain, count(*) AS rows_count FROM dmarc_results WHERE day = ? GROUP BY domain',
      values: [day],
    }),
  ])
  return {
    roots: new Map(policies.map((row) => [String(row['domain']), String(row['root'])])),
    rows: new Map(rows.map((row) => [String(row['domain']), Number(row['rows_count'])])),
  }
}

/** Two processes that write at once may go beyond the bounds, once each. */
function addStatements(
  batch: readonly Counted[],
  { roots, rows }: DayState,
  bounds: Bounds,
): { statements: Statement[]; unwritten: number } {
  const perRoot = new Map<string, number>()
  for (const root of roots.values()) perRoot.set(root, (perRoot.get(root) ?? 0) + 1)
  let rowsLeft = bounds.rowsPerDay - [...rows.values()].reduce((sum, count) => sum + count, 0)
  let unwritten = 0
  const statements: Statement[] = []
  for (const counted of batch) {
    const { day, domain, root, record } = counted
    if (!roots.has(domain)) {
      const ofRoot = perRoot.get(root) ?? 0
      if (roots.size >= bounds.domainsPerDay || ofRoot >= bounds.domainsPerRoot) {
        unwritten += [...counted.rows.values()].reduce((sum, count) => sum + count, 0)
        continue
      }
      roots.set(domain, root)
      perRoot.set(root, ofRoot + 1)
    }
    statements.push({ sql: SET_POLICY, values: [day, domain, root, record] })
    let room = Math.min(rowsLeft, bounds.rowsPerDomain - (rows.get(domain) ?? 0))
    for (const [text, messages] of counted.rows) {
      const hash = createHash('sha256').update(text).digest('base64url')
      // A row that is there is counted on, however full the day is.
      if (room <= 0) statements.push({ sql: COUNT_ON, values: [messages, day, domain, hash] })
      else statements.push({ sql: ADD, values: [day, domain, hash, text, messages] })
      room--
      rowsLeft--
    }
  }
  return { statements, unwritten }
}

const SET_POLICY = `INSERT INTO dmarc_policies (day, domain, root, record) VALUES (?, ?, ?, ?)
  ON CONFLICT (day, domain) DO UPDATE SET record = excluded.record`
const ADD = `INSERT INTO dmarc_results (day, domain, row_hash, row_json, messages) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (day, domain, row_hash) DO UPDATE SET messages = dmarc_results.messages + excluded.messages`
const COUNT_ON = `UPDATE dmarc_results SET messages = messages + CAST(? AS BIGINT)
  WHERE day = ? AND domain = ? AND row_hash = ?`

/** Domains with mail on days from `from` and before `to`, in order, after one. */
export async function reportedDomains(
  store: Store,
  { from, to, after, limit }: { from: string; to: string; after: DayDomain; limit: number },
): Promise<DayDomain[]> {
  const rows = await store.read({
    sql: `SELECT p.day, p.domain FROM dmarc_policies p
      WHERE p.day >= ? AND p.day < ? AND (p.day, p.domain) > (?, ?)
        AND NOT EXISTS (SELECT 1 FROM dmarc_reports r WHERE r.day = p.day AND r.domain = p.domain AND r.uri = '')
      ORDER BY p.day, p.domain LIMIT ${limit}`,
    values: [from, to, after.day, after.domain],
  })
  return rows.map((row) => ({ day: String(row['day']), domain: String(row['domain']) }))
}

/** '' where there is none. */
export async function recordOf(store: Store, { day, domain }: DayDomain): Promise<string> {
  const row = await store.db
    .selectFrom('dmarc_policies')
    .select('record')
    .where('day', '=', day)
    .where('domain', '=', domain)
    .executeTakeFirst()
  return row?.record ?? ''
}

/** Rows of one report, most messages first. */
export async function rowsOf(
  store: Store,
  { day, domain }: DayDomain,
): Promise<{ row: ReportedRow; messages: number }[]> {
  const rows = await store.db
    .selectFrom('dmarc_results')
    .select(['row_json', 'messages'])
    .where('day', '=', day)
    .where('domain', '=', domain)
    .orderBy('messages', 'desc')
    .orderBy('row_hash')
    .limit(BOUNDS.rowsPerDomain)
    .execute()
  return rows.map(({ row_json, messages }) => ({
    row: JSON.parse(row_json) as ReportedRow,
    messages: Number(messages),
  }))
}

/** For the commit that says a domain is done. */
export const removedStatements = ({ day, domain }: DayDomain): Statement[] => [
  { sql: 'DELETE FROM dmarc_results WHERE day = ? AND domain = ?', values: [day, domain] },
  { sql: 'DELETE FROM dmarc_policies WHERE day = ? AND domain = ?', values: [day, domain] },
]

/** What could not be reported in time. */
export async function removeOldResults(store: Store, before: string): Promise<void> {
  await store.commit(
    ['dmarc_results', 'dmarc_policies'].map((table) => ({
      sql: `DELETE FROM ${table} WHERE day < ?`,
      values: [before],
    })),
  )
}
