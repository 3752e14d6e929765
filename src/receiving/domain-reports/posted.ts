/**
 * TLS reports over HTTPS (RFC 8460 §5.4). Nothing proves who posts: unlike a mail, a POST has neither SPF nor a signature.
 * So such a report is kept like one by mail that is not authenticated, with the address of the client as its sender: it is
 * shown and never in the totals, and a day of a domain has room for few of them.
 */
import { newId } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { createClientLimit } from '../../platform/http/limits/client-limit.ts'
import { TOO_MANY } from '../../platform/http/openapi.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Store } from '../../platform/store/store.ts'
import { NoReport } from '../../protocols/message/report-mail.ts'
import type { TlsReport } from '../../protocols/reports/tls/report.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { isProven } from '../../sending/domains/names/name-owner.ts'
import { TLS_REPORTS_PATH } from '../../sending/domains/names/report-addresses.ts'
import { createTurns, isOfThisTime, reportedDomain } from './addresses.ts'
import { readTlsFile } from './payload.ts'
import { keepReport } from './store.ts'
import { subjectOf, summaryOf } from './summary.ts'
import { PACKED_BYTES_MAX } from './unpack.ts'

/** A large sender posts one report a day for each domain. */
const POSTS_PER_MINUTE = 30
const TAKEN = { message: 'Report has been taken' }

export function postedReportRoute(parts: {
  store: Store
  clock: Clock
  domains: DomainDirectory
}): Operation {
  const { store, clock, domains } = parts
  const inTurn = createTurns()

  async function keep(at: Domain, remoteAddress: string, bytes: Buffer): Promise<void> {
    const payload = { type: 'tls', report: await read(bytes) } as const
    const subject = subjectOf(payload, at.name)
    const domain = await reportedDomain(domains, at, subject)
    if (domain === null) throw new BadRequest('the report is about another domain')
    const now = clock.now()
    const summary = summaryOf(payload, subject)
    if (!isOfThisTime(summary, now)) throw new BadRequest('the report is not of this time')
    // One that is known, or beyond the room of its day, is taken as well: no answer would make it better.
    const kept = {
      id: newId(now),
      domain,
      sender: remoteAddress,
      authenticated: false,
      receivedAt: now,
      summary,
    }
    await keepReport(store, kept)
  }

  return operation({
    method: 'POST',
    path: `${TLS_REPORTS_PATH}/{domain}`,
    id: 'takeTlsReport',
    tag: 'System',
    summary: 'For senders of mail: a TLS report about a domain, RFC 8460',
    description:
      'Without a login. The report is shown as not authenticated, and is in no total. An address may post 30 a minute, the networks around it more.',
    auth: 'public',
    audit: { exempt: 'what servers report of mail is a report' },
    bodyLimit: { bytes: PACKED_BYTES_MAX, message: 'a report may have 2 MB' },
    bytesOf: ['application/tlsrpt+gzip', 'application/tlsrpt+json'],
    clientLimit: createClientLimit(clock, POSTS_PER_MINUTE),
    answers: {
      200: message(TAKEN.message),
      400: 'Not a TLS report about this domain',
      404: 'The domain is not here',
      413: 'A report may have 2 MB',
      429: TOO_MANY,
    },
    async beforeBody({ path }) {
      const domain = await domains.byName(path.domain.toLowerCase())
      if (domain === null || !isProven(domain)) throw new NotFound('Domain not found')
      return domain
    },
    async handler({ found: domain, bytes, remoteAddress }) {
      await inTurn(remoteAddress, () => keep(domain, remoteAddress, bytes))
      return TAKEN
    },
  })
}

/** @throws BadRequest */
async function read(bytes: Buffer): Promise<TlsReport> {
  try {
    return await readTlsFile(bytes)
  } catch (error) {
    if (error instanceof NoReport) throw new BadRequest(`the report cannot be read: ${error.message}`)
    throw error
  }
}
