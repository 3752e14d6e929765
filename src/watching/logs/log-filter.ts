/** Filters of logs (metrics-logs.md section 5): attributes, their comparators, and what they see of an event. Pure. */

import { BadRequest } from '../../base/process/errors.ts'
import { isPlainObject, jsonText, quotable } from '../../base/values.ts'
import type { EventName } from '../events/event.ts'
import { bare } from '../events/search/filter.ts'
import { conditionsOf as readConditions } from '../metrics/request-fields.ts'

export const COMPARATORS = ['=', '!=', 'contains', 'not contains', '>', '<'] as const
type Comparator = (typeof COMPARATORS)[number]

/** An event as filters see it. */
export interface LogRow {
  id: string
  event: string
  accountId: string
  domainName: string
  payload: Readonly<Record<string, unknown>>
}

interface AttributeSpec {
  comparators: readonly Comparator[]
  values(row: LogRow): readonly unknown[]
  /** Only these events have a value. Default: any may. */
  events?: readonly EventName[]
  /** What an event without a value has. */
  missing?: string
}

const EQUAL: readonly Comparator[] = ['=', '!=']
const PART: readonly Comparator[] = ['contains', 'not contains']
const EQUAL_OR_PART: readonly Comparator[] = [...EQUAL, ...PART]

type Members = Readonly<Record<string, unknown>>

/** The member at a path of names; the members of every element where it leads through a list. */
function at(value: unknown, ...names: readonly string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => at(item, ...names))
  const [name, ...rest] = names
  if (name === undefined) return value === undefined || value === null ? [] : [value]
  return isPlainObject(value) && Object.hasOwn(value, name) ? at((value as Members)[name], ...rest) : []
}

const of =
  (...path: readonly string[]) =>
  ({ payload }: LogRow) =>
    at(payload, ...path)

const FAILED: readonly EventName[] = ['failed']
const ATTEMPTS: readonly EventName[] = ['delivered', 'failed']
const VISITS: readonly EventName[] = ['opened', 'clicked', 'unsubscribed']

const ATTRIBUTES = {
  event: { comparators: EQUAL, values: ({ event }) => [event] },
  attachment_filename: { comparators: EQUAL, values: of('message', 'attachments', 'filename') },
  message_id: {
    comparators: EQUAL,
    values: (row) => of('message', 'headers', 'message-id')(row).map((id) => bare(String(id))),
  },
  tag: { comparators: EQUAL, values: of('tags') },
  severity: { comparators: EQUAL, values: of('severity'), events: FAILED },
  ip: { comparators: EQUAL, values: of('envelope', 'sending-ip') },
  ip_pool: { comparators: EQUAL, values: of('envelope', 'i-ip-pool-id'), missing: 'none' },
  recipient_domain: { comparators: EQUAL, values: of('recipient-domain') },
  recipient_provider: { comparators: EQUAL, values: of('recipient-provider') },
  country: { comparators: EQUAL, values: of('geolocation', 'country'), events: VISITS, missing: 'unknown' },
  subaccount: { comparators: EQUAL, values: ({ accountId }) => [accountId] },
  id: { comparators: EQUAL, values: ({ id }) => [id] },
  delivery_status_code: { comparators: EQUAL, values: of('delivery-status', 'code'), events: ATTEMPTS },
  is_routed: { comparators: EQUAL, values: of('flags', 'is-routed'), missing: 'false' },
  i_classification_rule_id: { comparators: EQUAL, values: of('i-classification-rule-id'), events: FAILED },
  from: { comparators: EQUAL_OR_PART, values: of('message', 'headers', 'from') },
  subject: { comparators: EQUAL_OR_PART, values: of('message', 'headers', 'subject') },
  recipient: { comparators: EQUAL_OR_PART, values: of('recipient') },
  domain: { comparators: EQUAL_OR_PART, values: ({ domainName }) => [domainName] },
  bot: {
    comparators: EQUAL_OR_PART,
    values: (row) => of('client-info', 'bot')(row).filter((bot) => bot !== ''),
    events: VISITS,
    missing: 'none',
  },
  device: {
    comparators: EQUAL_OR_PART,
    values: of('client-info', 'device-type'),
    events: VISITS,
    missing: 'unknown',
  },
  mailing_list_address: { comparators: PART, values: of('mailing-list', 'address') },
  to: { comparators: PART, values: of('message', 'headers', 'to') },
  recipients: { comparators: PART, values: of('message', 'recipients') },
  user_variables: { comparators: PART, values: of('user-variables') },
  delivery_status_message: {
    comparators: PART,
    values: of('delivery-status', 'message'),
    events: ATTEMPTS,
  },
  size: { comparators: ['>', '<'], values: of('message', 'size') },
} as const satisfies Record<string, AttributeSpec>

