/**
 * Reading a request: the file to begin with in this folder. `POST /v3/{domain}/messages`, `.../messages.mime` and mail from
 * SMTP submission become a draft (draft.ts), options by one table (options.ts). Checks run in the contract's order
 * (messages.md rule 1): from; to, cc, bcc; subject; content; option size; option values. The first fault
 * answers, with the contract's text.
 */

import { BadRequest } from '../../base/process/errors.ts'
import { quotable } from '../../base/values.ts'
import type { Params, UploadedFile } from '../../platform/http/request/params.ts'
import { type Chunk, chunkSize } from '../../protocols/message/mime-message.ts'
import {
  AddressSyntaxError,
  addressKey,
  type Mailbox,
  parseAddressList,
} from '../../protocols/mime/address.ts'
import { fileType } from '../../protocols/mime/file-type.ts'
import { isHeaderName, isUniqueField } from '../../protocols/mime/header.ts'
import { parseRecipients } from '../../protocols/mime/loose-address.ts'
import { unfoldedValue } from '../../protocols/mime/split.ts'
import { readAuthors } from '../record/authors.ts'
import { hasVariable } from '../record/variables.ts'
import type { Draft, DraftBody, DraftFile } from './draft.ts'
import { type ReadMime, readMimeSource } from './mime-source.ts'
import {
  checkOptionSize,
  mergeValues,
  NO_OPTIONS,
  OPTION_FIELDS,
  type ReadOptions,
  readOptions,
  splitOptionHeaders,
} from './options.ts'

/** Without `v:`, which is a prefix of names; its values come from headers alone. */
const OPTION_NAMES: ReadonlySet<string> = new Set(
  OPTION_FIELDS.map(({ field }) => field).filter((field) => field !== 'v:'),
)

export const RECIPIENTS_MAX = 1000

/** Headers that only we or the receiving server write: given ones are ignored (messages.md rule 14). */
const IGNORED_HEADERS =
  /^(content-type|content-transfer-encoding|mime-version|bcc|resent-bcc|received|return-path|dkim-signature|arc-.*|authentication-results)$/i

export interface RequestFacts {
  /** The configured prefix and its aliases. */
  prefixes: readonly string[]
  now: number
  /** How far ahead a delivery time may lie. */
  scheduleMaxMs: number
  /** Media type of the request. */
  contentType: string
  /** What the draft holds of an upload; default: bytes that outlive the request. */
  hold?: (file: UploadedFile) => Chunk
}

const keepFile = (file: UploadedFile): Chunk => file.keep()

/** M1. @throws BadRequest with the text of messages.md section 3 */
export function readSendRequest(params: Params, facts: RequestFacts): Draft {
  checkFilesAreFiles(params, facts.contentType)
  const hasTemplate = params.text('template') !== undefined
  const from = readAddresses(params, 'from', hasTemplate ? undefined : 'from parameter is missing')
  const to = readAddresses(params, 'to', 'to parameter is missing')
  const cc = readAddresses(params, 'cc')
  const bcc = readAddresses(params, 'bcc')
  const recipients = recipientsOf([...to, ...cc, ...bcc])
  const subject = params.given('subject') ?? null
  if (subject === null && !hasTemplate) throw new BadRequest('subject parameter is missing')
  const body = readParts(params, hasTemplate, facts.hold)
  const { mail, variables, read, unknown } = readFieldOptions(params, facts, NO_MIME)
  return {
    ...withAuthors(from, mail),
    to,
    cc,
    recipients,
    subject,
    body,
    userVariables: { ...read.headerVariables, ...variables },
    ...commonOptions(read),
    unknownHeaders: unknown,
  }
}

/** M2. @throws BadRequest with the text of messages.md section 3 */
export async function readMimeRequest(params: Params, facts: RequestFacts): Promise<Draft> {
  const recipients = readRecipients(params)
  const mime = await readMimeSource(messageChunk(params, facts.hold), facts.prefixes)
  const { mail, variables, read, unknown } = readFieldOptions(params, facts, mime)
  const from = mimeAuthors(mime, mail, read.template !== null)
  const body: DraftBody = { kind: 'mime', source: mime.source }
  return {
    from,
    to: [],
    cc: [],
    recipients,
    subject: null,
    body,
    headers: mail,
    userVariables: { ...read.headerVariables, ...variables },
    ...commonOptions(read),
    unknownHeaders: unknown,
  }
}

/** From SMTP submission: options are in the message's own header block (smtp-submission.md section 2). */
export async function readSubmittedMime(
  raw: Chunk,
  envelopeRecipients: readonly Mailbox[],
  facts: RequestFacts,
): Promise<Draft> {
  const mime = await readMimeSource(raw, facts.prefixes)
  checkOptionSize(mime.optionBytes)
  const read = readOptions(mime.values, facts.prefixes, facts)
  return {
    from: mimeAuthors(mime, [], read.template !== null),
    to: [],
    cc: [],
    recipients: recipientsOf(envelopeRecipients),
    subject: null,
    body: { kind: 'mime', source: mime.source },
    headers: [],
    userVariables: read.headerVariables,
    ...commonOptions(read),
    unknownHeaders: mime.unknown,
  }
}

