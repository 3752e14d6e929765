/**
 * The options of a message from all sources: fields of a call (`o:tag`), headers of a call (`h:X-Service-Tag`), header
 * fields of a MIME message or of SMTP. One table maps each field to its header (smtp-submission.md, "Option headers");
 * one reader checks the values, in the order of the table.
 */

import { foreignJsonIn } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { isGoZeroTime, parseDate } from '../../base/time/dates.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { weeklyWindow } from '../../base/time/weekly-window.ts'
import { booleanOf, invalidChoice, invalidFormat, isPlainObject, quotable } from '../../base/values.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { SEND_ALWAYS } from '../../sending/domains/domain.ts'
import { cleanTags } from '../../watching/tags/clean-tags.ts'
import {
  DEFAULT_OPTIONS,
  type KeyName,
  type MessageOptions,
  type RecipientVariables,
} from '../record/options.ts'

export interface TemplateRequest {
  /** Name or id. */
  name: string
  /** Null: the active version. */
  version: string | null
  text: boolean
  variables: Record<string, unknown>
}

/** All options of one message. */
export interface ReadOptions {
  options: MessageOptions
  tags: string[]
  /** Variables of `X-Service-Variables` headers alone; `v:` fields override them. */
  headerVariables: Record<string, unknown>
  template: TemplateRequest | null
  recipientVariables: Map<string, RecipientVariables> | null
}

/** Field of a call and suffix of the header with the same meaning. `free`: not counted towards the 16 KB of all options. */
export interface OptionField {
  field: string
  header: string
  free?: true
}

export const OPTION_FIELDS: readonly OptionField[] = [
  { field: 'o:tag', header: 'Tag' },
  { field: 'o:dkim', header: 'Dkim' },
  { field: 'o:secondary-dkim', header: 'Secondary-DKIM' },
  { field: 'o:secondary-dkim-public', header: 'Secondary-DKIM-Public' },
  { field: 'o:testmode', header: 'Drop-Message' },
  { field: 'o:tracking', header: 'Track' },
  { field: 'o:tracking-clicks', header: 'Track-Clicks' },
  { field: 'o:tracking-opens', header: 'Track-Opens' },
  { field: 'o:tracking-pixel-location-top', header: 'Track-Pixel-Location-Top' },
  { field: 'o:list-unsubscribe', header: 'List-Unsubscribe' },
  { field: 'o:require-tls', header: 'Require-TLS' },
  { field: 'o:skip-verification', header: 'Skip-Verification' },
  { field: 'o:sending-ip', header: 'Sending-Ip' },
  { field: 'o:sending-ip-pool', header: 'Sending-Ip-Pool' },
  { field: 'o:relay', header: 'Relay' },
  { field: 'o:deliverytime', header: 'Deliver-By' },
  { field: 'o:deliver-within', header: 'Deliver-Within' },
  { field: 'o:deliverytime-optimize-period', header: 'Delivery-Time-Optimize-Period' },
  { field: 'o:time-zone-localize', header: 'Time-Zone-Localize' },
  { field: 'o:send-window', header: 'Send-Window' },
  { field: 'o:archive-to', header: 'Archive-To' },
  { field: 'o:suppress-headers', header: 'Suppress-Headers' },
  { field: 'o:hold-for-review', header: 'Hold-For-Review' },
  { field: 'v:', header: 'Variables' },
  { field: 't:version', header: 'Template-Version' },
  { field: 't:text', header: 'Template-Text' },
  { field: 't:variables', header: 'Template-Variables' },
  { field: 'recipient-variables', header: 'Recipient-Variables', free: true },
  { field: 'template', header: 'Template-Name', free: true },
]

/** Headers that only the service writes; given ones are ignored. */
const OWN_HEADERS = new Set(['sid'])

/** What received mail gets (receiving/routes/forward/received-fields.ts), in lower case: not unknown where such mail is sent again. */
export const RECEIVED_SUFFIXES: ReadonlySet<string> = new Set([
  ...['incoming', 'sflag', 'sscore', 'spf', 'dkim-check-result'],
])
/** Field of forwarded mail with the id of a route, under the service's prefix: the route ends a loop by it. */
export const FORWARDED_SUFFIX = 'Forwarded'

const FIELD_OF_HEADER = new Map(OPTION_FIELDS.map((option) => [option.header.toLowerCase(), option]))

/** Values given for each field of the table, in order; empty ones are left out. */
export type OptionValues = ReadonlyMap<string, readonly string[]>

