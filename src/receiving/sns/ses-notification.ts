/**
 * What Amazon SES publishes about a message, as the report that it stands for: both the feedback notifications of an identity
 * (`notificationType`) and the events of a configuration set (`eventType`)
 * (https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html, event-publishing-retrieving-sns-contents.html).
 *
 * 1. A bounce holds the fields of the receiver's report, if it sent one: they are read as those (RFC 3464 §2.3). Without
 *    them SES's own types decide. An automatic reply is a transient bounce without fields, and means nothing.
 * 2. A complaint has the type of the feedback report (RFC 5965), or none: it is of a loop that says no more.
 * 3. A rejected message had a virus, and was not sent.
 * 4. The delivery is named by a token in the envelope's sender, or in a header field if the topic is set to include them.
 *
 * Left out: deliveries, delays, opens, clicks, and anything that is no such document.
 */
import { isPlainObject } from '../../base/values.ts'
import { type FeedbackType, feedbackTypeOf } from '../../protocols/reports/arf/report.ts'
import type { DsnRecipient } from '../../protocols/reports/dsn/recipient.ts'
import { readRecipientFields } from '../../protocols/reports/dsn/report.ts'
import type { Returned } from '../bounces/reports.ts'

/** SES sends one notification for at most as many recipients as a message may have there; ours has one. */
const RECIPIENTS_MAX = 50
/** SES cuts the header at 10 KB. */
const FIELDS_MAX = 500
const TEXT_MAX = 4_096

/** What is said where the receiver's report is missing: action, status. The status decides what follows. */
const JUDGED: Readonly<Record<string, readonly [action: string, status: string]>> = {
  'Permanent General': ['failed', '5.1.1'],
  'Permanent NoEmail': ['failed', '5.1.1'],
  'Permanent Suppressed': ['failed', '5.1.1'],
  'Permanent OnAccountSuppressionList': ['failed', '5.1.1'],
  'Transient MailboxFull': ['failed', '5.2.2'],
  'Transient MessageTooLarge': ['failed', '5.3.4'],
  'Transient ContentRejected': ['failed', '5.7.1'],
  'Transient AttachmentRejected': ['failed', '5.7.1'],
  'Transient CustomTimeoutExceeded': ['failed', '4.4.7'],
}
const UNKNOWN = {
  Permanent: ['failed', '5.0.0'],
  Undetermined: ['failed', '5.0.0'],
  // An automatic reply, or what may be one.
  Transient: ['delayed', '4.0.0'],
} as const

/** Null: it reports nothing that counts, or is no notification of SES. Linear in its input; never throws. */
export function readSesNotification(document: unknown): Returned | null {
  if (!isPlainObject(document) || !isPlainObject(document['mail'])) return null
  const { mail } = document
  const returned = textsOf(mail)
  switch (document['eventType'] ?? document['notificationType']) {
    case 'Bounce':
      return { feedback: null, recipients: bounced(objectOf(document['bounce'])), returned }
    case 'Complaint':
      return { feedback: complained(objectOf(document['complaint'])), recipients: null, returned }
    case 'Reject':
      return { feedback: null, recipients: rejected(mail, objectOf(document['reject'])), returned }
    default:
      return null
  }
}

function bounced(bounce: Record<string, unknown>): DsnRecipient[] | null {
  const type = textOf(bounce['bounceType'])
  const subtype = textOf(bounce['bounceSubType'])
  const [action, status] =
    JUDGED[`${type} ${subtype}`] ?? UNKNOWN[type as keyof typeof UNKNOWN] ?? UNKNOWN.Undetermined
  const words = `smtp; Amazon SES: ${type}, ${subtype}`
  const groups = listOf(bounce['bouncedRecipients']).flatMap((recipient) => {
    const { emailAddress, diagnosticCode } = recipient
    const isReported = recipient['status'] !== undefined || diagnosticCode !== undefined
    const fields = [
      ['Final-Recipient', `rfc822; ${textOf(emailAddress)}`],
      ['Action', textOf(recipient['action']) || (isReported ? 'failed' : action)],
      ['Status', isReported ? textOf(recipient['status']) : status],
      ['Diagnostic-Code', textOf(diagnosticCode) || words],
      ['Remote-MTA', `dns; ${textOf(bounce['remoteMtaIp'])}`],
    ] as const
    return readRecipientFields(fields) ?? []
  })
  return groups.length > 0 ? groups : null
}

function complained(complaint: Record<string, unknown>): FeedbackType {
  const type = textOf(complaint['complaintFeedbackType'])
  return type === '' ? 'abuse' : feedbackTypeOf(type)
}

function rejected(mail: Record<string, unknown>, reject: Record<string, unknown>): DsnRecipient[] | null {
  const recipient = Array.isArray(mail['destination']) ? textOf(mail['destination'][0]) : ''
  const group = readRecipientFields([
    ['Final-Recipient', `rfc822; ${recipient}`],
    ['Action', 'failed'],
    ['Status', '5.7.1'],
    ['Diagnostic-Code', `smtp; 554 5.7.1 Amazon SES rejected the message: ${textOf(reject['reason'])}`],
  ])
  return group && [{ ...group, command: 'data' }]
}

/** Where our token may be. */
function textsOf(mail: Record<string, unknown>): string[] {
  const fields = listOf(mail['headers'], FIELDS_MAX).map(({ value }) => textOf(value))
  return [textOf(mail['source']), textOf(objectOf(mail['commonHeaders'])['returnPath']), ...fields]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, TEXT_MAX) : '')
const objectOf = (value: unknown): Record<string, unknown> => (isPlainObject(value) ? value : {})
const listOf = (value: unknown, max = RECIPIENTS_MAX): Record<string, unknown>[] =>
  Array.isArray(value) ? value.slice(0, max).filter(isPlainObject) : []
