/** Entries from the JSON of the HTTP API, and from the lines of an export, which have the same members. */
import { isPlainObject } from '../../base/values.ts'
import { FIRST_SETTINGS } from '../../sending/domains/fields.ts'
import {
  type Entry,
  type Kind,
  neededText,
  objectOf,
  type TemplateVersion,
  textOf,
  textsOf,
  Unreadable,
} from './entry.ts'

type Values = Record<string, unknown>

/** What is not asked of the new service: its own keys sign, and incoming mail is not encrypted. */
const NOT_MOVED = ['use_automatic_sender_security', 'encrypt_incoming_message']
/** Settings of a domain that the operation creating one takes, with the values that need not be given. */
const DOMAIN_SETTINGS = Object.entries(FIRST_SETTINGS).filter(([name]) => !NOT_MOVED.includes(name))
export const VERSIONS_MAX = 1_000
const TRACKING_FIELDS: Readonly<Record<string, readonly string[]>> = {
  open: ['active', 'place_at_the_top'],
  click: ['active'],
  unsubscribe: ['active', 'html_footer', 'text_footer'],
}

const scalarText = (value: unknown) => (typeof value === 'boolean' ? String(value) : textOf(value))

/**
 * @param extra what the listing does not have: the answer to the read of the domain, and its tracking settings
 * @throws Unreadable
 */
export function domainEntry(value: unknown, extra: { selectors?: string[]; tracking?: unknown } = {}): Entry {
  const given = objectOf(value)
  const own = 'settings' in given ? objectOf(given['settings']) : given
  const settings: Record<string, string> = {}
  for (const [name, usual] of DOMAIN_SETTINGS) {
    const text = scalarText(own[name])
    if (text !== '' && text !== scalarText(usual)) settings[name] = text
  }
  return {
    kind: 'domain',
    name: neededText(given, 'name').toLowerCase(),
    settings,
    selectors: extra.selectors ?? textsOf(given['selectors']),
    tracking: trackingOf(extra.tracking ?? given['tracking']),
  }
}

/** Only what is on: a new domain has everything off. */
function trackingOf(value: unknown): Record<string, Record<string, string>> {
  const tracking: Record<string, Record<string, string>> = {}
  const given = value === undefined || value === null ? {} : objectOf(value)
  for (const [name, fields] of Object.entries(TRACKING_FIELDS)) {
    const part = given[name] === undefined ? {} : objectOf(given[name])
    const active = part['htmlonly'] === true ? 'htmlonly' : scalarText(part['active'])
    if (!['true', 'yes', 'htmlonly'].includes(active)) continue
    const kept = fields.map((field) => [field, field === 'active' ? active : scalarText(part[field])])
    tracking[name] = Object.fromEntries(kept.filter(([, text]) => text !== ''))
  }
  return tracking
}

/** The selectors in the DKIM records of a domain. */
export function selectorsOf(records: unknown): string[] {
  if (!Array.isArray(records)) return []
  return records.flatMap((record: { name?: unknown }) => {
    const found = /^([^.]+)\._domainkey\./.exec(textOf(record?.name))
    return found ? [found[1] as string] : []
  })
}

/** @throws Unreadable */
export function webhookEntry(value: unknown): Entry {
  const given = objectOf(value)
  const types = textsOf(given['event_types'])
  if (types.length === 0) throw new Unreadable('has no event types')
  const { domain } = given
  return {
    kind: 'webhook',
    domain: typeof domain === 'string' && domain !== '' ? domain.toLowerCase() : null,
    url: neededText(given, 'url'),
    event_types: types,
    description: textOf(given['description']),
  }
}

/** One entry per URL: `{type: {urls: [...]}}` as the API lists them. @throws Unreadable */
export function webhooksByUrl(domain: string, value: unknown): Entry[] {
  const types = new Map<string, string[]>()
  for (const [type, one] of Object.entries(objectOf(value))) {
    const given = one === null ? {} : objectOf(one)
    const urls = [...textsOf(given['urls']), ...textsOf([given['url']])]
    for (const url of new Set(urls)) types.set(url, [...(types.get(url) ?? []), type])
  }
  return [...types].map(([url, event_types]) => webhookEntry({ domain, url, event_types }))
}

