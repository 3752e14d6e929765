/** Parses a received mail for the readers of reports (src/protocols/reports/dsn, src/protocols/reports/arf), whatever its bytes. */
import type { ReportMail } from '../../protocols/message/report-mail.ts'
import { decodeCharset } from '../../protocols/mime/charset.ts'
import { type ParsedMessage, parseMessage } from '../../protocols/mime/parse.ts'
import { htmlToText } from '../../protocols/mime/quoted/html-text.ts'
import { MimeSyntaxError } from '../../protocols/mime/split.ts'

/** Forwarded reports that are read; a report names one delivery, so more of them are abuse. */
const NESTED_MAX = 4
const NESTED_DEPTH_MAX = 2

/**
 * The mail, followed by the reports attached to it in a standard format, as some servers and filters forward them. Other
 * attached mails are left out: replies and vacation notices quote them, and they may mention failed deliveries.
 */
export async function readReportMail(raw: Uint8Array): Promise<ReportMail[]> {
  const mails = [await readOne(raw)]
  let level = mails.slice()
  for (let depth = 0; depth < NESTED_DEPTH_MAX; depth++) {
    const attached = level.flatMap(({ parts }) => parts.filter(({ type }) => type === 'message/rfc822'))
    level = await Promise.all(attached.slice(0, NESTED_MAX).map(({ content }) => readOne(content)))
    mails.push(...level.filter(isReport))
  }
  return mails
}

/** Read of HTML where there is no other text: reports state their facts at the beginning. */
const HTML_CHARS_MAX = 40_000

const REPORT_TYPES = new Set([
  'message/delivery-status',
  'message/global-delivery-status',
  'message/feedback-report',
])

const isReport = ({ parts }: ReportMail) => parts.some(({ type }) => REPORT_TYPES.has(type))

async function readOne(raw: Uint8Array): Promise<ReportMail> {
  try {
    const parsed = await parseMessage(raw)
    const parts = parsed.attachments.map(({ contentType, content }) => ({ type: contentType, content }))
    return { headers: parsed.headers, text: textOf(parsed), parts }
  } catch (error) {
    if (!(error instanceof MimeSyntaxError)) throw error
    // Beyond the limits of any genuine mail: its text may still be read.
    return { headers: [], text: decodeCharset(raw), parts: [] }
  }
}

/** Named text files count too: some servers attach the explanation. */
function textOf(parsed: ParsedMessage): string {
  const named = parsed.attachments.filter(({ contentType }) => contentType === 'text/plain')
  const texts = [parsed.text ?? '', ...named.map(({ content }) => decodeCharset(content))]
  const text = texts.filter((one) => one.trim() !== '').join('\n\n')
  return text === '' && parsed.html !== null ? htmlToText(parsed.html.slice(0, HTML_CHARS_MAX)) : text
}
