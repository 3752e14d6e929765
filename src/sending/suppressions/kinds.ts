/** How the four lists differ; what they have in common is in the other files. */

import type { Of, Shape } from '../../base/shape.ts'
import { formatUtc } from '../../base/time/dates.ts'
import { dateParam, type Inputs, textParam, textsParam } from '../../platform/http/request/inputs.ts'
import type { RightsArea } from '../../platform/http/rights/rights.ts'
import type { SuppressionKind } from '../../platform/store/schema.ts'
import {
  ADDRESS_DONE,
  ALLOWED,
  ALLOWED_ADDED,
  ALLOWED_REMOVED,
  BOUNCE,
  COMPLAINT,
  UNSUBSCRIBE,
} from './shapes.ts'

export interface StoredRecord {
  address: string
  code: string
  detail: string
  tags: readonly string[]
  /** Unix milliseconds. */
  createdAt: number
}

/** `V`, `A`, `R`: a record, the answer to adding one, the answer to removing one. */
export interface KindTraits<V = unknown, A = unknown, R = unknown> {
  kind: SuppressionKind
  /** Component name of a page in the API description. */
  pageName: string
  record: Shape<V>
  addedShape: Shape<A>
  removedShape: Shape<R>
  /** The list's name in texts and in the API description. */
  noun: string
  /** Other names in the path. */
  aliases: readonly string[]
  area: RightsArea
  /** Fields of an added record, also the members of a JSON record. */
  fields: Inputs
  /** Columns of a CSV file; the header needs one of `needed`. */
  columns: { all: readonly string[]; needed: readonly string[] }
  view(record: StoredRecord): V
  /** Response to adding one. */
  added(address: string): A
  addedMany(count: number): string
  /** Response to removing one. */
  removed(address: string): R
  cleared: string
  unknown: string
}

const ADDRESS = textParam('Mail address; compared without regard to case', { required: true })
const SAME = 'The same as created_at'
/** When it was added, in the spellings that clients send. */
const CREATED = {
  created_at: dateParam('RFC 2822 date or Unix seconds; default now'),
  createdAt: dateParam(SAME),
  createdat: dateParam(SAME),
}
const time = (record: StoredRecord) => formatUtc(new Date(record.createdAt))

const BOUNCES: KindTraits<Of<typeof BOUNCE>, Of<typeof ADDRESS_DONE>, Of<typeof ADDRESS_DONE>> = {
  kind: 'bounces',
  pageName: 'BouncePage',
  record: BOUNCE,
  addedShape: ADDRESS_DONE,
  removedShape: ADDRESS_DONE,
  noun: 'bounces',
  aliases: [],
  area: 'suppressions',
  fields: {
    address: ADDRESS,
    code: textParam('SMTP code', { default: '550' }),
    error: textParam('Error text; the first 4096 characters are kept'),
    ...CREATED,
  },
  columns: { all: ['address', 'code', 'error', 'created_at'], needed: ['address'] },
  view: (record) => ({
    address: record.address,
    code: record.code,
    error: record.detail,
    created_at: time(record),
  }),
  added: (address) => ({ message: 'Address has been added to the bounces table', address }),
  addedMany: (count) => `${count} addresses have been added to the bounces table`,
  removed: (address) => ({ message: 'Bounced address has been removed', address }),
  cleared: 'Bounced addresses for this domain have been removed',
  unknown: 'Address not found in bounces table',
}

const COMPLAINTS: KindTraits<Of<typeof COMPLAINT>, Of<typeof ADDRESS_DONE>, Of<typeof ADDRESS_DONE>> = {
  kind: 'complaints',
  pageName: 'ComplaintPage',
  record: COMPLAINT,
  addedShape: ADDRESS_DONE,
  removedShape: ADDRESS_DONE,
  noun: 'complaints',
  aliases: [],
  area: 'suppressions',
  fields: { address: ADDRESS, ...CREATED },
  columns: { all: ['address', 'created_at'], needed: ['address'] },
  view: (record) => ({ address: record.address, count: 1, created_at: time(record) }),
  added: (address) => ({ message: 'Address has been added to the complaints table', address }),
  addedMany: (count) => `${count} complaint addresses have been added to the complaints table`,
  removed: (address) => ({ message: 'Spam complaint has been removed', address }),
  cleared: 'Complaint addresses for this domain have been removed',
  unknown: 'No spam complaints found for this address',
}

