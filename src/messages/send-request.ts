/**
 * Reads `POST /v3/{domain}/messages` into a draft, checking in the contract's order (messages.md rule 1):
 * from; to, cc, bcc; subject; content; option size; option values. The first fault answers, in the
 * contract's words.
 */
import { BadRequest } from '../base/errors.ts'
import type { Params, UploadedFile } from '../http/params.ts'
import {
  AddressSyntaxError,
  addressKey,
  bareAddress,
  type Mailbox,
  parseAddressList,
} from '../mime/address.ts'
import { isHeaderName } from '../mime/header.ts'
import { DEFAULT_OPTIONS, type Draft, type DraftFile, type MessageOptions } from './draft.ts'
import { cleanTags } from './tags.ts'

export const RECIPIENTS_MAX = 1000
const OPTION_BYTES_MAX = 16_384

/** Options that the contract knows and that are not honoured yet: refused by name, never ignored. */
const NOT_HONOURED = [
  'template',
  't:version',
  't:text',
  't:variables',
  'recipient-variables',
  'o:secondary-dkim',
  'o:secondary-dkim-public',
  'o:deliverytime',
  'o:deliver-within',
  'o:deliverytime-optimize-period',
  'o:time-zone-localize',
  'o:tracking',
  'o:tracking-clicks',
  'o:tracking-opens',
  'o:tracking-pixel-location-top',
  'o:sending-ip',
  'o:sending-ip-pool',
  'o:archive-to',
  'o:suppress-headers',
]

/** Headers that are ours or the receiving server's alone: given ones are left out (messages.md rule 14). */
const IGNORED_HEADERS =
  /^(content-type|content-transfer-encoding|mime-version|bcc|resent-bcc|received|return-path|dkim-signature|arc-.*|authentication-results)$/i

/** @throws BadRequest with the text of messages.md section 3 */
export function readSendRequest(params: Params, headerPrefixes: readonly string[]): Draft {
  const from = addresses(params, 'from', 'from parameter is missing')
  const to = addresses(params, 'to', 'to parameter is missing')
  const cc = addresses(params, 'cc')
  const bcc = addresses(params, 'bcc')
  const recipients = withoutDoubles([...to, ...cc, ...bcc])
  if (to.length + cc.length + bcc.length > RECIPIENTS_MAX) {
    throw new BadRequest(`Too many recipients, max is ${RECIPIENTS_MAX}`)
  }
  const subject = params.given('subject')
  if (subject === undefined) throw new BadRequest('subject parameter is missing')
  const content = readContent(params)
  checkOptionSize(params)
  const refused = NOT_HONOURED.find((name) => params.text(name) !== undefined)
  if (refused) throw new BadRequest(`'${refused}' is not supported yet`)
  const options = readOptions(params)
  const headers = readHeaders(params, headerPrefixes)
  return {
    from,
    to,
    cc,
    recipients,
    subject,
    ...content,
    headers: headers.mail,
    userVariables: { ...headers.variables, ...readVariables(params) },
    tags: cleanTags([...params.texts('o:tag'), ...headers.tags]),
    options: {
      ...options,
      ...(headers.testMode !== null &&
        params.text('o:testmode') === undefined && { testMode: headers.testMode }),
    },
  }
}

/** All addresses of a repeatable address field. */
function addresses(params: Params, name: string, missing?: string): Mailbox[] {
  const values = params.texts(name)
  if (values.length === 0 && missing) throw new BadRequest(missing)
  try {
    const list = values.flatMap(parseAddressList)
    if (missing && list.length === 0) throw new AddressSyntaxError('empty list')
    return list
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    throw new BadRequest(`${name} parameter is not a valid address. please check documentation`, {
      cause: error,
    })
  }
}

function withoutDoubles(mailboxes: readonly Mailbox[]): Mailbox[] {
  const seen = new Map<string, Mailbox>()
  for (const mailbox of mailboxes) {
    const key = addressKey(bareAddress(mailbox))
    if (!seen.has(key)) seen.set(key, mailbox)
  }
  return [...seen.values()]
}