/** Per field the values of the first source that has any: the earlier source wins (messages.md rule 15). */
export function mergeValues(...sources: readonly OptionValues[]): OptionValues {
  const merged = new Map<string, readonly string[]>()
  for (const source of sources) {
    for (const [field, values] of source) {
      if (field === 'v:') merged.set(field, [...values, ...(merged.get(field) ?? [])])
      else if (values.length > 0 && !merged.has(field)) merged.set(field, values)
    }
  }
  return merged
}

export interface SplitHeaders<H> {
  values: OptionValues
  /** The headers that are not options, in order. */
  rest: H[]
  /** Names of those under a prefix that no option has. */
  unknown: string[]
  /** Names and values of the options that count towards the 16 KB, in bytes. */
  optionBytes: number
}

/**
 * Takes the option headers out of a header block. Names are matched without letter case under every prefix;
 * an unknown `X-Service-` header is an ordinary one (smtp-submission.md rule 21).
 */
export function splitOptionHeaders<H extends { name: string; value: string }>(
  headers: readonly H[],
  prefixes: readonly string[],
): SplitHeaders<H> {
  const values = new Map<string, string[]>()
  const rest: H[] = []
  const unknown: string[] = []
  let optionBytes = 0
  for (const header of headers) {
    const suffix = suffixOf(header.name, prefixes)
    const option = suffix === null ? undefined : FIELD_OF_HEADER.get(suffix)
    if (suffix !== null && OWN_HEADERS.has(suffix)) continue
    if (!option) {
      rest.push(header)
      if (suffix !== null && !RECEIVED_SUFFIXES.has(suffix) && suffix !== FORWARDED_SUFFIX.toLowerCase())
        unknown.push(header.name)
      continue
    }
    if (!option.free) optionBytes += Buffer.byteLength(header.name) + Buffer.byteLength(header.value)
    const value = header.value.trim()
    if (value !== '') values.set(option.field, [...(values.get(option.field) ?? []), value])
  }
  return { values, rest, unknown, optionBytes }
}

/** The name after one of the prefixes in lower case, or null. */
function suffixOf(name: string, prefixes: readonly string[]): string | null {
  const lower = name.toLowerCase()
  const prefix = prefixes.find((candidate) => lower.startsWith(candidate.toLowerCase()))
  return prefix === undefined ? null : lower.slice(prefix.length)
}

/** Names and values of all options of one message. */
const OPTION_BYTES_MAX = 16_384

/** @throws BadRequest over 16 KB */
export function checkOptionSize(bytes: number): void {
  if (bytes > OPTION_BYTES_MAX) {
    throw new BadRequest('Send options (parameters starting with o:, h:, or v:) are limited to 16KB total')
  }
}

const WITHIN_MIN_MS = 5 * MINUTE_MS
const WITHIN_MAX_MS = 24 * HOUR_MS
const OPTIMIZE_HOURS_MIN = 24
const OPTIMIZE_HOURS_MAX = 72
const URL_LENGTH_MAX = 2048

/**
 * Checks and reads all option values; first the options, then recipient-variables (messages.md rule 1).
 * What needs the account (keys, addresses, templates) is checked at acceptance.
 * @throws BadRequest with the texts of messages.md section 3
 */
