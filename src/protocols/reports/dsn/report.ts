/**
 * Reads bounces: reports that a server which had accepted a message sends later about its delivery.
 *
 * 1. message/delivery-status (RFC 3464, RFC 6533), one result per group of fields, in any part of the mail;
 * 2. the same fields in a text, as gateways leave them;
 * 3. qmail's format (QSBMF), and the texts of other servers (text-report.ts).
 *
 * Left out: which delivery the report is about. Its content can be forged; only the address that it was sent to can be
 * trusted.
 */
import { fieldOf, originalHeaders, type ReportMail, readFieldBlocks } from '../../message/report-mail.ts'
import { codesIn, isVague, statusOf } from './codes.ts'
import { type DsnAction, type DsnRecipient, tidy } from './recipient.ts'
import { type ReportText, readReportText, readTextReport } from './text-report.ts'

interface DsnReport {
  recipients: readonly DsnRecipient[]
  reportingMta: string | null
  /** Header of the returned message, unfolded; empty if nothing of it was returned. */
  original: ReportMail['headers']
  /** Message-ID of the returned message, without angle brackets; null: not known. */
  messageId: string | null
}

/** Groups of one report; each of our deliveries has one recipient, so one would do. */
const GROUPS_MAX = 100
const ADDRESS_CHARS_MAX = 320
/** A status and its comment. */
const STATUS_CHARS_MAX = 600
/** Groups about which more is sought in the text, each time in all of it. */
const EXPLAINED_MAX = 5

const STATUS_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status'])

/** Reads a mail as a report; null: it is none (a reply, a vacation notice, ...). Linear in its input; never throws. */
export function readDsn(mail: ReportMail): DsnReport | null {
  const original = originalHeaders(mail)
  const found = fromStatusParts(mail) ?? fromFieldsInText(mail.text)
  const recipients = found ? withWords(found.recipients, mail) : readTextReport(mail)
  if (!recipients || recipients.length === 0) return null
  return {
    recipients,
    reportingMta: found?.reportingMta ?? null,
    original,
    messageId: /<([^<>\s]{1,998})>/.exec(fieldOf(original, 'message-id'))?.[1] ?? null,
  }
}

/** The first report of a mail and those within it that says why; if none does, the first one. Null: there is none. */
export function readFirstDsn(mails: readonly ReportMail[]): DsnReport | null {
  let first: DsnReport | null = null
  for (const mail of mails) {
    const report = readDsn(mail)
    // A filter around a report may say no more than that it is one.
    if (report?.recipients.some(({ status, diagnostic }) => status !== null || diagnostic !== ''))
      return report
    first ??= report
  }
  return first
}

type Found = { recipients: DsnRecipient[]; reportingMta: string | null }

function fromStatusParts(mail: ReportMail): Found | null {
  const blocks = mail.parts
    .filter(({ type }) => STATUS_TYPES.has(type))
    .flatMap(({ content }) => readFieldBlocks(content, GROUPS_MAX))
  return fromBlocks(blocks.slice(0, GROUPS_MAX))
}

/** Gateways turn the status part into text, or write it as text; quoted it is a person's mail about a bounce. */
function fromFieldsInText(text: string): Found | null {
  const start = text.search(/^(?:Reporting-MTA|Final-Recipient|Original-Recipient)[ \t]*:[ \t]*\w+[ \t]*;/im)
  if (start < 0 || !/^(?:Action|Status)[ \t]*:/im.test(text.slice(start))) return null
  return fromBlocks(readFieldBlocks(text.slice(start), GROUPS_MAX))
}

/** The first block is the message's (RFC 3464 §2.2), but some servers put all fields into one. */
function fromBlocks(blocks: ReportMail['headers'][]): Found | null {
  const recipients = blocks.flatMap((block) => readRecipientFields(block) ?? [])
  if (recipients.length === 0) return null
  const mta = blocks.map((block) => fieldOf(block, 'reporting-mta')).find((value) => value !== '')
  return { recipients, reportingMta: mta === undefined ? null : afterType(mta) }
}

