/**
 * The addresses for reports, for reception (src/receiving/sessions):
 *
 *     dmarc-reports@<domain>, tls-reports@<domain>   about a domain of an account, and about domains above and below it
 *     the same at the service's own host             about any domain of an account
 *
 * Anyone may send a report. So it counts in the totals only if SPF or DKIM proved its sender, and only the rows of a
 * domain of the same account can be reached. What cannot be read is accepted and dropped: no reply makes it better.
 */
import { createKeyedGate } from '../../base/flow/gate.ts'
import { newId } from '../../base/ids.ts'
import { networksOf } from '../../base/net/ip.ts'
import { TooManyWaiting } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { type ReadMail, readMail } from '../../mail/accept/received-mail.ts'
import { isWithin } from '../../protocols/dns/names.ts'
import { NoReport } from '../../protocols/message/report-mail.ts'
import { readOrNull } from '../../protocols/mime/address.ts'
import { parseAuthors } from '../../protocols/mime/loose-address.ts'
import { MimeSyntaxError } from '../../protocols/mime/split.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { isProven } from '../../sending/domains/names/name-owner.ts'
import { DMARC_REPORTS_LOCAL, TLS_REPORTS_LOCAL } from '../../sending/domains/names/report-addresses.ts'
import type { MailCheck } from '../routes/mail-check.ts'
import type { AddressReader, ReceivedMail } from '../sessions/reception.ts'
import { type Payload, readPayload } from './payload.ts'
import { keepReport } from './store.ts'
import { type ReportSummary, subjectOf, summaryOf } from './summary.ts'

interface ReportAddressParts extends Pick<Core, 'store' | 'clock' | 'log' | 'domains'> {
  check: MailCheck
  /** In lower case. */
  hostname: string
}

const LOCALS = new Set([DMARC_REPORTS_LOCAL, TLS_REPORTS_LOCAL])
/** 2 MB in base64, with the rest of the mail. */
const KEPT_BYTES = 3_000_000
/** Reports are daily and come within hours; others are mistakes. */
const AGE_MAX_MS = 31 * DAY_MS
const AHEAD_MAX_MS = 2 * DAY_MS
const TURNS = { openMax: 1, waitingMax: 50, ownOpenMax: 1, ownWaitingMax: 10 }

/**
 * Reports are read one after the other; each may take a second. The networks that send them take turns, so that one of them
 * cannot keep others out. The function throws TooManyWaiting.
 */
export function createTurns() {
  const gate = createKeyedGate(TURNS)
  return async <T>(remoteAddress: string, task: () => Promise<T>): Promise<T> => {
    const [, , network] = networksOf(remoteAddress)
    const done = await gate.run(network, undefined, async () => ({ result: await task() }))
    if (done === null) throw new TooManyWaiting(1)
    return done.result
  }
}

export function reportAddresses(parts: ReportAddressParts): AddressReader {
  const inTurn = createTurns()
  return async ({ local, domain: host }) => {
    if (!LOCALS.has(local.toLowerCase())) return null
    const domain = await parts.domains.byName(host)
    if (domain === null && host !== parts.hostname) return null
    return {
      subject: null,
      keptBytes: KEPT_BYTES,
      async receive(mail) {
        const verdict = await inTurn(mail.remoteAddress, () => take(parts, domain, mail))
        parts.log.info({ host, verdict, remoteAddress: mail.remoteAddress }, 'report mail came')
      },
    }
  }
}

/** The result for one mail, for the log. */
async function take(parts: ReportAddressParts, at: Domain | null, mail: ReceivedMail): Promise<string> {
  try {
    const read = await readMail(mail.raw)
    const payload = await readPayload(read)
    const domain = await domainOf(parts, at, payload)
    if (domain === null) return 'about another domain'
    return await keep(parts, domain, payload, read, mail)
  } catch (error) {
    if (error instanceof NoReport || error instanceof MimeSyntaxError) return `dropped: ${error.message}`
    throw error
  }
}

async function keep(
  { store, clock, check }: ReportAddressParts,
  domain: Domain,
  payload: Payload,
  read: ReadMail,
  { raw, sender: envelopeSender, remoteAddress, helo }: ReceivedMail,
): Promise<string> {
  const now = clock.now()
  const summary = summaryOf(payload, subjectOf(payload, domain.name))
  if (!isOfThisTime(summary, now)) return 'not of this time'
  const sender = senderOf(read)
  const { provenDomains } = await check({
    ...{ chunk: raw, headers: read.headers, remoteAddress, helo },
    sender: envelopeSender,
    sealingKey: null,
  })
  const authenticated = sender !== '' && provenDomains.some((proven) => isAligned(proven, sender))
  const isNew = await keepReport(store, {
    ...{ id: newId(now), domain, sender, authenticated, receivedAt: now, summary },
  })
  if (!isNew) return 'repeated, or too many of that day'
  return authenticated ? 'kept' : 'kept, not authenticated'
}

export const isOfThisTime = ({ beginAt, endAt }: ReportSummary, now: number): boolean =>
  beginAt >= now - AGE_MAX_MS && endAt <= now + AHEAD_MAX_MS

/** The registered domain of the report, if mail to that address may report about it. */
async function domainOf(
  { domains }: ReportAddressParts,
  at: Domain | null,
  payload: Payload,
): Promise<Domain | null> {
  const subject = subjectOf(payload, at?.name ?? '')
  return at === null ? domains.byName(subject) : reportedDomain(domains, at, subject)
}

/** The domain whose report it is when one about `subject` comes to `at`; null: another's. */
export async function reportedDomain(
  domains: DomainDirectory,
  at: Domain,
  subject: string,
): Promise<Domain | null> {
  const named = await domains.byName(subject)
  if (named !== null && named.accountId === at.accountId) return named
  if (named !== null && isProven(named)) return null
  // The policy of a domain above ours applies to ours.
  return isWithin(at.name, subject) || isWithin(subject, at.name) ? at : null
}

/** Relaxed alignment as for our own domains (`checkDmarc`): equal, or one below the other. */
const isAligned = (proven: string, sender: string) =>
  proven === sender ||
  (isWithin(sender, proven) && proven.includes('.')) ||
  (isWithin(proven, sender) && sender.includes('.'))

/** Domain of the only author; '' without one. */
function senderOf({ headers }: ReadMail): string {
  const fields = headers.filter(({ name }) => name.toLowerCase() === 'from')
  const authors = readOrNull(() => parseAuthors(fields[0]?.value ?? '')) ?? []
  const isOne = fields.length === 1 && authors.length === 1
  return isOne ? (authors[0]?.domain.toLowerCase() ?? '') : ''
}
