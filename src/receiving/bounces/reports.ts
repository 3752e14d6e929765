/**
 * Bounces and complaints about a delivery that a server had accepted.
 *
 * 1. The mail is read as a feedback report (src/protocols/reports/arf), else as a bounce (src/protocols/reports/dsn); if it is neither, it is dropped.
 * 2. The delivery is the one that an authentic token names: in the address that the mail came to, or in what the report
 *    returns of our mail, for relays that replace the return path. Addresses in the report are not trusted: forwarding
 *    changes them, feedback loops redact them, and anyone can write them.
 * 3. Failed event or complained event, the entry of the suppression list, webhooks, and a mark that this report has
 *    been counted: one transaction. The mark makes the second copy of a report do nothing.
 *
 * Left out: delays, successes, `not-spam`, reports on deliveries that have failed already or are unknown.
 */

import type { Logger } from 'pino'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import {
  deliveryOfReturnPath,
  type ReturnPathMac,
  readDeliveryToken,
} from '../../mail/deliver/attempt/return-path.ts'
import type { KnownDeliveries, KnownDelivery } from '../../mail/stored/known-deliveries.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import type { Statement } from '../../platform/store/store.ts'
import { originalHeaders, type ReportMail } from '../../protocols/message/report-mail.ts'
import { type FeedbackReport, readFeedbackReport } from '../../protocols/reports/arf/report.ts'
import { isVague } from '../../protocols/reports/dsn/codes.ts'
import type { DsnRecipient } from '../../protocols/reports/dsn/recipient.ts'
import { readFirstDsn } from '../../protocols/reports/dsn/report.ts'
import { FEEDBACK_LOCAL } from '../../sending/domains/names/report-addresses.ts'
import { addBounce, addComplaint } from '../../sending/suppressions/automatic.ts'
import { type EventRecord, failedEvent } from '../../watching/events/event.ts'
import { complainedEvent } from '../../watching/events/later-events.ts'
import type { AddressReader, ReceivedMail } from '../sessions/reception.ts'
import { Refusal } from '../sessions/replies.ts'
import type { Classification, FailureText } from './classify.ts'

/** The result for one mail; for the log and for tests. */
type Verdict =
  | 'bounced'
  | 'complained'
  /** It was counted before, or too many others for this delivery were. */
  | 'repeated'
  /** No failure: a delay, a success, `not-spam`. */
  | 'harmless'
  /** A reply, a vacation notice, spam. */
  | 'no-report'
  /** The delivery is no longer known, or no authentic token names one. */
  | 'unknown-delivery'
  /** The delivery has its failed event. */
  | 'failed-before'
  /** The outcome of the attempt is being written: the mail should be sent again. */
  | 'too-early'

export type Reports = ReturnType<typeof createReports>

interface ReportsParts extends Pick<Core, 'store' | 'clock' | 'recorder'> {
  deliveries: KnownDeliveries
  mac: ReturnPathMac
  classify(failure: FailureText): Classification
}

/** Different bounces of one delivery. The recipient of the mail knows its token and could send any number. */
const REPORTS_PER_DELIVERY_MAX = 4
/** How long a report is recognised. Servers repeat a mail for five days (RFC 5321 §4.5.4.1), people for longer. */
const REMEMBER_MS = 90 * DAY_MS
/** How many texts in a returned mail that look like tokens are checked. */
const TOKENS_MAX = 50
/** Types of reports that mean the recipient does not want the mail; others are about its content or signature, or praise it. */
const COMPLAINTS: ReadonlySet<FeedbackReport['type']> = new Set(['abuse', 'fraud', 'opt-out'])
/** States that have a failed or rejected event. */
const ENDED: ReadonlySet<KnownDelivery['state']> = new Set([
  'bounced',
  'expired',
  'suppressed',
  'rejected',
  'cancelled',
])

