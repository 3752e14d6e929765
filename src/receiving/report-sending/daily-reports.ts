/**
 * Sends a report for each day and each domain that asks for one, of any kind (RFC 8460, RFC 9990). One process at a time
 * works on this; in steps:
 *
 * 1. The next domain of a day that is over, whose time has come: domains are spread over four hours, as RFC 8460 §4.4
 *    suggests.
 * 2. Its receivers are looked up, the counts are read, the report is made.
 * 3. Each receiver gets it in a transaction of its own, which writes the row that stands for it: a mail is accepted into
 *    the queue, a POST is put into the queue of POSTs. After a crash receivers that have a row are left out.
 * 4. A row without a receiver says that the domain is done.
 *
 * Strangers choose these names, and many of them may not answer. So a pass goes through all that is due once, in order and
 * in steps, and the next pass begins with the next run of the job: a domain that gets no row holds up none that come after
 * it.
 */
import { createHash } from 'node:crypto'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { ReportMail } from '../../mail/messages/system-mail.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import { insert, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { bareAddress, parseMailbox, readOrNull } from '../../protocols/mime/address.ts'

export interface DayDomain {
  /** As YYYY-MM-DD, UTC. */
  day: string
  domain: string
}

/** One kind of report. */
export interface ReportKind<Receiver> {
  /** For the log, e.g. `TLS report`. */
  name: string
  /** Domains of days from `from` and before `to` that are not done, in order of day and domain, after one of them. */
  unreported(from: string, to: string, after: DayDomain, limit: number): Promise<DayDomain[]>
  /** Who wants reports about a domain; null: a name does not answer. */
  receiversOf(about: DayDomain): Promise<readonly Receiver[] | null>
  /** Hands the report over to each receiver, and writes that the domain is done. */
  report(about: DayDomain, receivers: readonly Receiver[]): Promise<void>
}

/** What one process remembers of a kind between steps. A restart begins a new pass. */
export interface ReportProgress {
  /** The last day and domain of the pass so far; empty: a new pass. */
  after: DayDomain
  /** When a domain whose report failed may be tried again, in Unix milliseconds; the longest known first. */
  readonly tryAgainAt: Map<string, number>
}

/** Days that are reported late, after a long stop. */
const DAYS_BACK = 7
/** Counts of a day are written a minute late at most. */
const SETTLED_MS = 10 * MINUTE_MS
const SPREAD_MS = 4 * HOUR_MS
/** Rows read in a step, and domains of them that are worked on. */
const DOMAINS_PER_PAGE = 1_000
const DOMAINS_PER_STEP = 100
/** Names that do not answer take seconds each. */
const LOOKUPS_AT_ONCE = 10
const TRY_AGAIN_MS = HOUR_MS
/** Domains put off that are remembered, some 100 bytes each. One that is forgotten is tried with the next pass. */
const PUT_OFF_MAX = 10_000
const KEPT_DAYS = 60

const START: DayDomain = { day: '', domain: '' }

export const createReportProgress = (): ReportProgress => ({ after: START, tryAgainAt: new Map() })

interface PassParts extends Pick<Core, 'clock' | 'log'> {
  progress: ReportProgress
}

/**
 * One step of a pass: reports up to 100 domains that are due. Ends early when `signal` aborts. Resolves to whether the
 * pass goes on. Each step begins after the last one, so that a pass ends also if no domain can be reported.
 */
export async function sendDailyReports<Receiver>(
  parts: PassParts,
  kind: ReportKind<Receiver>,
  signal: AbortSignal,
): Promise<boolean> {
  const { progress, clock } = parts
  const now = clock.now()
  const page = await kind.unreported(
    dayText(now - DAYS_BACK * DAY_MS),
    dayText(now),
    progress.after,
    DOMAINS_PER_PAGE,
  )
  const due = page.filter(
    ({ day, domain }) => reportTime(day, domain) <= now && (progress.tryAgainAt.get(domain) ?? 0) <= now,
  )
  const chosen = due.slice(0, DOMAINS_PER_STEP)
  for (let at = 0; at < chosen.length; at += LOOKUPS_AT_ONCE) {
    const some = chosen.slice(at, at + LOOKUPS_AT_ONCE)
    const receivers = await Promise.all(some.map((about) => kind.receiversOf(about)))
    for (const [n, about] of some.entries()) {
      if (signal.aborted) return false
      await tryReport(parts, kind, about, receivers[n] ?? null)
      progress.after = about
    }
  }
  const goesOn = due.length > chosen.length || page.length === DOMAINS_PER_PAGE
  if (!goesOn) progress.after = START
  else if (due.length === chosen.length) progress.after = page.at(-1) ?? START
  return goesOn
}

