/** The header fields of a mail: those of the message, from a draft at acceptance, and those of each copy. */
import { randomHex } from '../../base/ids.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { addressKey, formatMailbox, type Mailbox, readOrNull } from '../../protocols/mime/address.ts'
import { headerField, isUniqueField } from '../../protocols/mime/header.ts'
import { HEADER_LIMITS } from '../../protocols/mime/split.ts'
import type { Rendered } from '../../sending/templates/rendering/render-messages.ts'
import { authorsText, needsSender, readAuthors } from '../record/authors.ts'
import type { MessageOptions } from '../record/options.ts'
import {
  type CopyTarget,
  isForward,
  type ListCopy,
  type MessageContent,
  type MessageRecord,
  type StoredHeader,
} from '../record/record.ts'
import {
  CopyTooLarge,
  hasVariable,
  type Lookup,
  messageIdOfCopy,
  RenderError,
  readMessageId,
  substitute,
  usesRecipient,
} from '../record/variables.ts'
import type { Draft } from '../request/draft.ts'
import { FORWARDED_SUFFIX } from '../request/options.ts'
import type { Tracking } from './tracker.ts'

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

/**
 * The Message-Id that the variables give this copy of a batch; null: it has the call's, as copies of a list do.
 * @throws RenderError when it is invalid, or another copy of the call has it
 */
export function ownMessageId(record: MessageRecord, target: CopyTarget, lookup: Lookup): string | null {
  const { content, summary } = record
  const template = summary.messageIdTemplate
  if (template === undefined || !content.batch || target.list || !target.recipient) return null
  const id = messageIdOfCopy(template, lookup)
  if (id === null) throw new RenderError('The variables make no valid Message-Id')
  const { repeatedIds = {} } = content
  if (Object.hasOwn(repeatedIds, id) && repeatedIds[id] !== addressKey(target.recipient)) {
    throw new RenderError('Another copy of this call has the same Message-Id')
  }
  return id
}

/** What the fields of a copy are made from, besides the message. */
export interface FieldInputs {
  rendered: Pick<Rendered, 'headers'> | null
  /** May add fields, also where it leaves the texts as they are. */
  addsFields: Tracking | null
  /** All variables of texts and header fields; null: there are none. */
  lookup: Lookup | null
  /** Variables of the fields that a list adds. */
  fieldLookup: Lookup | null
}

/**
 * The mail's own fields for this copy, without those under the service's prefix. `usesVariable`: an unsubscribe variable
 * is in its texts; `ownId`: as of `ownMessageId`; `author`: as in ComposedCopy.
 */
export function copyHeaders(
  record: MessageRecord,
  target: CopyTarget,
  { lookup, fieldLookup, rendered, addsFields }: FieldInputs,
  usesVariable: boolean,
  ownId: string | null,
): { headers: StoredHeader[]; author: string | null } {
  const { content, domainName } = record
  const headers: StoredHeader[] = lookup
    ? content.headers.map((field) => {
        if (field[0].toLowerCase() === 'message-id') return ownId === null ? field : [field[0], `<${ownId}>`]
        const value = substitute(field[1], lookup)
        return value === field[1] ? field : [field[0], value]
      })
    : [...content.headers]
  if (content.batch && target.recipient) setOnlyRecipient(headers, content, target.recipient)
  for (const [name, value] of rendered ? Object.entries(rendered.headers) : []) {
    const shown = lookup ? substitute(value, lookup) : value
    if (headerText(headers, name.toLowerCase()).trim() === '') setHeader(headers, [name, shown])
  }
  if (isForward(record, target)) return { headers, author: null }
  const author = content.incoming ? null : setAuthor(headers, record)
  if (headerText(headers, 'from').trim() === '') setHeader(headers, ['From', `postmaster@${domainName}`])
  if (content.incoming) addMissing(headers, record)
  if (target.list) setListHeaders(headers, target.list, fieldLookup)
  if (addsFields && !findHeader(headers, 'list-unsubscribe')) {
    headers.push(...addsFields.headers(usesVariable).map(([name, value]): StoredHeader => [name, value]))
  }
  return { headers, author }
}

/** Writes a From that variables or a template made in the one form that all programs read alike; null: it is the message's. */
function setAuthor(headers: StoredHeader[], { content, domainName }: MessageRecord): string | null {
  const field = findHeader(headers, 'from')
  if (field === undefined || field[1].trim() === '') return null
  const isGiven = field === findHeader(content.headers, 'from')
  if (isGiven && !hasVariable(field[1])) return null
  const authors = authorsIn(field[1])
  if (authors === null || isGiven) return field[1]
  const text = authorsText(authors)
  setHeader(headers, ['From', text])
  const isOurs = content.kind === 'parts'
  if (isOurs && needsSender(authors, domainName) && !findHeader(headers, 'sender'))
    headers.push(senderField(domainName))
  return text
}