const UNSUBSCRIBES: KindTraits<Of<typeof UNSUBSCRIBE>, Of<typeof ADDRESS_DONE>, Of<typeof ADDRESS_DONE>> = {
  kind: 'unsubscribes',
  pageName: 'UnsubscribePage',
  record: UNSUBSCRIBE,
  addedShape: ADDRESS_DONE,
  removedShape: ADDRESS_DONE,
  noun: 'unsubscribes',
  aliases: [],
  area: 'suppressions',
  fields: {
    address: ADDRESS,
    tag: textsParam('Tag of the mail not wanted; default *, all mail'),
    tags: textsParam('The same as tag'),
    ...CREATED,
  },
  columns: { all: ['address', 'tags', 'tag', 'created_at'], needed: ['address'] },
  view: (record) => ({ address: record.address, tags: record.tags, created_at: time(record) }),
  added: (address) => ({ message: 'Address has been added to the unsubscribes table', address }),
  addedMany: (count) => `${count} addresses have been added to the unsubscribes table`,
  removed: (address) => ({ message: 'Unsubscribe event has been removed', address }),
  cleared: 'Unsubscribe addresses for this domain have been removed',
  unknown: 'Address not found in unsubscribers table',
}

const allowType = (value: string) => (value.includes('@') ? 'address' : 'domain')

const ALLOWLIST: KindTraits<Of<typeof ALLOWED>, Of<typeof ALLOWED_ADDED>, Of<typeof ALLOWED_REMOVED>> = {
  kind: 'whitelists',
  pageName: 'AllowlistPage',
  record: ALLOWED,
  addedShape: ALLOWED_ADDED,
  removedShape: ALLOWED_REMOVED,
  noun: 'allowlist entries',
  aliases: ['allowlists'],
  area: 'allowlist',
  fields: {
    address: textParam('Mail address; this or domain is needed'),
    domain: textParam('Domain name, without its subdomains'),
    reason: textParam('Why it is there'),
    ...CREATED,
  },
  columns: { all: ['address', 'domain', 'reason', 'created_at'], needed: ['address', 'domain'] },
  view: (record) => ({
    type: allowType(record.address),
    value: record.address,
    reason: record.detail,
    createdAt: time(record),
  }),
  added: (value) => ({
    message: 'Address/Domain has been added to the allowlists table',
    type: allowType(value),
    value,
  }),
  addedMany: (count) => `${count} addresses/domains have been added to the allowlists table`,
  removed: (value) => ({ message: 'Allowlist address/domain has been removed', value }),
  cleared: 'Allowlist addresses/domains for this domain have been removed',
  unknown: 'Address/Domain not found in allowlist table',
}

/** A record as a row of a CSV file that an import takes; `columns` are those of its kind. */
export function csvRow(columns: readonly string[], record: StoredRecord): string[] {
  const isDomain = columns.includes('domain') && allowType(record.address) === 'domain'
  const values: Record<string, string> = {
    [isDomain ? 'domain' : 'address']: record.address,
    code: record.code,
    error: record.detail,
    reason: record.detail,
    tags: record.tags.join(),
    created_at: time(record),
  }
  return columns.map((name) => values[name] ?? '')
}

// biome-ignore lint/suspicious/noExplicitAny: each kind has answers of its own
export const KINDS: readonly KindTraits<any, any, any>[] = [BOUNCES, COMPLAINTS, UNSUBSCRIBES, ALLOWLIST]

const BY_KIND = Object.fromEntries(KINDS.map((traits) => [traits.kind, traits])) as Record<
  SuppressionKind,
  KindTraits
>

export const traitsOf = (kind: SuppressionKind): KindTraits => BY_KIND[kind]
