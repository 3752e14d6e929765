/**
 * What a filter says about the stored text of an event, so that the database can leave out nearly all events that do not
 * pass: the JSON of each event that passes has one of the texts of each list. Comparisons are of lower case, in ASCII only.
 * Pure.
 */
import { jsonText } from '../../base/values.ts'
import { type Attribute, type Condition, matchesMissing } from './log-filter.ts'

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