/** @throws Unreadable */
export function templateEntry(value: unknown): Entry {
  const given = objectOf(value)
  const { domain, versions = [] } = given
  if (!Array.isArray(versions)) throw new Unreadable('has no list of versions')
  if (versions.length > VERSIONS_MAX) throw new Unreadable(`has more than ${VERSIONS_MAX} versions`)
  return {
    kind: 'template',
    domain: typeof domain === 'string' && domain !== '' ? domain.toLowerCase() : null,
    name: neededText(given, 'name'),
    description: textOf(given['description']),
    versions: versions.map(versionOf),
  }
}

/** @throws Unreadable */
export function versionOf(value: unknown): TemplateVersion {
  const given = objectOf(value)
  const { headers = {}, sample } = given
  const texts = Object.entries(objectOf(headers)).filter(
    ([, text]) => typeof text === 'string' && text !== '',
  )
  return {
    tag: neededText(given, 'tag'),
    template: textOf(given['template']),
    mjml: textOf(given['mjml']),
    comment: textOf(given['comment']),
    active: given['active'] === true,
    headers: Object.fromEntries(texts) as Record<string, string>,
    ...(isPlainObject(sample) && { sample }),
  }
}

/** @throws Unreadable */
export function listEntry(value: unknown): Entry {
  const given = objectOf(value)
  return {
    kind: 'list',
    address: neededText(given, 'address'),
    name: textOf(given['name']),
    description: textOf(given['description']),
    access_level: textOf(given['access_level']) || 'readonly',
    reply_preference: textOf(given['reply_preference']) || 'list',
  }
}

/** @throws Unreadable */
export function memberEntry(value: unknown): Entry {
  const given = objectOf(value)
  const vars = given['vars'] === undefined || given['vars'] === null ? {} : objectOf(given['vars'])
  return {
    kind: 'member',
    list: neededText(given, 'list'),
    address: neededText(given, 'address'),
    name: textOf(given['name']),
    vars,
    subscribed: given['subscribed'] !== false,
  }
}

/** @throws Unreadable */
function suppressionEntry(kind: 'bounce' | 'complaint' | 'unsubscribe' | 'allowlist', value: unknown): Entry {
  const given = objectOf(value)
  return {
    kind,
    domain: neededText(given, 'domain').toLowerCase(),
    record: 'record' in given ? objectOf(given['record']) : recordOf(kind, given),
  }
}

/** The record of a listing as the operation takes it that adds many. */
export function recordOf(kind: 'bounce' | 'complaint' | 'unsubscribe' | 'allowlist', item: Values): Values {
  const at = item['created_at'] ?? item['createdAt']
  const when = at === undefined ? {} : { created_at: at }
  switch (kind) {
    case 'bounce':
      return { address: item['address'], code: item['code'], error: item['error'], ...when }
    case 'complaint':
      return { address: item['address'], ...when }
    case 'unsubscribe':
      return { address: item['address'], tags: item['tags'], ...when }
    case 'allowlist': {
      const target = item['type'] === 'domain' ? 'domain' : 'address'
      return { [target]: item['value'], reason: item['reason'], ...when }
    }
  }
}

/** @throws Unreadable */
export function routeEntry(value: unknown): Entry {
  const given = objectOf(value)
  return {
    kind: 'route',
    priority: Number(given['priority'] ?? 0),
    description: textOf(given['description']),
    expression: neededText(given, 'expression'),
    actions: textsOf(given['actions']),
  }
}

/** One line of an export. @throws Unreadable */
export function entryOf(kind: Kind, value: unknown): Entry {
  switch (kind) {
    case 'domain':
      return domainEntry(value)
    case 'webhook':
      return webhookEntry(value)
    case 'template':
      return templateEntry(value)
    case 'list':
      return listEntry(value)
    case 'member':
      return memberEntry(value)
    case 'route':
      return routeEntry(value)
    default:
      return suppressionEntry(kind, value)
  }
}