/** A domain that fails is put off and stops no other. `receivers`: null if there was no answer. */
async function tryReport<Receiver>(
  { progress, clock, log }: PassParts,
  kind: ReportKind<Receiver>,
  about: DayDomain,
  receivers: readonly Receiver[] | null,
): Promise<void> {
  try {
    if (receivers) {
      await kind.report(about, receivers)
      progress.tryAgainAt.delete(about.domain)
      if (receivers.length > 0) log.info({ ...about, receivers: receivers.length }, kind.name)
      return
    }
    log.info(about, `no answer to who wants the ${kind.name}`)
  } catch (error) {
    log.warn({ err: error, ...about }, `a ${kind.name} cannot be sent yet`)
  }
  putOff(progress.tryAgainAt, about.domain, clock.now())
}

function putOff(tryAgainAt: Map<string, number>, domain: string, now: number): void {
  tryAgainAt.delete(domain)
  const [oldest] = tryAgainAt.keys()
  if (tryAgainAt.size >= PUT_OFF_MAX && oldest !== undefined) tryAgainAt.delete(oldest)
  tryAgainAt.set(domain, now + TRY_AGAIN_MS)
}

export const dayText = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** When the report of a day about a domain is sent: within four hours after the day, the same on every look. */
export function reportTime(day: string, domain: string): number {
  const part = createHash('sha256').update(`${day} ${domain}`).digest().readUInt32BE() / 2 ** 32
  return Date.parse(`${day}T00:00:00Z`) + DAY_MS + SETTLED_MS + Math.floor(part * SPREAD_MS)
}

/** The same for every attempt at a report (RFC 9990 §3.5.1). */
export const reportId = (hostname: string, { day, domain }: DayDomain): string =>
  createHash('sha256').update(`${hostname} ${day} ${domain}`).digest('hex').slice(0, 32)

/** Tables of what was handed over, by day, domain and URI; an empty URI says that the domain is done. */
type SentTable = 'tls_reports' | 'dmarc_reports'
type SentRow = DayDomain & { uri: string; id: string; content?: Uint8Array | null }

/** Fails as stale where another process has written the row before. */
export function sentStatement(table: SentTable, row: SentRow, now: number): Statement {
  const { sql, values } = insert(table, { ...row, created_at: Math.floor(now) })
  return { sql: `${sql} ON CONFLICT DO NOTHING`, values, expectRows: 1 }
}

export async function isHandedOver(store: Store, table: SentTable, { day, domain }: DayDomain, uri: string) {
  const found = await store.db
    .selectFrom(table)
    .select('id')
    .where('day', '=', day)
    .where('domain', '=', domain)
    .where('uri', '=', uri)
    .executeTakeFirst()
  return found !== undefined
}

/** Accepts the mail with its row, at most once. An address that is none gets the row only. */
export async function mailOnce(
  { store, sendMime }: { store: Store; sendMime: ReportMail },
  address: string,
  mail: Omit<Parameters<ReportMail>[0], 'to'>,
  row: Statement,
): Promise<void> {
  const to = addressOf(address)
  if (to === null) {
    await commitUnlessStale(store, [row])
    return
  }
  try {
    await sendMime({ ...mail, to }, [row])
  } catch (error) {
    // Another process was faster.
    if (!(error instanceof StaleWrite)) throw error
  }
}

const addressOf = (text: string) => readOrNull(() => bareAddress(parseMailbox(text)))

export async function removeOldReports(store: Store, table: SentTable, now: number): Promise<void> {
  await store.commit([
    { sql: `DELETE FROM ${table} WHERE day < ?`, values: [dayText(now - KEPT_DAYS * DAY_MS)] },
  ])
}
