/** DMARC aggregate reports as a kind of daily report (daily-reports.ts): who wants them, what they say. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Core } from '../../core.ts'
import type { ReportMail } from '../../mail/messages/system-mail.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import { readDmarc } from '../../protocols/dns/dmarc.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import {
  type AggregateReceiver,
  aggregateReceivers,
  confirmedReceivers,
  confirmingName,
  firstReceivers,
} from '../../protocols/reports/dmarc/receivers.ts'
import {
  aggregateMail,
  aggregateReport,
  type PublishedPolicy,
} from '../../protocols/reports/dmarc/write-report.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import {
  type DayDomain,
  isHandedOver,
  mailOnce,
  type ReportKind,
  type ReportProgress,
  reportId,
  sentStatement,
} from './daily-reports.ts'
import { recordOf, removedStatements, reportedDomains, rowsOf } from './results.ts'

interface DmarcReportParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  resolver: Pick<Resolver, 'query'>
  sendMime: ReportMail
  /** Name and address of who reports; the address is in a domain of the first account. */
  sender: { organization: string; from: string }
  progress: ReportProgress
}

const TABLE = 'dmarc_reports'
const pack = promisify(gzip)

export const dmarcReportKind = (parts: DmarcReportParts): ReportKind<AggregateReceiver> => ({
  name: 'DMARC report',
  unreported: (from, to, after, limit) => reportedDomains(parts.store, { from, to, after, limit }),
  async receiversOf(about) {
    const wanted = aggregateReceivers(await recordOf(parts.store, about))
    const confirmed = await Promise.all(wanted.map((one) => confirmedBy(parts, about.domain, one)))
    // Each may name others in its place.
    return confirmed.includes(null) ? null : firstReceivers(confirmed.flatMap((some) => some ?? []))
  },
  report: (about, receivers) => reportDomain(parts, about, receivers),
})

/** The receiver where it is the domain's own, or says itself that it takes the reports (RFC 9990 §4); null: no answer. */
async function confirmedBy({ resolver }: DmarcReportParts, domain: string, receiver: AggregateReceiver) {
  if (rootDomainOf(receiver.host) === rootDomainOf(domain)) return [receiver]
  const name = confirmingName(domain, receiver.host)
  if (name === null) return []
  const answer = await resolver.query(name, 'TXT')
  if (answer.kind === 'records') return confirmedReceivers(receiver, answer.records)
  return answer.kind === 'nodata' || answer.kind === 'nxdomain' ? [] : null
}

async function reportDomain(
  parts: DmarcReportParts,
  about: DayDomain,
  receivers: readonly AggregateReceiver[],
): Promise<void> {
  const { store, clock, sender } = parts
  const submitter = sender.from.slice(sender.from.indexOf('@') + 1)
  const id = reportId(submitter, about)
  const rows = receivers.length > 0 ? await rowsOf(store, about) : []
  if (rows.length > 0) {
    const policy = publishedPolicy(await recordOf(store, about))
    const { organization, from: contact } = sender
    const report = aggregateReport({ organization, contact, id, ...about, policy, rows })
    const content = await pack(report)
    for (const receiver of receivers) await handOver(parts, { about, id, submitter, content, receiver })
  }
  // Another process may have written the row before.
  await commitUnlessStale(store, [
    sentStatement(TABLE, { ...about, uri: '', id }, clock.now()),
    ...removedStatements(about),
  ])
}

function publishedPolicy(text: string): PublishedPolicy {
  const record = readDmarc(text)
  return {
    p: record?.policy ?? 'none',
    sp: record?.subdomainPolicy ?? 'none',
    np: record?.absentPolicy ?? 'none',
    adkim: record?.isDkimStrict ? 's' : 'r',
    aspf: record?.isSpfStrict ? 's' : 'r',
    testing: record?.isTesting ?? false,
  }
}

interface HandOver {
  about: DayDomain
  id: string
  submitter: string
  content: Uint8Array
  receiver: AggregateReceiver
}

async function handOver(parts: DmarcReportParts, { about, id, submitter, content, receiver }: HandOver) {
  const { store, clock, log, sender } = parts
  const { uri, address, bytesMax } = receiver
  if (await isHandedOver(store, TABLE, about, uri)) return
  const write = (from: string, to: string) => aggregateMail({ from, to, ...about, submitter, id, content })
  const sizeBytes = write(sender.from, address).length
  if (bytesMax !== null && sizeBytes > bytesMax) {
    log.info({ ...about, uri, sizeBytes }, 'a DMARC report is larger than its receiver takes')
    return
  }
  const row = sentStatement(TABLE, { ...about, uri, id }, clock.now())
  await mailOnce(parts, address, { from: sender.from, write, isTlsReport: false }, row)
}