/** Null: it names none. */
const authorsIn = (text: string) => readOrNull(() => readAuthors(text))

/** Fields that a stranger's mail may lack, and that every mail must have or should have (RFC 5322 §3.6). */
function addMissing(headers: StoredHeader[], { createdAt, messageId }: MessageRecord): void {
  if (!findHeader(headers, 'date')) headers.push(['Date', formatRfc2822(new Date(createdAt))])
  if (!findHeader(headers, 'message-id')) headers.push(['Message-Id', `<${messageId}>`])
}

/** mailing-lists.md rules 17 to 19. */
function setListHeaders(headers: StoredHeader[], { remove, add }: ListCopy, lookup: Lookup | null): void {
  const removed = new Set(remove)
  const kept = headers.filter(([name]) => !removed.has(name.toLowerCase()))
  // Only this one has variables: others may show what a stranger has written.
  const isVariable = (name: string) => name === 'List-Unsubscribe'
  const own = add.map(
    ([name, value]): StoredHeader => [name, lookup && isVariable(name) ? substitute(value, lookup) : value],
  )
  headers.splice(0, headers.length, ...kept, ...own)
}

/** In batch mode To is the one recipient, unless a MIME message sets it by a variable, and there is no Cc (rule 22). */
function setOnlyRecipient(headers: StoredHeader[], content: MessageContent, recipient: Mailbox): void {
  const isOwn = content.kind === 'mime' && usesRecipient(headerText(content.headers, 'to'))
  if (!isOwn) setHeader(headers, ['To', formatMailbox(recipient)])
  const cc = headers.findIndex(([name]) => name.toLowerCase() === 'cc')
  if (cc >= 0) headers.splice(cc, 1)
}

const CONTENT_FIELD = /^(?:content-type|content-transfer-encoding|mime-version)$/i
const VERSION_NAME = 'mime-version'
const MIME_VERSION = /^mime-version[ \t]*:/i

/** @throws CopyTooLarge */
export function sendableField(field: StoredHeader, utf8: boolean): string {
  if (field[1].length > HEADER_LIMITS.bytes)
    throw new CopyTooLarge(`Header ${field[0]} is too large, max size is 1MB`)
  return rawField(field, utf8)
}

const isVersion = (name: string) => name.length === VERSION_NAME.length && name.toLowerCase() === VERSION_NAME

/**
 * Fields as sent: a re-encoded MIME message gets new content fields, `contentFields`. `frame`: what the copies of the message
 * share.
 */
export function rawFields(
  frame: { rawField(field: StoredHeader): string },
  headers: readonly StoredHeader[],
  contentFields: readonly string[] | null,
  utf8: boolean,
  asItCame: boolean,
): string[] {
  const own = contentFields ?? []
  const raw: string[] = []
  let versioned = asItCame || own.some((field) => MIME_VERSION.test(field))
  for (const field of headers) {
    if (contentFields !== null && CONTENT_FIELD.test(field[0])) continue
    raw.push(utf8 ? sendableField(field, utf8) : frame.rawField(field))
    versioned ||= isVersion(field[0])
  }
  if (!versioned) raw.push('Mime-Version: 1.0')
  raw.push(...own)
  return raw
}

/** What a forwarded copy has before the fields of the received mail. */
export function traceFields(
  prefix: string,
  { incoming }: MessageContent,
  { delivery, recipient, list }: CopyTarget,
): string[] {
  if (!incoming || !delivery || !recipient || list) return []
  const routes = incoming.forwardedBy[addressKey(recipient)] ?? []
  return [...routes.map((id) => `${prefix}${FORWARDED_SUFFIX}: ${id}`), ...incoming.forwardFields]
}

/** Fields that a list and tracking may add to a copy of a message that was within the limits. */
const ADDED_FIELDS_MAX = 50
const ADDED_BYTES_MAX = 65_536

/** @throws CopyTooLarge for a header that receivers, our own inbox among them, would not accept */
export function withinLimits(headers: string[], { delivery }: CopyTarget): string[] {
  const { fields, bytes } = HEADER_LIMITS
  if (headers.length > fields + (delivery ? ADDED_FIELDS_MAX : 0))
    throw new CopyTooLarge(`Too many header fields, max is ${fields}`)
  let sizeBytes = 0
  // Other than ASCII is rare, and its length in UTF-16 is close enough.
  for (const header of headers) sizeBytes += header.length + 2
  if (sizeBytes > bytes + (delivery ? ADDED_BYTES_MAX : 0))
    throw new CopyTooLarge('Header is too large, max size is 1MB')
  return headers
}

/** True if any address in the text needs SMTPUTF8 (RFC 6531): a local part that is not ASCII. */
export function needsUtf8(text: string): boolean {
  return NOT_ASCII.test(text) && text.split(/[\s<>",]+/).some(isUtf8Address)
}

const isUtf8Address = (word: string) => NOT_ASCII.test(word.slice(0, Math.max(0, word.lastIndexOf('@'))))
