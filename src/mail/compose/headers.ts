/** The header fields of a mail: from a draft at acceptance, and what each copy adds. */

import { randomHex } from '../../base/ids.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { formatMailbox, type Mailbox } from '../../protocols/mime/address.ts'
import { headerField, isUniqueField } from '../../protocols/mime/header.ts'
import { authorsText, needsSender } from '../record/authors.ts'
import type { StoredHeader } from '../record/record.ts'
import { type Lookup, substitute } from '../record/variables.ts'
import type { Draft } from '../request/draft.ts'
import type { MessageOptions } from '../request/options.ts'

/**
 * `YYYYMMDDhhmmss.<16 hex digits>@<domain>`, UTC, without angle brackets (messages.md rule 3). The first three digits
 * are the millisecond, the others random. So rows that are written together are adjacent in both indexes on the id;
 * random ids would touch a page each.
 */
export function newMessageId(nowMs: number, domain: string): string {
  const millisecond = (Math.floor(nowMs) % 1000).toString(16).padStart(3, '0')
  return `${stampOf(nowMs)}.${millisecond}${randomHex(7).slice(1)}@${domain}`
}

/** Keeps the text of the last second: formatting it is a hundredth of the cost of accepting a message. */
function perSecond(make: (date: Date) => string): (ms: number) => string {
  let last = Number.NaN
  let text = ''
  return (ms) => {
    const second = Math.floor(ms / 1000)
    if (second !== last) text = make(new Date(ms))
    last = second
    return text
  }
}

const stampOf = perSecond((date) => date.toISOString().replace(/\D/g, '').slice(0, 14))
/** A date field has whole seconds. */
const dateFieldOf = perSecond(formatRfc2822)
const deliverByOf = perSecond(formatRfc2822)

/** A given Message-Id without its brackets, or null if it is not valid (RFC 5322 §3.6.4). */
export function readMessageId(value: string): string | null {
  const match = /^\s*<?([^\s<>@\p{Cc}]{1,512}@[^\s<>@\p{Cc}]{1,512})>?\s*$/u.exec(value)
  return match?.[1] ?? null
}

/**
 * The Message-Id of one copy of a batch whose field has recipient variables, without its brackets; null if it is not
 * valid with their values.
 */
export const messageIdOfCopy = (template: string, lookup: Lookup): string | null =>
  readMessageId(substitute(template, lookup))

export function findHeader(headers: readonly StoredHeader[], name: string): StoredHeader | undefined {
  for (const header of headers) {
    if (header[0].length === name.length && header[0].toLowerCase() === name) return header
  }
  return undefined
}

/** The field's text, '' if it is missing. */
export const headerText = (headers: readonly StoredHeader[], name: string) =>
  findHeader(headers, name)?.[1] ?? ''

/** Replaces the field of that name, or appends it. */
export function setHeader(headers: StoredHeader[], field: StoredHeader): void {
  const lower = field[0].toLowerCase()
  const at = headers.findIndex(([name]) => name.toLowerCase() === lower)
  if (at >= 0) headers[at] = field
  else headers.push(field)
}

export interface HeaderFacts {
  domainName: string
  messageId: string
  date: Date
}

/**
 * The fields of the mail in their order, those given by the caller in place of ours (messages.md rules 5, 12,
 * 14, 17). From, To and Subject may be missing where a template or the copy gives them.
 */
export function mailHeaders(draft: Draft, facts: HeaderFacts): StoredHeader[] {
  const fields =
    draft.body.kind === 'mime'
      ? givenHeaders(draft.body.source.headers, draft)
      : composedHeaders(draft, facts)
  if (!findHeader(fields, 'date')) fields.push(['Date', dateFieldOf(facts.date.getTime())])
  const id: StoredHeader = ['Message-Id', `<${facts.messageId}>`]
  const given = findHeader(fields, 'message-id')
  if (!given || readMessageId(given[1]) !== facts.messageId) setHeader(fields, id)
  for (const [name, value] of draft.headers) {
    const lower = name.toLowerCase()
    if (lower === 'message-id') continue
    if (isUniqueField(lower)) setHeader(fields, [name, value])
    else fields.push([name, value])
  }
  return fields
}

/** Authors that cannot be sent as given are written anew: their decoded text might name others. */
const givenHeaders = (
  headers: readonly { name: string; value: string; raw: string }[],
  { from }: Pick<Draft, 'from'>,
): StoredHeader[] =>
  headers.map(({ name, value, raw }) =>
    from.length > 0 && name.toLowerCase() === 'from' && !isSendable(raw, false)
      ? [name, authorsText(from)]
      : [name, value, raw],
  )

function composedHeaders(draft: Draft, { domainName }: HeaderFacts): StoredHeader[] {
  const fields: StoredHeader[] = []
  if (draft.from.length > 0) fields.push(['From', authorsText(draft.from)])
  fields.push(['To', list(draft.to)])
  if (draft.cc.length > 0) fields.push(['Cc', list(draft.cc)])
  if (draft.subject !== null) fields.push(['Subject', draft.subject])
  if (needsSender(draft.from, domainName)) fields.push(senderField(domainName))
  return fields
}

export const senderField = (domainName: string): StoredHeader => ['Sender', `postmaster@${domainName}`]

const list = (mailboxes: readonly Mailbox[]) => mailboxes.map(formatMailbox).join(', ')

/** Longest line as sent, RFC 5322 §2.1.1. */
const LINE_MAX = 998

/** A field as it is sent: as given where that is legal, else re-encoded. */
export function rawField([name, value, raw]: StoredHeader, utf8: boolean): string {
  if (raw !== undefined && isSendable(raw, utf8)) return raw
  return headerField(name, value, { utf8 })
}

const NOT_ASCII = /[^\x00-\x7f]/

function isSendable(raw: string, utf8: boolean): boolean {
  if (!utf8 && NOT_ASCII.test(raw)) return false
  return raw.length <= LINE_MAX || raw.split('\r\n').every((line) => Buffer.byteLength(line) <= LINE_MAX)
}

/** What the service writes into a copy under its own prefix. */
export interface ServiceHeaders {
  tags: readonly string[]
  variables: Readonly<Record<string, unknown>>
  templateName: string | null
  /** Unix milliseconds. */
  deliverBy: number | null
  sid: string | null
}

/** The service's fields (rule 12) without those that the message suppresses (rule 39). */
export function serviceHeaders(
  prefix: string,
  facts: ServiceHeaders,
  suppressed: MessageOptions['suppressHeaders'],
): readonly StoredHeader[] {
  const fields: [suffix: string, value: string][] = facts.tags.map((tag) => ['Tag', tag])
  if (!isEmpty(facts.variables)) fields.push(['Variables', JSON.stringify(facts.variables)])
  if (facts.templateName !== null) fields.push(['Template-Name', facts.templateName])
  if (facts.deliverBy !== null) fields.push(['Deliver-By', deliverByOf(facts.deliverBy)])
  if (facts.sid !== null) fields.push(['Sid', facts.sid])
  if (fields.length === 0) return NO_HEADERS
  return fields
    .filter(([suffix]) => !isSuppressed(suffix, suppressed))
    .map(([suffix, value]) => [prefix + suffix, value])
}

const NO_HEADERS: readonly StoredHeader[] = []

function isEmpty(variables: object): boolean {
  for (const _ in variables) return false
  return true
}

export const isSuppressed = (suffix: string, suppressed: MessageOptions['suppressHeaders']) =>
  suppressed === 'all' || suppressed.includes(suffix.toLowerCase())