/** One group of recipient fields (RFC 3464 §2.3); null for other fields. */
export function readRecipientFields(fields: ReportMail['headers']): DsnRecipient | null {
  const final = fieldOf(fields, 'final-recipient')
  const originally = fieldOf(fields, 'original-recipient')
  const given = statusOf(fieldOf(fields, 'status'))
  const actionText = fieldOf(fields, 'action')
  if (final === '' && originally === '' && (given === null || actionText === '')) return null
  const diagnostic = tidy(afterType(fieldOf(fields, 'diagnostic-code')))
  const comment = /\(([^)]{1,500})\)/.exec(fieldOf(fields, 'status').slice(0, STATUS_CHARS_MAX))?.[1] ?? ''
  const codes = codesIn(diagnostic)
  const status = moreSpecific(given, codes.status)
  const action = actionOf(actionText, status)
  if (action === null) return null
  return {
    action,
    recipient: addressOf(final) ?? addressOf(originally),
    originalRecipient: addressOf(originally),
    status,
    replyCode: codes.reply,
    replyStatus: codes.status,
    // Sendmail derives 5.1.1 from a 550 to RCPT TO, and 5.2.0 from one to another command.
    command: given === '5.2.0' && codes.reply === 550 && codes.status === null ? 'data' : null,
    diagnostic: diagnostic === '' ? tidy(comment) : diagnostic,
    remoteMta: hostOf(fieldOf(fields, 'remote-mta')),
  }
}

function moreSpecific(given: string | null, said: string | null): string | null {
  if (given === null) return said
  return said !== null && isVague(given) && said[0] === given[0] ? said : given
}

const ACTIONS: readonly [RegExp, DsnAction][] = [
  [/^(?:fail|error|undeliver|bounce|reject)/, 'failed'],
  [/^(?:delay|defer|transient|warn)/, 'delayed'],
  [/^deliver/, 'delivered'],
  [/^relay/, 'relayed'],
  [/^expan/, 'expanded'],
]

/** Without an action the class of the status decides; without both it is unknown. */
function actionOf(text: string, status: string | null): DsnAction | null {
  const word = text.trim().toLowerCase()
  const named = ACTIONS.find(([pattern]) => pattern.test(word))?.[1]
  if (named) return named
  if (status === null) return null
  return status.startsWith('5') ? 'failed' : status.startsWith('4') ? 'delayed' : 'delivered'
}

/** `rfc822; bob@example.net`, `smtp; 550 no`: the part after the type. */
function afterType(value: string): string {
  return value.replace(/^[\w.+-]{1,60}[ \t]*;[ \t]*/, '').trim()
}

/** The bare address in a recipient field, without comments and angle brackets. */
function addressOf(value: string): string | null {
  const text = afterType(value).replace(/^<(.*)>$/, '$1')
  const [address = ''] = /[^\s<>();,:"]+@[^\s<>();,:"]+/.exec(text.slice(0, 2 * ADDRESS_CHARS_MAX)) ?? []
  return address === '' || address.length > ADDRESS_CHARS_MAX ? null : address
}

function hostOf(value: string): string | null {
  const [host = ''] = /^[\w.:[\]-]{1,255}/.exec(afterType(value)) ?? []
  return host === '' ? null : host
}

/** What the text of the report knows besides: the server's words where fields lack them, and what it refused. */
function withWords(recipients: readonly DsnRecipient[], mail: ReportMail): DsnRecipient[] {
  if (!recipients.some(({ action }) => action === 'failed')) return [...recipients]
  const text = readReportText(mail)
  let left = EXPLAINED_MAX
  return recipients.map((recipient) => {
    if (recipient.action !== 'failed' || left-- <= 0) return recipient
    const { diagnostic } = recipient
    const isCut = /^\d{3}-/.test(diagnostic) && !/(?<!\d)\d{3} /.test(diagnostic)
    const command = recipient.command ?? text.command(recipient.recipient)
    if (isCut) return { ...recipient, command, diagnostic: text.whole(diagnostic) ?? diagnostic }
    return /\p{L}{2}/u.test(diagnostic)
      ? { ...recipient, command }
      : explained({ ...recipient, command }, text)
  })
}

function explained(recipient: DsnRecipient, text: ReportText): DsnRecipient {
  const said = text.about(recipient.recipient)
  if (said.diagnostic === '') return recipient
  const codes = codesIn(said.diagnostic)
  return {
    ...recipient,
    diagnostic: said.diagnostic,
    status: moreSpecific(recipient.status, codes.status),
    replyCode: recipient.replyCode ?? codes.reply,
    replyStatus: recipient.replyStatus ?? codes.status,
    remoteMta: recipient.remoteMta ?? said.remoteMta,
  }
}
