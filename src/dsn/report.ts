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
import { fieldOf, type ReportMail, readFieldBlocks } from '../base/report-mail.ts'
import { codesIn, isVague, statusOf } from './codes.ts'
import { type DsnAction, type DsnRecipient, tidy } from './recipient.ts'
import { readTextReport } from './text-report.ts'

export interface DsnReport {
  recipients: readonly DsnRecipient[]
  reportingMta: string | null
  /** Header of the returned message, unfolded; empty if nothing of it was returned. */
  original: ReportMail['headers']
  /** Of the returned message, without angle brackets; null: not known. */
  messageId: string | null
}

/** Groups of one report; each of our deliveries has one recipient, so one would do. */
const GROUPS_MAX = 100
const ADDRESS_CHARS_MAX = 320
/** Text searched for the server's words if no field has them. */
const TEXT_CHARS_MAX = 20_000

const STATUS_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status'])
const ORIGINAL_TYPES = new Set([
  'message/rfc822',
  'text/rfc822-headers',
  'message/rfc822-headers',
  'message/global',
  'message/global-headers',
])

/** Reads a mail as a report; null: it is none (a reply, a vacation notice, ...). Linear in its input; never throws. */
export function readDsn(mail: ReportMail): DsnReport | null {
  const original = originalHeaders(mail)
  const found = fromStatusParts(mail) ?? fromFieldsInText(mail.text)
  const recipients = found?.recipients ?? readTextReport(mail)
  if (!recipients || recipients.length === 0) return null
  return {
    recipients: recipients.map((one) => explained(one, mail.text)),
    reportingMta: found?.reportingMta ?? null,
    original,
    messageId: /<([^<>\s]{1,998})>/.exec(fieldOf(original, 'message-id'))?.[1] ?? null,
  }
}

function originalHeaders(mail: ReportMail): ReportMail['headers'] {
  const part = mail.parts.find(({ type }) => ORIGINAL_TYPES.has(type))
  return part ? (readFieldBlocks(part.content, 1)[0] ?? []) : []
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
  const recipients = blocks.flatMap((block) => readGroup(block) ?? [])
  if (recipients.length === 0) return null
  const mta = blocks.map((block) => fieldOf(block, 'reporting-mta')).find((value) => value !== '')
  return { recipients, reportingMta: mta === undefined ? null : afterType(mta) }
}

/** One group of recipient fields (RFC 3464 §2.3); null for other fields. */
function readGroup(fields: ReportMail['headers']): DsnRecipient | null {
  const final = fieldOf(fields, 'final-recipient')
  const originally = fieldOf(fields, 'original-recipient')
  const given = statusOf(fieldOf(fields, 'status'))
  const actionText = fieldOf(fields, 'action')
  if (final === '' && originally === '' && (given === null || actionText === '')) return null
  const diagnostic = tidy(afterType(fieldOf(fields, 'diagnostic-code')))
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
    diagnostic,
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

/** For a group without a diagnostic: the report's text often has the server's words. */
function explained(recipient: DsnRecipient, text: string): DsnRecipient {
  if (recipient.diagnostic !== '' || recipient.action !== 'failed') return recipient
  const line = text
    .slice(0, TEXT_CHARS_MAX)
    .split('\n')
    .map(tidy)
    .find((one) => /(?<![\d.])5(?:\d\d[ -]|\.\d{1,3}\.\d)/.test(one))
  if (line === undefined) return recipient
  const codes = codesIn(line)
  return {
    ...recipient,
    diagnostic: line,
    status: moreSpecific(recipient.status, codes.status),
    replyCode: recipient.replyCode ?? codes.reply,
    replyStatus: codes.status,
  }
}
