/**
 * Sends a report for each day and each domain of recipients that asks for one and had TLS sessions under a policy
 * (RFC 8460). One process at a time works on this; in steps:
 *
 * 1. The next domain of a day that is over, whose time has come: domains are spread over four hours, as §4.4 suggests.
 * 2. Its record is looked up, the counts are read, the report is made.
 * 3. Each receiver gets it in a transaction of its own, which writes the row that stands for it: a mail is accepted into
 *    the queue, a POST is put into the queue of POSTs. After a crash receivers that have a row are left out.
 * 4. A row without a receiver says that the domain is done.
 *
 * Who receives mail chooses these names, and many of them may not answer. So a pass goes through all that is due once,
 * in order and in steps, and the next pass begins with the next run of the job: a domain that gets no row holds up none
 * that come after it.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { TlsReportMail } from '../../mail/messages/system-mail.ts'
import type { PostKind } from '../../platform/posts/post-attempts.ts'
import type { PostQueue } from '../../platform/posts/post-queue.ts'
import { laneOf } from '../../platform/posts/post-rows.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import { insert, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { AddressSyntaxError, bareAddress, parseMailbox } from '../../protocols/mime/address.ts'
import { type ReportReceiver, reportReceivers } from '../../protocols/reports/tls/record.ts'
import {
  type ReportedPolicy,
  reportFilename,
  reportMail,
  tlsReport,
} from '../../protocols/reports/tls/write-report.ts'

export interface ReportParts {
  store: Store
  resolver: Pick<Resolver, 'query'>
  clock: Clock
  log: Logger
  sendMime: TlsReportMail
  posts: Pick<PostQueue, 'statements'>
  firstAccountId: string
  /** Names who reports. */
  hostname: string
  progress: ReportProgress
}

/** What one process remembers between steps. A restart begins a new pass. */
interface ReportProgress {
  /** The last day and domain of the pass so far, in the order of `dueDomains`; empty: a new pass. */
  after: DayDomain
  /** When a domain whose report failed may be tried again, in Unix milliseconds; the longest known first. */
  readonly tryAgainAt: Map<string, number>
}

interface DayDomain {
  day: string
  domain: string
}

/** The kind of these POSTs in the queue. */
export const POST_KIND = 'tls-report'
/** Days that are reported late, after a long stop; older counts are removed after 30. */
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
/** Policies and failures of a report, those with the most sessions. */
const POLICIES_MAX = 100
const FAILURES_MAX = 500
const ROWS_MAX = 20_000
const KEPT_DAYS = 60
const pack = promisify(gzip)

const START: DayDomain = { day: '', domain: '' }

export const createReportProgress = (): ReportProgress => ({ after: START, tryAgainAt: new Map() })

/**
 * One step of a pass: reports up to 100 domains that are due. Ends early when `signal` aborts. Resolves to whether the
 * pass goes on. Each step begins after the last one, so that a pass ends also if no domain can be reported.
 */
export async function sendReports(parts: ReportParts, signal: AbortSignal): Promise<boolean> {
  const { progress, clock } = parts
  const page = await unreported(parts, progress.after)
  const now = clock.now()
  const due = page.filter(
    ({ day, domain }) => reportTime(day, domain) <= now && (progress.tryAgainAt.get(domain) ?? 0) <= now,
  )
  const chosen = due.slice(0, DOMAINS_PER_STEP)
  for (let at = 0; at < chosen.length; at += LOOKUPS_AT_ONCE) {
    const some = chosen.slice(at, at + LOOKUPS_AT_ONCE)
    const receivers = await Promise.all(some.map(({ domain }) => receiversOf(parts, domain)))
    for (const [n, about] of some.entries()) {
      if (signal.aborted) return false
      await tryReport(parts, about, receivers[n] ?? null)
      progress.after = about
    }
  }
  const goesOn = due.length > chosen.length || page.length === DOMAINS_PER_PAGE
  if (!goesOn) progress.after = START
  else if (due.length === chosen.length) progress.after = page.at(-1) ?? START
  return goesOn
}

/** A domain that fails is put off and stops no other. `receivers`: null if there was no answer. */
async function tryReport(
  parts: ReportParts,
  { day, domain }: DayDomain,
  receivers: ReportReceiver[] | null,
): Promise<void> {
  const { progress, clock, log } = parts
  try {
    if (receivers) {
      await reportDomain(parts, day, domain, receivers)
      progress.tryAgainAt.delete(domain)
      return
    }
    log.info({ day, domain }, 'no answer to who wants the TLS report')
  } catch (error) {
    log.warn({ err: error, day, domain }, 'a TLS report cannot be sent yet')
  }
  putOff(progress.tryAgainAt, domain, clock.now())
}

