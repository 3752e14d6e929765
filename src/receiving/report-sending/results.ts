/**
 * Counts of received mail for DMARC reports: kept in memory, written every minute and at the end. A crash loses the counts
 * of the last minute.
 *
 * Anybody who sends mail chooses the names in it, and a wildcard in DNS makes each of a million domains one with a record of
 * its own. So a day has so many domains, each registrable domain and each network that sends so many of them, and each domain
 * so many rows. What does not fit is not reported, and takes neither memory nor rows.
 */
import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { networksOf } from '../../base/net/ip.ts'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { countOf } from '../../platform/store/count.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import type { ReportedRow } from '../../protocols/reports/dmarc/write-report.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { type DayDomain, dayText } from './daily-reports.ts'
import type { ObservedMail } from './observed.ts'

export interface Bounds {
  domainsPerDay: number
  domainsPerRoot: number
  /** New ones, brought by mail from one network. */
  domainsPerNetwork: number
  /** Beyond the first rows of each domain. */
  rowsPerDay: number
  rowsPerDomain: number
  /** Rows that a domain has however full the day is. */
  firstRows: number
}

/** Rows have some 400 bytes, 1.2 KB at most (observed.ts): 12 MB a day, and as much for each of the days that could not be reported yet. */
export const BOUNDS: Bounds = {
  domainsPerDay: 1_000,
  domainsPerRoot: 10,
  domainsPerNetwork: 100,
  rowsPerDay: 20_000,
  rowsPerDomain: 1_000,
  firstRows: 10,
}
/** Statements of one commit: others that write wait for it. */
const PORTION = 200

interface CountedDomain {
  domain: string
  /** Its registrable domain. */
  root: string
  /** That its first mail came from; '' for those written before it was kept. */
  network: string
}

interface Counted extends CountedDomain {
  day: string
  record: string
  rows: Map<string, number>
}

export function createDmarcResults(
  { store, clock, log }: { store: Store; clock: Clock; log: Logger },
  bounds: Bounds = BOUNDS,
) {
  let counts = new Map<string, Counted>()
  let held = createPlaces(bounds)
  let rowsHeld = 0
  let left = 0
  let timer: Timer | null = null

  async function write(): Promise<void> {
    timer = null
    const batch = counts
    counts = new Map()
    held = createPlaces(bounds)
    rowsHeld = 0
    for (const [day, some] of Map.groupBy(batch.values(), (counted) => counted.day))
      left += await writeDay(store, day, some, bounds)
    if (left > 0) log.warn({ left }, 'mail is missing in DMARC reports: too many domains or sources in a day')
    left = 0
  }

  return {
    record({ domain, record, row }: ObservedMail): void {
      timer ??= clock.setTimer(
        MINUTE_MS,
        () => void write().catch((err: unknown) => log.warn({ err }, FAILED)),
      )
      const day = dayText(clock.now())
      const key = `${day} ${domain}`
      const [, , network] = networksOf(row.sourceIp)
      const counted = counts.get(key) ?? {
        ...{ day, domain, root: rootDomainOf(domain), network, record, rows: new Map<string, number>() },
      }
      const text = JSON.stringify(row)
      const isNewRow = !counted.rows.has(text)
      if (!held.take(counted) || (isNewRow && !hasRoom(bounds, counted.rows.size, rowsHeld))) {
        left++
        return
      }
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

const hasRoom = (bounds: Bounds, ofDomain: number, ofDay: number): boolean =>
  ofDomain < bounds.rowsPerDomain && (ofDomain < bounds.firstRows || ofDay < bounds.rowsPerDay)

/** The domains of a day, or of a minute of it. */
function createPlaces(bounds: Bounds, kept: readonly CountedDomain[] = []) {
  const domains = new Set<string>()
  const perRoot = new Map<string, number>()
  const perNetwork = new Map<string, number>()
  const add = ({ domain, root, network }: CountedDomain) => {
    domains.add(domain)
    perRoot.set(root, (perRoot.get(root) ?? 0) + 1)
    perNetwork.set(network, (perNetwork.get(network) ?? 0) + 1)
  }
  for (const one of kept) add(one)
  return {
    /** Whether the domain has a place, be it a new one. */
    take(one: CountedDomain): boolean {
      if (domains.has(one.domain)) return true
      const isFull =
        domains.size >= bounds.domainsPerDay ||
        (perRoot.get(one.root) ?? 0) >= bounds.domainsPerRoot ||
        (perNetwork.get(one.network) ?? 0) >= bounds.domainsPerNetwork
      if (!isFull) add(one)
      return !isFull
    },
  }
}

/** Resolves to the mail that has no place. Two processes that write at once may go beyond the bounds, once each. */
async function writeDay(store: Store, day: string, batch: readonly Counted[], bounds: Bounds) {
  const kept = await store.db
    .selectFrom('dmarc_policies')
    .select(['domain', 'root', 'network'])
    .where('day', '=', day)
    .execute()
  const places = createPlaces(bounds, kept)
  let rowsOfDay = await countRows(store, day)
  let unwritten = 0
  let portion: Statement[] = []
  const flush = async (sizeMin: number) => {
    if (portion.length < sizeMin) return
    await store.commit(portion.toSorted(byLockKey))
    portion = []
  }
  for (const counted of batch) {
    const { domain, root, network, record } = counted
    if (!places.take(counted)) {
      unwritten += [...counted.rows.values()].reduce((sum, count) => sum + count, 0)
      continue
    }
    portion.push({ sql: SET_POLICY, values: [day, domain, root, network, record] })
    const hashes = await rowHashes(store, { day, domain })
    for (const [text, messages] of counted.rows) {
      const hash = createHash('sha256').update(text).digest('base64url')
      const isKnown = hashes.has(hash)
      if (isKnown || hasRoom(bounds, hashes.size, rowsOfDay)) {
        portion.push({ sql: ADD, values: [day, domain, hash, text, messages] })
        hashes.add(hash)
        if (!isKnown) rowsOfDay++
      } else unwritten += messages
      await flush(PORTION)
    }
  }
  await flush(1)
  return unwritten
}

/** Two processes that write at once lock rows in the same order, so that neither waits for the other in a circle. */
function byLockKey(one: Statement, other: Statement): number {
  const [a, b] = [one, other].map(({ sql, values }) => [sql, ...values.slice(0, 3)].join(' '))
  return (a as string) < (b as string) ? -1 : 1
}

async function countRows(store: Store, day: string): Promise<number> {
  return countOf(store.db.selectFrom('dmarc_results').where('day', '=', day))
}

async function rowHashes(store: Store, { day, domain }: DayDomain): Promise<Set<string>> {
  const rows = await store.db
    .selectFrom('dmarc_results')
    .select('row_hash')
    .where('day', '=', day)
    .where('domain', '=', domain)
    .execute()
  return new Set(rows.map(({ row_hash }) => row_hash))
}

const SET_POLICY = `INSERT INTO dmarc_policies (day, domain, root, network, record) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (day, domain) DO UPDATE SET record = excluded.record`
const ADD = `INSERT INTO dmarc_results (day, domain, row_hash, row_json, messages) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (day, domain, row_hash) DO UPDATE SET messages = dmarc_results.messages + excluded.messages`

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