const commonOptions = ({ tags, template, recipientVariables, options }: Readonly<ReadOptions>) => ({
  tags,
  template,
  recipientVariables,
  options,
})

type MimeOptions = Pick<ReadMime, 'values' | 'optionBytes' | 'unknown'>

const NO_MIME: MimeOptions = { optionBytes: 0, values: new Map(), unknown: [] }

/** Files are read from multipart only; elsewhere they would be lost silently. */
function checkFilesAreFiles(params: Params, contentType: string): void {
  const given = params.text('attachment') !== undefined || params.text('inline') !== undefined
  if (given && contentType !== 'multipart/form-data') throw notMultipart(contentType)
}

const notMultipart = (contentType: string) =>
  new BadRequest(
    `Invalid request content type. Expecting 'multipart/form-data' but got '${quotable(contentType)}'`,
  )

/** All addresses of a repeatable address field. */
function readAddresses(params: Params, name: string, missing?: string): Mailbox[] {
  const values = params.texts(name)
  if (values.length === 0) {
    if (missing) throw new BadRequest(missing)
    return []
  }
  try {
    const list = name === 'from' ? readAuthors(values) : readRecipientList(values)
    if (missing && list.length === 0) throw new AddressSyntaxError('empty list')
    return list
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    throw badAddress(name, error)
  }
}

const readRecipientList = (values: readonly string[]): Mailbox[] =>
  values.length === 1
    ? parseRecipients(values[0] as string)
    : values.flatMap((value) => parseRecipients(value))

const badAddress = (name: string, cause: AddressSyntaxError) =>
  new BadRequest(`${name} parameter is not a valid address. please check documentation`, {
    why: `${name}: ${cause.message}`,
    cause,
  })

/** `to` alone. @throws BadRequest as readSendRequest */
export const readRecipients = (params: Params): Mailbox[] =>
  recipientsOf(readAddresses(params, 'to', 'to parameter is missing'))

/** Without duplicates; the first occurrence counts. @throws BadRequest for more than 1,000 addresses */
function recipientsOf(mailboxes: readonly Mailbox[]): Mailbox[] {
  if (mailboxes.length === 1) return [...mailboxes]
  if (mailboxes.length > RECIPIENTS_MAX) throw new BadRequest(`Too many recipients, max is ${RECIPIENTS_MAX}`)
  const seen = new Map<string, Mailbox>()
  for (const mailbox of mailboxes) {
    const key = addressKey(mailbox)
    if (!seen.has(key)) seen.set(key, mailbox)
  }
  return [...seen.values()]
}

function readParts(params: Params, hasTemplate: boolean, hold = keepFile): DraftBody {
  const text = params.text('text') ?? null
  const html = params.text('html') ?? null
  const amp = params.text('amp-html') ?? null
  if (html !== null && hasTemplate) {
    throw new BadRequest("Only one parameters 'html' or 'template' is allowed")
  }
  if (text === null && html === null && amp === null && !hasTemplate) {
    throw new BadRequest("Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified")
  }
  const filesOf = (name: DraftFile['disposition']) =>
    params.files(name).map((file) => draftFile(file, name, hold(file)))
  const files = filesOf('attachment').concat(filesOf('inline'))
  return { kind: 'parts', text, html, amp, files }
}

function draftFile(file: UploadedFile, disposition: DraftFile['disposition'], chunk: Chunk): DraftFile {
  const filename = file.filename || 'attachment'
  return {
    disposition,
    filename,
    contentType: fileType(file.contentType, filename),
    chunk,
  }
}

/** The MIME message: a file part, or text, as one client sends it. */
function messageChunk(params: Params, hold = keepFile): Chunk {
  const [file] = params.files('message')
  if (file) return hold(file)
  const text = params.given('message')
  if (text === undefined) throw new BadRequest('message parameter is missing')
  if (text === '') throw new BadRequest("'message' parameter is not a file")
  return Buffer.from(text)
}

/** @throws BadRequest `cannot parse from address` */
function mimeAuthors(mime: ReadMime, mail: readonly (readonly [string, string])[], hasTemplate: boolean) {
  const own = mail.findLast(([name]) => isFrom(name))?.[1]
  const inside = mime.source.headers.filter(({ name }) => isFrom(name)).map(({ raw }) => unfoldedValue(raw))
  const values = own === undefined ? inside : [own]
  try {
    const authors = readAuthors(values, parseAddressList)
    // A second field would stay beside one of the call, and programs differ in which of two they take.
    if (inside.length > 1 || (authors.length === 0 && !hasTemplate))
      throw new AddressSyntaxError('not one From')
    return authors
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    throw new BadRequest('cannot parse from address', { cause: error })
  }
}

/**
 * The last `h:From` in place of `from`. One that recipient variables make an address stays a header field: it is read in each
 * copy. @throws BadRequest for one that names no authors
 */