function putOff(tryAgainAt: Map<string, number>, domain: string, now: number): void {
  tryAgainAt.delete(domain)
  const [oldest] = tryAgainAt.keys()
  if (tryAgainAt.size >= PUT_OFF_MAX && oldest !== undefined) tryAgainAt.delete(oldest)
  tryAgainAt.set(domain, now + TRY_AGAIN_MS)
}

const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** When the report of a day about a domain is sent: within four hours after the day, the same on every look. */
export function reportTime(day: string, domain: string): number {
  const part = createHash('sha256').update(`${day} ${domain}`).digest().readUInt32BE() / 2 ** 32
  return Date.parse(`${day}T00:00:00Z`) + DAY_MS + SETTLED_MS + Math.floor(part * SPREAD_MS)
}

/** Domains of days that are over without a row that says they are done, in order, after one of them. */
async function unreported({ store, clock }: ReportParts, after: DayDomain): Promise<DayDomain[]> {
  const now = clock.now()
  const rows = await store.read({
    sql: `SELECT DISTINCT r.day, r.recipient_domain FROM tls_results r
      WHERE r.day < ? AND r.day >= ? AND (r.day, r.recipient_domain) > (?, ?)
        AND NOT EXISTS (SELECT 1 FROM tls_reports t
          WHERE t.day = r.day AND t.domain = r.recipient_domain AND t.uri = '')
      ORDER BY r.day, r.recipient_domain LIMIT ${DOMAINS_PER_PAGE}`,
    values: [dayText(now), dayText(now - DAYS_BACK * DAY_MS), after.day, after.domain],
  })
  return rows.map((row) => ({ day: String(row['day']), domain: String(row['recipient_domain']) }))
}

/** Who wants reports about a domain; null: its name does not answer. */
async function receiversOf({ resolver }: ReportParts, domain: string): Promise<ReportReceiver[] | null> {
  const answer = await resolver.query(`_smtp._tls.${domain}`, 'TXT')
  const isAnswer = answer.kind === 'records' || answer.kind === 'nodata' || answer.kind === 'nxdomain'
  return isAnswer ? reportReceivers(answer.records) : null
}

async function reportDomain(
  parts: ReportParts,
  day: string,
  domain: string,
  receivers: readonly ReportReceiver[],
): Promise<void> {
  const { store, clock, log, hostname } = parts
  const id = createHash('sha256').update(`${hostname} ${day} ${domain}`).digest('hex').slice(0, 32)
  if (receivers.length > 0) {
    const policies = await policiesOf(parts, day, domain)
    const contact = `postmaster@${hostname}`
    const report = tlsReport({ organization: hostname, contact, id, day, policies })
    const content = await pack(JSON.stringify(report))
    for (const [at, receiver] of receivers.entries())
      await handOver(parts, { day, domain, id, content, receiver, at })
    log.info({ day, domain, receivers: receivers.length }, 'TLS report')
  }
  // Another process may have written the row before.
  await commitUnlessStale(store, [rowOf({ day, domain, uri: '', id, content: null }, clock.now())])
}

const rowOf = (
  row: { day: string; domain: string; uri: string; id: string; content: Uint8Array | null },
  now: number,
): Statement => {
  const { sql, values } = insert('tls_reports', { ...row, created_at: Math.floor(now) })
  return { sql: `${sql} ON CONFLICT DO NOTHING`, values, expectRows: 1 }
}

interface HandOver {
  day: string
  domain: string
  id: string
  content: Uint8Array
  receiver: ReportReceiver
  at: number
}

async function handOver(
  parts: ReportParts,
  { day, domain, id, content, receiver, at }: HandOver,
): Promise<void> {
  const { store, clock, sendMime, posts, hostname, firstAccountId } = parts
  const known = await store.db
    .selectFrom('tls_reports')
    .select('id')
    .where('day', '=', day)
    .where('domain', '=', domain)
    .where('uri', '=', receiver.uri)
    .executeTakeFirst()
  if (known) return
  const now = clock.now()
  const rowId = `${id}-${at}`
  if (receiver.kind === 'https') {
    const row = rowOf({ day, domain, uri: receiver.uri, id: rowId, content }, now)
    const { target: url } = receiver
    const post = { kind: POST_KIND, accountId: firstAccountId, url, lane: laneOf(url), subject: rowId }
    await commitUnlessStale(store, [row, ...posts.statements([post])])
    return
  }
  const to = addressOf(receiver.target)
  const row = rowOf({ day, domain, uri: receiver.uri, id: rowId, content: null }, now)
  if (to === null) {
    await commitUnlessStale(store, [row])
    return
  }
  try {
    await sendMime(to, (from) => reportMail({ from, to, domain, submitter: hostname, day, id, content }), [
      row,
    ])
  } catch (error) {
    // Another process was faster.
    if (!(error instanceof StaleWrite)) throw error
  }
}