export function createReports(parts: ReportsParts) {
  const { store, deliveries, clock } = parts

  async function complain(
    type: FeedbackReport['type'],
    returned: readonly string[],
    returnedTo: string | null,
  ): Promise<Verdict> {
    if (!COMPLAINTS.has(type)) return 'harmless'
    const deliveryId = deliveryIn(returned, parts.mac) ?? returnedTo
    const delivery = deliveryId === null ? null : await deliveries.find(deliveryId)
    if (!delivery) return 'unknown-delivery'
    const { about, recipientProvider, sendingIp } = delivery
    const now = clock.now()
    const event = complainedEvent(about, delivery, { recipientProvider, sendingIp }, now)
    const entry = addComplaint(ownerOf(delivery), delivery.recipient, event.id, now)
    return (await write(delivery, 'complaint', '', event, entry)) ? 'complained' : 'repeated'
  }

  async function bounce(recipients: readonly DsnRecipient[], deliveryId: string | null): Promise<Verdict> {
    const delivery = deliveryId === null ? null : await deliveries.find(deliveryId)
    if (!delivery) return 'unknown-delivery'
    const failure = ownGroup(recipients, delivery.recipient)
    if (failure?.action !== 'failed') return 'harmless'
    if (delivery.state === 'sending') return 'too-early'
    if (ENDED.has(delivery.state)) return 'failed-before'
    const late = lateBounce(delivery, failure, parts.classify, clock.now())
    return (await write(delivery, 'bounce', failure.status ?? '', late.event, late.entry))
      ? 'bounced'
      : 'repeated'
  }

  /** False: this report was counted before, or enough others were. */
  function write(
    delivery: KnownDelivery,
    kind: 'bounce' | 'complaint',
    status: string,
    event: EventRecord,
    entry: readonly Statement[],
  ): Promise<boolean> {
    const now = Math.floor(clock.now())
    const mark: Statement = {
      sql: `INSERT INTO delivery_reports (delivery_id, kind, status, account_id, event_id, created_at)
        SELECT ?, ?, ?, ?, ?, CAST(? AS BIGINT)
        WHERE (SELECT count(*) FROM delivery_reports WHERE delivery_id = ? AND kind = ?) < ${REPORTS_PER_DELIVERY_MAX}
        ON CONFLICT (delivery_id, kind, status) DO NOTHING`,
      values: [
        ...[delivery.deliveryId, kind, status, delivery.accountId, event.id, now],
        ...[delivery.deliveryId, kind],
      ],
      expectRows: 1,
    }
    const forget: Statement = {
      sql: 'DELETE FROM delivery_reports WHERE created_at < ?',
      values: [now - REMEMBER_MS],
    }
    return commitUnlessStale(store, [mark, forget, ...entry, ...parts.recorder.statements([event])])
  }

  return {
    /**
     * `returnedTo`: the delivery whose return path the report was sent to; null: it came to an address, or an endpoint, that
     * names none.
     * @throws StoreFull, StoreUnavailable; nothing was stored then
     */
    async take({ feedback, recipients, returned }: Returned, returnedTo: string | null): Promise<Verdict> {
      if (feedback !== null) return complain(feedback, returned, returnedTo)
      if (recipients === null) return 'no-report'
      return bounce(recipients, returnedTo ?? deliveryIn(returned, parts.mac))
    },
  }
}

/** What a report says, and what it returns of our mail. */
export interface Returned {
  /** A complaint, or another report of a feedback loop: its type. */
  feedback: FeedbackReport['type'] | null
  /** A bounce: its groups, at least one. */
  recipients: readonly DsnRecipient[] | null
  /** Parts of the returned mail. The first authentic token in them names the delivery, if the address does not. */
  returned: readonly string[]
}

/** What a mail and those within it report; `feedback` and `recipients` are null: nothing. */
export function readReturned(mails: readonly ReportMail[]): Returned {
  const feedback = firstOf(mails, readFeedbackReport)
  if (feedback) {
    const { type, originalMailFrom, original } = feedback
    return { feedback: type, recipients: null, returned: [originalMailFrom ?? '', ...valuesOf(original)] }
  }
  return {
    feedback: null,
    recipients: readFirstDsn(mails)?.recipients ?? null,
    // Servers that write no standard report quote the mail in their text.
    returned: mails.flatMap((mail) => [...valuesOf(originalHeaders(mail)), mail.text]),
  }
}

const valuesOf = (headers: ReportMail['headers']) => headers.map(([, value]) => value)

function firstOf<T>(mails: readonly ReportMail[], read: (mail: ReportMail) => T | null): T | null {
  for (const mail of mails) {
    const found = read(mail)
    if (found) return found
  }
  return null
}

const ownerOf = ({ domainId, accountId }: KnownDelivery) => ({ id: domainId, accountId })

/** The group of our recipient; without one (forwarded, redacted) the first failure, else the first of all. */
export function ownGroup(recipients: readonly DsnRecipient[], recipient: string): DsnRecipient | undefined {
  const own = recipient.toLowerCase()
  const names = ({ recipient: final, originalRecipient }: DsnRecipient) =>
    final?.toLowerCase() === own || originalRecipient?.toLowerCase() === own
  return recipients.find(names) ?? recipients.find(({ action }) => action === 'failed') ?? recipients[0]
}

