/** TLS reports as a kind of daily report (receiving/report-sending/daily-reports.ts): who wants them, what they say. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Core } from '../../core.ts'
import type { ReportMail } from '../../mail/messages/system-mail.ts'
import type { PostKind } from '../../platform/posts/post-attempts.ts'
import type { PostQueue } from '../../platform/posts/post-queue.ts'
import { laneOf } from '../../platform/posts/post-rows.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { type ReportReceiver, reportReceivers } from '../../protocols/reports/tls/record.ts'
import {
  type ReportedPolicy,
  tlsReport,
  tlsReportFilename,
  tlsReportMail,
} from '../../protocols/reports/tls/write-report.ts'
import {
  type DayDomain,
  isHandedOver,
  mailOnce,
  type ReportKind,
  type ReportProgress,
  reportId,
  sendDailyReports,
  sentStatement,
} from '../../receiving/report-sending/daily-reports.ts'

export interface ReportParts extends Pick<Core, 'store' | 'clock' | 'log' | 'firstAccountId'> {
  resolver: Pick<Resolver, 'query'>
  sendMime: ReportMail
  posts: Pick<PostQueue, 'statements'>
  /** Names who reports. */
  hostname: string
  progress: ReportProgress
}

/** The kind of these POSTs in the queue. */
export const POST_KIND = 'tls-report'
/** Policies and failures of a report, those with the most sessions. */
const POLICIES_MAX = 100
const FAILURES_MAX = 500
const ROWS_MAX = 20_000
const TABLE = 'tls_reports'
const pack = promisify(gzip)

/** One step of a pass; see `sendDailyReports`. */
export const sendReports = (parts: ReportParts, signal: AbortSignal): Promise<boolean> =>
  sendDailyReports(parts, kindOf(parts), signal)

const kindOf = (parts: ReportParts): ReportKind<ReportReceiver> => ({
  name: 'TLS report',
  unreported: (from, to, after, limit) => unreported(parts.store, from, to, after, limit),
  async receiversOf({ domain }) {
    const answer = await parts.resolver.query(`_smtp._tls.${domain}`, 'TXT')
    const isAnswer = answer.kind === 'records' || answer.kind === 'nodata' || answer.kind === 'nxdomain'
    return isAnswer ? reportReceivers(answer.records) : null
  },
  report: (about, receivers) => reportDomain(parts, about, receivers),
})

async function unreported(
  store: Store,
  from: string,
  to: string,
  after: DayDomain,
  limit: number,
): Promise<DayDomain[]> {
  const rows = await store.read({
    sql: `SELECT DISTINCT r.day, r.recipient_domain FROM tls_results r
      WHERE r.day >= ? AND r.day < ? AND (r.day, r.recipient_domain) > (?, ?)
        AND NOT EXISTS (SELECT 1 FROM tls_reports t
          WHERE t.day = r.day AND t.domain = r.recipient_domain AND t.uri = '')
      ORDER BY r.day, r.recipient_domain LIMIT ${limit}`,
    values: [from, to, after.day, after.domain],
  })
  return rows.map((row) => ({ day: String(row['day']), domain: String(row['recipient_domain']) }))
}

async function reportDomain(
  parts: ReportParts,
  about: DayDomain,
  receivers: readonly ReportReceiver[],
): Promise<void> {
  const { store, clock, hostname } = parts
  const { day, domain } = about
  const id = reportId(hostname, about)
  if (receivers.length > 0) {
    const policies = await policiesOf(parts, day, domain)
    const contact = `postmaster@${hostname}`
    const report = tlsReport({ organization: hostname, contact, id, day, policies })
    const content = await pack(JSON.stringify(report))
    for (const [at, receiver] of receivers.entries())
      await handOver(parts, { about, id, content, receiver, at })
  }
  // Another process may have written the row before.
  await commitUnlessStale(store, [
    sentStatement(TABLE, { ...about, uri: '', id, content: null }, clock.now()),
  ])
}

interface HandOver {
  about: DayDomain
  id: string
  content: Uint8Array
  receiver: ReportReceiver
  at: number
}

async function handOver(parts: ReportParts, { about, id, content, receiver, at }: HandOver): Promise<void> {
  const { store, clock, posts, hostname, firstAccountId } = parts
  const { uri, target } = receiver
  if (await isHandedOver(store, TABLE, about, uri)) return
  const rowId = `${id}-${at}`
  const row = (kept: Uint8Array | null) =>
    sentStatement(TABLE, { ...about, uri, id: rowId, content: kept }, clock.now())
  if (receiver.kind === 'https') {
    const lane = laneOf(target)
    const post = { kind: POST_KIND, accountId: firstAccountId, url: target, lane, subject: rowId }
    await commitUnlessStale(store, [row(content), ...posts.statements([post])])
    return
  }
  const submitter = hostname
  const write = (from: string, to: string) => tlsReportMail({ from, to, ...about, submitter, id, content })
  await mailOnce(parts, target, { from: null, write, isTlsReport: true }, row(null))
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
      const filename = tlsReportFilename(hostname, row.domain, row.day, row.id)
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