export function readOptions(
  values: OptionValues,
  prefixes: readonly string[],
  limits: { now: number; scheduleMaxMs: number },
): Readonly<ReadOptions> {
  if (values.size === 0) return NO_OPTIONS
  const reader = new ValueReader(values)
  const tracking = reader.word('o:tracking')
  const clicks = reader.word('o:tracking-clicks')
  const opens = reader.flag('o:tracking-opens')
  const top = reader.word('o:tracking-pixel-location-top')
  const options: MessageOptions = {
    dkim: reader.flag('o:dkim') ?? DEFAULT_OPTIONS.dkim,
    ...secondaryKeys(reader),
    testMode: reader.flag('o:testmode') ?? DEFAULT_OPTIONS.testMode,
    trackClicks: clicks ?? tracking,
    // Opens have no htmlonly: only html parts can have a pixel (messages.md rule 34).
    trackOpens: opens ?? (tracking === null ? null : tracking !== false),
    pixelAtTop: top === null ? null : top !== false,
    listUnsubscribe: reader.flag('o:list-unsubscribe'),
    requireTls: reader.requireTls(),
    skipVerification: reader.flag('o:skip-verification'),
    sendingIp: reader.text('o:sending-ip'),
    sendingIpPool: reader.text('o:sending-ip-pool'),
    relay: reader.text('o:relay'),
    deliveryTime: reader.read('o:deliverytime', (text) => deliveryTime(text, limits)),
    deliverWithinMs: reader.read('o:deliver-within', deliverWithin),
    optimizeHours: reader.read('o:deliverytime-optimize-period', optimizeHours),
    localMinute: reader.read('o:time-zone-localize', localMinute),
    sendWindow: reader.read('o:send-window', sendWindow),
    archiveTo: reader.read('o:archive-to', archiveUrl),
    suppressHeaders: suppressedHeaders(reader.all('o:suppress-headers'), prefixes),
    ...(reader.flag('o:hold-for-review') === true && { review: true as const }),
  }
  if (options.optimizeHours !== null && options.localMinute !== null) {
    throw new BadRequest("'o:deliverytime-optimize-period' and 'o:time-zone-localize' exclude each other")
  }
  const headerVariables: Record<string, unknown> = {}
  const variablesName = `h:${prefixes[0] ?? ''}Variables`
  for (const text of reader.all('v:')) Object.assign(headerVariables, jsonObject(text, variablesName))
  return {
    options,
    tags: cleanTags(reader.all('o:tag')),
    headerVariables,
    template: templateRequest(reader),
    recipientVariables: reader.read('recipient-variables', recipientVariables),
  }
}

/** What a message without options has, as most are. */
export const NO_OPTIONS: Readonly<ReadOptions> = {
  options: DEFAULT_OPTIONS,
  tags: [],
  headerVariables: {},
  template: null,
  recipientVariables: null,
}

class ValueReader {
  readonly #values: OptionValues

  constructor(values: OptionValues) {
    this.#values = values
  }

  all(field: string): readonly string[] {
    return this.#values.get(field) ?? []
  }

  text(field: string): string | null {
    return this.all(field)[0]?.trim() ?? null
  }

  read<T>(field: string, parse: (text: string) => T): T | null {
    const text = this.text(field)
    return text === null ? null : parse(text)
  }

  flag(field: string): boolean | null {
    return this.read(field, (text) => {
      const flag = booleanOf(text)
      if (flag === undefined) throw invalidFormat(field, text)
      return flag
    })
  }

  requireTls(): MessageOptions['requireTls'] {
    const isOnward = this.text('o:require-tls')?.toLowerCase() === 'requiretls'
    return isOnward ? 'requiretls' : this.flag('o:require-tls')
  }

  /** yes, no or `htmlonly`; one client writes `html` for it. */
  word(field: string): boolean | 'htmlonly' | null {
    return this.read(field, (text) => {
      const flag = /^html(?:only)?$/i.test(text) ? 'htmlonly' : booleanOf(text)
      if (flag === undefined) throw invalidChoice(field, text)
      return flag
    })
  }
}

function secondaryKeys(reader: ValueReader): Pick<MessageOptions, 'secondaryDkim' | 'secondaryDkimPublic'> {
  const secondaryDkim = reader.read('o:secondary-dkim', keyName)
  const secondaryDkimPublic = reader.read('o:secondary-dkim-public', keyName)
  if (secondaryDkimPublic && !secondaryDkim)
    throw invalidKey(reader.text('o:secondary-dkim-public') as string)
  return { secondaryDkim, secondaryDkimPublic }
}

export const invalidKey = (value: string) =>
  new BadRequest(`${quotable(value)} is not a valid secondary dkim domain name`)

/** `domain/selector` or `domain,selector`. */
function keyName(text: string): KeyName {
  const match = /^([a-z0-9._-]{1,253})\s*[/,]\s*([a-z0-9._-]{1,253})$/i.exec(text)
  if (!match) throw invalidKey(text)
  return {
    domain: (match[1] as string).toLowerCase(),
    selector: (match[2] as string).toLowerCase(),
    given: text,
  }
}

function deliveryTime(text: string, limits: { now: number; scheduleMaxMs: number }): number | null {
  const date = parseDate(text)
  if (date === undefined) throw new BadRequest(`${quotable(text)} is not an RFC-2822 compliant date`)
  if (isGoZeroTime(date)) return null
  checkDeliveryTime(date.getTime(), limits)
  return date.getTime()
}