function withAuthors(from: Mailbox[], mail: [string, string][]): Pick<Draft, 'from' | 'headers'> {
  const given = mail.findLast(([name]) => isFrom(name))
  if (given === undefined) return { from, headers: mail }
  const [, text] = given
  const others = mail.filter(([name]) => !isFrom(name))
  if (text.trim() === '') return { from, headers: others }
  try {
    const authors = readAuthors(text)
    if (authors.length === 0) throw new AddressSyntaxError('empty list')
    return { from: authors, headers: others }
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    if (hasVariable(text)) return { from, headers: [...others, given] }
    throw badAddress('from', error)
  }
}

const isFrom = (name: string) => name.toLowerCase() === 'from'

/** Options of all sources: fields, then `h:` headers, then header fields of a MIME message (rule 15). */
function readFieldOptions(
  params: Params,
  facts: RequestFacts,
  mime: MimeOptions,
): {
  mail: [string, string][]
  variables: Record<string, string>
  read: Readonly<ReadOptions>
  unknown: readonly string[]
} {
  const given = optionsOf(params)
  if (given === null && mime.values.size === 0)
    return { mail: [], variables: {}, read: NO_OPTIONS, unknown: mime.unknown }
  const { fields, headers, variables, bytes } = given ?? NOTHING_GIVEN
  checkOptionSize(bytes + mime.optionBytes)
  if (headers.length === 0 && mime.values.size === 0) {
    const read = readOptions(fields, facts.prefixes, facts)
    return { mail: [], variables: Object.fromEntries(variables), read, unknown: mime.unknown }
  }
  const { values, rest, unknown } = splitOptionHeaders(headers, facts.prefixes)
  const merged = mergeValues(fields, values, mime.values)
  const mail = joinRepeated(rest.filter(({ name }) => !IGNORED_HEADERS.test(name)))
  return {
    mail,
    variables: Object.fromEntries(variables),
    read: readOptions(merged, facts.prefixes, facts),
    unknown: [...unknown, ...mime.unknown],
  }
}

/** What joins the values of a field that a message has once, where several values mean something together. */
const JOINED: ReadonlyMap<string, string> = new Map([
  ...['to', 'cc', 'reply-to'].map((name) => [name, ', '] as const),
  ...['in-reply-to', 'references'].map((name) => [name, ' '] as const),
])

/**
 * Custom headers, those that a message has once given once.
 * @throws BadRequest for several values of which only one could be sent
 */
function joinRepeated(headers: readonly { name: string; value: string }[]): [string, string][] {
  const fields: [name: string, value: string][] = []
  const unique = new Map<string, [name: string, value: string]>()
  for (const { name, value } of headers) {
    const lower = name.toLowerCase()
    const present = unique.get(lower)
    if (present === undefined) {
      const field: [string, string] = [name, value]
      fields.push(field)
      if (isUniqueField(lower)) unique.set(lower, field)
    } else if (present[1] !== value) {
      const between = JOINED.get(lower)
      if (between === undefined) throw new BadRequest(`h:${name} may be given only once`)
      present[1] += between + value
    }
  }
  return fields
}

interface GivenOptions {
  /** Values of `o:` fields and their like. */
  fields: Map<string, readonly string[]>
  /** Values of `h:` fields. */
  headers: { name: string; value: string }[]
  /** Values of `v:` fields. */
  variables: [name: string, value: string][]
  /** Names and values of o:, h:, v: and t: fields together. */
  bytes: number
}

const NOTHING_GIVEN: Readonly<GivenOptions> = { fields: new Map(), headers: [], variables: [], bytes: 0 }

const COUNTED = /^[ohvt]:/

/** Null: none, as in most calls. */
function optionsOf(params: Params): GivenOptions | null {
  let given: GivenOptions | null = null
  for (const name of params.names()) {
    const isCounted = COUNTED.test(name)
    if (!isCounted && !OPTION_NAMES.has(name)) continue
    given ??= { fields: new Map(), headers: [], variables: [], bytes: 0 }
    const values = params.texts(name)
    if (isCounted)
      for (const value of values) given.bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
    if (OPTION_NAMES.has(name)) given.fields.set(name, values)
    else if (name.startsWith('h:')) given.headers.push(...headersOf(name.slice(2).trim(), values))
    else if (name.startsWith('v:') && name.length > 2) {
      if (values.some((value) => value !== values[0]))
        throw new BadRequest(`${quotable(name)} may be given only once`)
      given.variables.push([name.slice(2), params.given(name) ?? ''])
    }
  }
  return given
}

function headersOf(name: string, values: readonly string[]): { name: string; value: string }[] {
  if (!isHeaderName(name)) throw new BadRequest(`Header name must be pure ASCII: ${quotable(name)}`)
  return values.map((value) => ({ name, value }))
}

/** Size for the rate limit, in bytes: a MIME message as received, else its texts and files before encoding. */
export function draftBytes({ body }: Pick<Draft, 'body'>): number {
  if (body.kind === 'mime') return chunkSize(body.source.chunk)
  const texts = [body.text, body.html, body.amp].map((text) => Buffer.byteLength(text ?? ''))
  return [...texts, ...body.files.map(({ chunk }) => chunkSize(chunk))].reduce((sum, size) => sum + size, 0)
}