function addressOf(text: string): string | null {
  try {
    return bareAddress(parseMailbox(text))
  } catch (error) {
    if (error instanceof AddressSyntaxError) return null
    throw error
  }
}

async function policiesOf(
  { store, resolver }: ReportParts,
  day: string,
  domain: string,
): Promise<ReportedPolicy[]> {
  const rows = await store.db
    .selectFrom('tls_results')
    .selectAll()
    .where('day', '=', day)
    .where('recipient_domain', '=', domain)
    .orderBy('sessions', 'desc')
    .limit(ROWS_MAX)
    .execute()
  const byPolicy = [...Map.groupBy(rows, (row) => `${row.policy_type} ${row.policy_domain}`).values()]
  let failuresLeft = FAILURES_MAX
  const policies: ReportedPolicy[] = []
  for (const some of byPolicy.slice(0, POLICIES_MAX)) {
    const { policy_type, policy_domain } = some[0] as (typeof rows)[number]
    const type = policy_type === 'tlsa' ? 'tlsa' : 'sts'
    const failed = some.filter(({ result_type }) => result_type !== 'success').slice(0, failuresLeft)
    failuresLeft -= failed.length
    policies.push({
      type,
      domain: policy_domain,
      strings: await policyStrings({ store, resolver }, type, policy_domain),
      mxHosts: [...new Set(some.map(({ mx_host }) => mx_host))],
      successful: some
        .filter(({ result_type }) => result_type === 'success')
        .reduce((sum, { sessions }) => sum + Number(sessions), 0),
      failures: failed.map((row) => ({
        resultType: row.result_type,
        sendingIp: row.sending_ip,
        receivingHost: row.mx_host,
        sessions: Number(row.sessions),
      })),
    })
  }
  return policies
}

/** The policy as it is now: the one that was applied may have been replaced since. */
async function policyStrings(
  { store, resolver }: Pick<ReportParts, 'store' | 'resolver'>,
  type: 'sts' | 'tlsa',
  domain: string,
): Promise<string[]> {
  if (type === 'sts') {
    const row = await store.db
      .selectFrom('mta_sts_policies')
      .select('policy_text')
      .where('domain', '=', domain)
      .executeTakeFirst()
    return row?.policy_text.split(/\r?\n/).filter((line) => line !== '') ?? []
  }
  const { records } = await resolver.query(`_25._tcp.${domain}`, 'TLSA')
  return records.map(
    ({ usage, selector, matchingType, certificate }) =>
      `${usage} ${selector} ${matchingType} ${Buffer.from(certificate).toString('hex')}`,
  )
}

/** How the queue of POSTs sends reports (RFC 8460 §5.4). */
export function reportPosts(
  { store, hostname }: Pick<ReportParts, 'store' | 'hostname'>,
  scheduleMs: readonly number[],
): PostKind {
  return {
    async prepare({ subject }) {
      const row = await store.db
        .selectFrom('tls_reports')
        .selectAll()
        .where('id', '=', subject)
        .executeTakeFirst()
      if (!row?.content) return null
      const filename = reportFilename(hostname, row.domain, row.day, row.id)
      return {
        headers: {
          'content-type': 'application/tlsrpt+gzip',
          'content-disposition': `attachment; filename="${filename}"`,
        },
        body: Buffer.from(row.content),
        retryScheduleMs: scheduleMs,
        record: ({ status }) =>
          status === 'failing'
            ? []
            : [{ sql: 'UPDATE tls_reports SET content = NULL WHERE id = ?', values: [row.id] }],
      }
    },
  }
}

export async function removeOldReports(store: Store, now: number): Promise<void> {
  await store.commit([
    { sql: 'DELETE FROM tls_reports WHERE day < ?', values: [dayText(now - KEPT_DAYS * DAY_MS)] },
  ])
}