/** @throws BadRequest for a time that is too far ahead (messages.md rule 41) */
export function checkDeliveryTime(time: number, limits: { now: number; scheduleMaxMs: number }): void {
  if (time <= limits.now + limits.scheduleMaxMs) return
  const hours = Math.floor(limits.scheduleMaxMs / HOUR_MS)
  throw new BadRequest(`o:deliverytime is too far in the future, max is ${hours} hours`)
}

function deliverWithin(text: string): number {
  const match = /^(?:(\d{1,3})h)?(?:(\d{1,5})m)?$/i.exec(text)
  const ms = match ? Number(match[1] ?? 0) * HOUR_MS + Number(match[2] ?? 0) * MINUTE_MS : 0
  if (ms < WITHIN_MIN_MS || ms > WITHIN_MAX_MS) {
    throw new BadRequest('o:deliver-within must be between 5m and 24h, for example 1h30m')
  }
  return ms
}

function optimizeHours(text: string): number {
  const hours = /^\d{1,4}h$/i.test(text) ? Number.parseInt(text, 10) : 0
  if (hours < OPTIMIZE_HOURS_MIN || hours > OPTIMIZE_HOURS_MAX) {
    throw new BadRequest('invalid delivery time format')
  }
  return hours
}

/** `16:00` or `04:00PM`, in minutes after midnight. */
function localMinute(text: string): number {
  const match = /^(\d{2}):(\d{2})(?:\s?([ap])m)?$/i.exec(text)
  const [hour, minute] = [Number(match?.[1]), Number(match?.[2])]
  const half = match?.[3]?.toLowerCase()
  if (!match || (half && (hour < 1 || hour > 12 || minute > 59))) {
    throw new BadRequest(`${quotable(text)} is not a valid time to send (value of 'o:time-zone-localize')`)
  }
  if (half) return ((hour % 12) + (half === 'p' ? 12 : 0)) * 60 + minute
  if (hour > 23 || minute > 59) {
    throw new BadRequest(`${quotable(text)} invalid 24 hour time(value of 'o:time-zone-localize')`)
  }
  return hour * 60 + minute
}

function sendWindow(text: string): string {
  const isAlways = text.toLowerCase() === SEND_ALWAYS
  if (!isAlways && weeklyWindow(text) === null)
    throw new BadRequest(`${quotable(text)} is not a valid send window (value of 'o:send-window')`)
  return isAlways ? SEND_ALWAYS : text
}

function archiveUrl(text: string): string {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : null
  // A password would be stored with the message and each copy, and nothing is ever posted to such a URL.
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw invalidArchive(text)
  return url.href
}

export const invalidArchive = (text: string): BadRequest =>
  new BadRequest(`${quotable(text)} is not a valid url (value of 'o:archive-to')`)

function suppressedHeaders(values: readonly string[], prefixes: readonly string[]): 'all' | string[] {
  const names = values.flatMap((value) => value.split(',')).map((name) => name.trim().toLowerCase())
  if (names.includes('all')) return 'all'
  return names.flatMap((name) => suffixOf(name, prefixes) ?? [])
}

function templateRequest(reader: ValueReader): TemplateRequest | null {
  const text = reader.flag('t:text') ?? false
  const variables = reader.read('t:variables', (value) => jsonObject(value, 't:variables')) ?? {}
  const name = reader.text('template')
  return name === null ? null : { name, version: reader.text('t:version'), text, variables }
}

/** The entry of all recipients, in place of an address. */
export const ALL_RECIPIENTS = '*'
/** It is stored with each message and read by each of its deliveries. */
const SHARED_BYTES_MAX = 16_384

/** By address key; values that are not objects count as empty. @throws BadRequest for too much under `*` */
function recipientVariables(text: string): Map<string, RecipientVariables> {
  const variables = new Map<string, RecipientVariables>()
  for (const [address, entry] of Object.entries(jsonObject(text, 'recipient-variables'))) {
    variables.set(addressKey(address), isPlainObject(entry) ? entry : {})
  }
  const shared = variables.get(ALL_RECIPIENTS)
  if (shared && Buffer.byteLength(JSON.stringify(shared)) > SHARED_BYTES_MAX)
    throw new BadRequest("The entry '*' of 'recipient-variables' is limited to 16KB")
  return variables
}

export function jsonObject(text: string, parameter: string): Record<string, unknown> {
  const value = foreignJsonIn(text)
  if (isPlainObject(value)) return value
  throw new BadRequest(`'${parameter}' parameter is not a valid JSON`)
}