export type Attribute = keyof typeof ATTRIBUTES
export const ATTRIBUTE_NAMES = Object.keys(ATTRIBUTES) as Attribute[]

const specOf = (attribute: Attribute): AttributeSpec => ATTRIBUTES[attribute]

/** The names of the event listing's filters. */
const OLD_NAMES: Readonly<Record<string, Attribute>> = {
  'message-id': 'message_id',
  tags: 'tag',
  list: 'mailing_list_address',
  attachment: 'attachment_filename',
}

export interface Condition {
  attribute: Attribute
  comparator: Comparator
  /** As given, at least one. */
  values: readonly string[]
}

/** @throws BadRequest naming what is not understood */
export function conditionsOf(filter: unknown): Condition[] {
  const conditions = readConditions(filter, {
    attributeOf,
    comparators: COMPARATORS,
    textOf: (value) => jsonText(value ?? ''),
    supports: (attribute, comparator) => specOf(attribute).comparators.includes(comparator),
  })
  for (const { attribute, values } of conditions) {
    const bad = attribute === 'size' ? values.find((value) => !/^\d{1,15}$/.test(value)) : undefined
    if (bad !== undefined) throw new BadRequest(`filter size: not a number: ${quotable(bad)}`)
  }
  return conditions
}

const attributeOf = (name: string): Attribute | undefined =>
  Object.hasOwn(OLD_NAMES, name) ? OLD_NAMES[name] : ATTRIBUTE_NAMES.find((known) => known === name)

/** Decides whether an event passes all conditions. Texts are compared without regard to letter case. */
export function passesAll(conditions: readonly Condition[]): (row: LogRow) => boolean {
  const tests = conditions.map(testOf)
  return (row) => tests.every((passes) => passes(row))
}

function testOf({ attribute, comparator, values }: Condition): (row: LogRow) => boolean {
  const spec = specOf(attribute)
  const wanted = values.map((value) => lower(attribute === 'message_id' ? bare(value) : value))
  const textsOf = (row: LogRow) => {
    const texts = spec.values(row).map((value) => lower(jsonText(value)))
    return texts.length === 0 && spec.missing !== undefined ? [spec.missing] : texts
  }
  const any = (matches: (text: string, value: string) => boolean) => (row: LogRow) =>
    textsOf(row).some((text) => wanted.some((value) => matches(text, value)))
  const isEqual = any((text, value) => text === value)
  const isPart = any((text, value) => text.includes(value))
  switch (comparator) {
    case '=':
      return isEqual
    case '!=':
      return (row) => !isEqual(row)
    case 'contains':
      return isPart
    case 'not contains':
      return (row) => !isPart(row)
    case '>':
      return any((text, value) => Number(text) > Number(value))
    case '<':
      return any((text, value) => Number(text) < Number(value))
  }
}

/** Letters whose lower case is ASCII although they are not: as `longestAscii` has it, they equal nothing else. */
const NOT_FOLDED = /[\u0130\u212a]/
const lower = (text: string) =>
  NOT_FOLDED.test(text)
    ? text.replaceAll(/[^\u0130\u212a]+/g, (part) => part.toLowerCase())
    : text.toLowerCase()

/** The names of the only events that can pass; null: any can. */
export function eventsOf(conditions: readonly Condition[]): ReadonlySet<string> | null {
  let names: Set<string> | null = null
  for (const { attribute, comparator, values } of conditions) {
    const implied = impliedEvents(attribute, comparator, values)
    if (implied) names = new Set([...implied].filter((name) => names?.has(name) ?? true))
  }
  return names
}