function readContent(params: Params): Pick<Draft, 'text' | 'html' | 'amp' | 'files'> {
  const text = params.text('text') ?? null
  const html = params.text('html') ?? null
  const amp = params.text('amp-html') ?? null
  const template = params.text('template')
  if (html !== null && template !== undefined) {
    throw new BadRequest("Only one parameters 'html' or 'template' is allowed")
  }
  if (text === null && html === null && amp === null && template === undefined) {
    throw new BadRequest("Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified")
  }
  const files = [
    ...params.files('attachment').map((file) => draftFile(file, 'attachment')),
    ...params.files('inline').map((file) => draftFile(file, 'inline')),
  ]
  return { text, html, amp, files }
}

function draftFile(file: UploadedFile, disposition: DraftFile['disposition']): DraftFile {
  return {
    disposition,
    filename: file.filename || 'attachment',
    contentType: file.contentType,
    chunk: file.keep(),
  }
}

/** Names and values of o:, h:, v: and t: fields together. */
function checkOptionSize(params: Params): void {
  let size = 0
  for (const name of params.names()) {
    if (!/^[ohvt]:/.test(name)) continue
    for (const value of params.texts(name)) size += Buffer.byteLength(name) + Buffer.byteLength(value)
  }
  if (size > OPTION_BYTES_MAX) {
    throw new BadRequest('Send options (parameters starting with o:, h:, or v:) are limited to 16KB total')
  }
}

function readOptions(params: Params): MessageOptions {
  return {
    dkim: params.boolean('o:dkim') ?? DEFAULT_OPTIONS.dkim,
    testMode: params.boolean('o:testmode') ?? DEFAULT_OPTIONS.testMode,
    requireTls: params.boolean('o:require-tls') ?? null,
    skipVerification: params.boolean('o:skip-verification') ?? null,
  }
}

function readVariables(params: Params): Record<string, string> {
  const entries = params.names().filter((name) => name.startsWith('v:') && name.length > 2)
  return Object.fromEntries(entries.map((name) => [name.slice(2), params.given(name) ?? '']))
}

interface HeaderFields {
  mail: [string, string][]
  tags: string[]
  variables: Record<string, unknown>
  testMode: boolean | null
}

/** `h:` fields: headers of the mail, or options where the name has the service's prefix. */
function readHeaders(params: Params, prefixes: readonly string[]): HeaderFields {
  const fields: HeaderFields = { mail: [], tags: [], variables: {}, testMode: null }
  for (const parameter of params.names()) {
    if (!parameter.startsWith('h:')) continue
    const name = parameter.slice(2).trim()
    if (!isHeaderName(name)) throw new BadRequest(`Header name must be pure ASCII: ${name}`)
    const prefix = prefixes.find((candidate) => name.toLowerCase().startsWith(candidate.toLowerCase()))
    for (const value of params.texts(parameter)) {
      if (prefix) readOptionHeader(fields, parameter, name.slice(prefix.length).toLowerCase(), value)
      else if (!IGNORED_HEADERS.test(name)) fields.mail.push([name, value])
    }
  }
  return fields
}

/** An option as a header of the call; those not honoured yet are refused like their fields. */
function readOptionHeader(fields: HeaderFields, parameter: string, option: string, value: string): void {
  switch (option) {
    case 'tag':
      fields.tags.push(value)
      return
    case 'variables':
      Object.assign(fields.variables, jsonObject(value, parameter))
      return
    case 'drop-message':
      fields.testMode = /^(yes|true|1|on)$/i.test(value.trim())
      return
    default:
      throw new BadRequest(`'${parameter}' is not supported yet`)
  }
}

function jsonObject(text: string, parameter: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Falls through to the one answer for everything that is not an object.
  }
  throw new BadRequest(`'${parameter}' parameter is not a valid JSON`)
}