/** What a report says of its recipient, in the form of a reply; exported for tests. `sender`: of the message. */
export function reportedFailure(
  { recipient, originalRecipient, replyCode, replyStatus, status, command, diagnostic }: DsnRecipient,
  delivery: Pick<KnownDelivery, 'recipient'>,
  sender: string,
): FailureText {
  const own = replyStatus !== null && !isVague(replyStatus) ? replyStatus : null
  const enhanced = own ?? (status !== null && !isVague(status) ? status : null)
  return {
    code: replyCode ?? (status?.startsWith('4') ? 450 : 550),
    enhanced,
    // Reporters derive a status from a reply without an enhanced code: sendmail writes 5.1.1 for any 550 to RCPT TO.
    isGuessed: replyCode !== null && own === null,
    isOfContent: command === 'data',
    text: diagnostic.replace(/^[245]\d\d[ -]+/, ''),
    envelope: {
      recipients: [delivery.recipient, recipient ?? '', originalRecipient ?? ''],
      senders: [sender],
    },
    permanent: true,
  }
}

/** Event and bounce record of a reported failure (events.md rule 17, suppressions.md section 6). */
function lateBounce(
  delivery: KnownDelivery,
  failure: DsnRecipient,
  classify: ReportsParts['classify'],
  now: number,
): { event: EventRecord; entry: readonly Statement[] } {
  const reported = reportedFailure(failure, delivery, delivery.about.summary.sender)
  const { code, text: message } = reported
  const status = reported.enhanced ?? failure.status
  const found = classify(reported)
  const event = failedEvent(
    delivery.about,
    delivery,
    {
      severity: 'permanent',
      reason: 'generic',
      ruleId: found.ruleId,
      delayedBounce: true,
      sendingIp: delivery.sendingIp,
      primaryDkim: delivery.primaryDkim,
      recipientProvider: delivery.recipientProvider,
      status: {
        code,
        // No attempt is counted if its outcome was lost in a crash.
        'attempt-no': Math.max(1, delivery.attempts),
        message,
        description: '',
        'session-seconds': 0,
        ...(status !== null && { 'enhanced-code': status }),
        ...(failure.remoteMta !== null && { 'mx-host': failure.remoteMta }),
        'bounce-type': found.suppression === 'hard' ? 'hard' : 'soft',
      },
    },
    now,
  )
  const { suppression: severity } = found
  const owner = ownerOf(delivery)
  const record = {
    owner,
    recipient: delivery.recipient,
    code: String(code),
    error: message,
    eventId: event.id,
    now,
  }
  return {
    event,
    entry: severity === null ? [] : addBounce({ ...record, severity }),
  }
}

/** The delivery of the returned message, by any token in the parts of it. */
function deliveryIn(texts: readonly string[], mac: ReturnPathMac): string | null {
  let left = TOKENS_MAX
  for (const text of texts) {
    for (const [token] of text.matchAll(/(?<![a-z0-9])[a-z2-7]{39}(?![a-z0-9])/gi)) {
      if (left-- === 0) return null
      const deliveryId = readDeliveryToken(token, mac)
      if (deliveryId !== null) return deliveryId
    }
  }
  return null
}

interface ReportAddressParts {
  reports: Reports
  mac: ReturnPathMac
  /** Whether mail for this host, in lower case, is the service's own. */
  isOwnHost(host: string): Promise<boolean>
  log: Logger
}

/**
 * The addresses of returned mail, for reception (src/receiving/sessions):
 *
 *     bounce+<token>@<any host>   the return path of one delivery
 *     fbl@<host of ours>          complaints of feedback loops, and bounces that lost their return path at a relay
 *
 * An authentic token is enough whatever the host: the return-path host of a domain may have changed since the mail
 * was sent.
 */
export function reportAddresses({ reports, mac, isOwnHost, log }: ReportAddressParts): AddressReader {
  const receive = (deliveryId: string | null) => async (mail: ReceivedMail) => {
    const verdict = await reports.take(readReturned(await mail.mails()), deliveryId)
    log.info({ deliveryId, verdict, remoteAddress: mail.remoteAddress }, 'mail came back')
    if (verdict === 'too-early') throw new Refusal('451 4.4.5 Try again later')
  }
  return async ({ local, domain }) => {
    const deliveryId = deliveryOfReturnPath(`${local}@${domain}`, mac)
    if (deliveryId !== null) return { subject: `return path ${deliveryId}`, receive: receive(deliveryId) }
    const feedback = local.toLowerCase() === FEEDBACK_LOCAL && (await isOwnHost(domain))
    return feedback ? { subject: null, receive: receive(null) } : null
  }
}
