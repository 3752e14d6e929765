/** The mail that carries a daily report as a file, RFC 8460 §5.3 and RFC 9990 §3.5.2. Pure. */

export interface DailyReport {
  from: string
  to: string
  /** Whose mail, policy or sessions are reported. */
  domain: string
  /** The domain that reports. */
  submitter: string
  day: string
  id: string
  /** The report, gzip. */
  content: Uint8Array
}

/** `id`: for the subject, without angle brackets; also part of the boundary. */
interface CarriedReport extends Omit<DailyReport, 'day' | 'content'> {
  /** Further fields of the header, each `Name: value`. */
  fields: readonly string[]
  /** `multipart/mixed`, with its parameters but the boundary. */
  type: string
  /** In ASCII, lines below 78 characters. */
  explanation: readonly string[]
  file: { type: string; name: string; content: Uint8Array }
}

export function mailWithReport(report: CarriedReport): Buffer {
  const { from, to, domain, submitter, id, fields, type, explanation, file } = report
  const boundary = `report-${id.replace(/[^a-z0-9]/gi, '')}`
  const base64 = Buffer.from(file.content)
    .toString('base64')
    .replace(/.{76}(?=.)/g, '$&\r\n')
  const lines = [
    `From: ${from}`,
    `To: ${to}`,
    `Subject: Report Domain: ${domain}`,
    ` Submitter: ${submitter}`,
    ` Report-ID: <${id}>`,
    ...fields,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: ${type};`,
    ` boundary="${boundary}"`,
    '',
    `--${boundary}`,
    'Content-Type: text/plain; charset="us-ascii"',
    'Content-Transfer-Encoding: 7bit',
    '',
    ...explanation,
    '',
    `--${boundary}`,
    `Content-Type: ${file.type}`,
    'Content-Transfer-Encoding: base64',
    'Content-Disposition: attachment;',
    ` filename="${file.name}"`,
    '',
    base64,
    '',
    `--${boundary}--`,
    '',
  ]
  return Buffer.from(lines.join('\r\n'))
}

/** `submitter!domain!begin!end!id.extension` of a day as YYYY-MM-DD (RFC 8460 §5.1, RFC 9990 §3.5.2). */
export function reportFilename(
  submitter: string,
  domain: string,
  day: string,
  id: string,
  extension: string,
): string {
  const { begin, end } = periodOf(day)
  return `${submitter}!${domain}!${begin}!${end}!${id}.${extension}`
}

/** A day in UTC, in Unix seconds; both ends belong to it. */
export function periodOf(day: string): { begin: number; end: number } {
  const begin = Date.parse(`${day}T00:00:00Z`) / 1000
  return { begin, end: begin + 86_399 }
}