function impliedEvents(
  attribute: Attribute,
  comparator: Comparator,
  values: readonly string[],
): readonly string[] | undefined {
  if (attribute === 'event') return comparator === '=' ? values.map(lower) : undefined
  const isPositive = comparator === '=' || comparator === 'contains'
  const isMissing = values.some((value) => matchesMissing(attribute, comparator, value))
  return isPositive && !isMissing ? specOf(attribute).events : undefined
}

/** Whether `=` or `contains` selects events without a value. */
export function matchesMissing(attribute: Attribute, comparator: Comparator, value: string): boolean {
  const { missing } = specOf(attribute)
  return comparator === '=' ? missing === lower(value) : (missing?.includes(lower(value)) ?? false)
}

/** The values of which a passing event has one, from the shortest list; null: nothing is known. */
export function exactValues(
  conditions: readonly Condition[],
  attribute: Attribute,
): readonly string[] | null {
  const lists = conditions
    .filter((condition) => condition.attribute === attribute && condition.comparator === '=')
    .map(({ values }) => values)
  return lists.sort((a, b) => a.length - b.length)[0] ?? null
}

export interface TextCondition {
  column: 'payload_json' | 'domain_name'
  /** In lower case; ASCII. */
  texts: readonly string[]
}

/** The JSON member whose text an attribute is. */
const MEMBERS: Partial<Record<Attribute, string>> = {
  attachment_filename: 'filename',
  severity: 'severity',
  ip: 'sending-ip',
  ip_pool: 'i-ip-pool-id',
  recipient_domain: 'recipient-domain',
  recipient_provider: 'recipient-provider',
  country: 'country',
  i_classification_rule_id: 'i-classification-rule-id',
  from: 'from',
  subject: 'subject',
  recipient: 'recipient',
  bot: 'bot',
  device: 'device-type',
}
/** Others in which a text is searched for. */
const SEARCHED: readonly Attribute[] = ['mailing_list_address', 'to', 'recipients', 'delivery_status_message']

/**
 * What a filter says about the stored text of an event, so that the database can leave out nearly all events that do not
 * pass: the JSON of each event that passes has one of the texts of each list. Comparisons are of lower case, in ASCII only.
 */
export function textConditions(filter: readonly Condition[]): TextCondition[] {
  return filter.flatMap((condition) => {
    const texts = textsOf(condition)
    const column = condition.attribute === 'domain' ? ('domain_name' as const) : ('payload_json' as const)
    return texts === null || texts.includes('') ? [] : [{ column, texts }]
  })
}

/** Null: the filter says nothing; an empty text is in everything. */
function textsOf({ attribute, comparator, values }: Condition): string[] | null {
  if (comparator !== '=' && comparator !== 'contains') return null
  if (values.some((value) => matchesMissing(attribute, comparator, value))) return null
  if (attribute === 'domain') return values.map(longestAscii)
  if (attribute === 'tag') return values.map((value) => longestAscii(JSON.stringify(value)))
  if (attribute === 'delivery_status_code') return values.map((value) => longestAscii(`"code":${value}`))
  if (attribute === 'is_routed') return values.map((value) => longestAscii(`"is-routed":${value}`))
  // Compared with the JSON of the variables.
  if (attribute === 'user_variables') return values.map((value) => longestAscii(jsonText(value)))
  const member = MEMBERS[attribute]
  if (member === undefined && !SEARCHED.includes(attribute)) return null
  return values.map((value) => {
    const text = JSON.stringify(value)
    if (comparator === 'contains' || member === undefined) return longestAscii(text.slice(1, -1))
    return longestAscii(`"${member}":${text}`)
  })
}

/** Databases know the lower case of ASCII letters only. */
function longestAscii(text: string): string {
  const parts = text.split(/[^\u0020-\u007e]+/)
  const longest = parts.reduce((best, part) => (part.length > best.length ? part : best), '')
  return longest.toLowerCase()
}
