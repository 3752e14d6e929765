/**
 * Reads complaints from feedback loops: RFC 5965 (multipart/report with message/feedback-report), with the fields of
 * RFC 6650 and those of AOL and Yahoo, and Microsoft's JMRP, which sends just the reported mail as an attachment.
 *
 * The complainant is often redacted, so no address is read: the returned message names its delivery by fields that the
 * service wrote, which the caller checks.
 */
import { fieldOf, originalHeaders, type ReportMail, readFieldBlocks } from '../../message/report-mail.ts'

/** RFC 5965 §3.1, §7.3; other words are `other`. Only `not-spam` is positive. */
export type FeedbackType = 'abuse' | 'fraud' | 'virus' | 'not-spam' | 'opt-out' | 'auth-failure' | 'other'

export interface FeedbackReport {
  type: FeedbackType
  /** Envelope sender of the reported mail, if given, without angle brackets. */
  originalMailFrom: string | null
  /** Header of the reported mail, as far as it was returned. */
  original: ReportMail['headers']
}

const TYPES: readonly FeedbackType[] = ['abuse', 'fraud', 'virus', 'not-spam', 'opt-out', 'auth-failure']

/** Reads a mail as a report; null: it is none. Linear in its input; never throws. */
export function readFeedbackReport(mail: ReportMail): FeedbackReport | null {
  const original = originalHeaders(mail)
  const part = mail.parts.find(({ type }) => type === 'message/feedback-report')
  if (!part) return isHotmail(mail, original) ? report('abuse', [], original) : null
  const fields = readFieldBlocks(part.content, 1)[0] ?? []
  return report(feedbackTypeOf(fieldOf(fields, 'feedback-type')), fields, original)
}

/** The type that a Feedback-Type field names. */
export function feedbackTypeOf(text: string): FeedbackType {
  const word = /^[\w-]+/.exec(text.toLowerCase())?.[0] ?? ''
  return TYPES.find((known) => known === word || known.replace('-', '') === word) ?? 'other'
}

function report(
  type: FeedbackType,
  fields: ReportMail['headers'],
  original: ReportMail['headers'],
): FeedbackReport {
  const address = fieldOf(fields, 'original-mail-from').replace(/[<>\s]/g, '')
  return { type, originalMailFrom: address === '' ? null : address, original }
}

/** JMRP: "complaint about message from 192.0.2.1" with the mail attached, which Microsoft's hosts have marked. */
function isHotmail(mail: ReportMail, original: ReportMail['headers']): boolean {
  if (original.length === 0) return false
  return (
    /^complaint about message from\b/i.test(fieldOf(mail.headers, 'subject')) ||
    fieldOf(original, 'x-hmxmroriginalrecipient') !== ''
  )
}
