/** How the four lists differ; what they have in common is in the other files. */
import { formatUtc } from '../base/dates.ts'
import type { ParamDoc } from '../http/operation.ts'
import type { Area } from '../http/rights.ts'
import type { SuppressionKind } from '../store/schema.ts'
import type { StoredRecord } from './store.ts'

export interface KindTraits {
  kind: SuppressionKind
  /** The list's name in texts and in the API description. */
  noun: string
  /** Other names in the path. */
  aliases: readonly string[]
  area: Area
  /** Fields of an added record, also the members of a JSON record. */
  fields: readonly ParamDoc[]
  /** Columns of a CSV file; the header needs one of `needed`. */
  columns: { all: readonly string[]; needed: readonly string[] }
  view(record: StoredRecord): Record<string, unknown>
  /** Response to adding one. */
  added(address: string): Record<string, unknown>
  addedMany(count: number): string
  /** Response to removing one. */
  removed(address: string): Record<string, unknown>
  cleared: string
  unknown: string
}

const ADDRESS: ParamDoc = {
  name: 'address',
  type: 'string',
  description: 'Mail address; compared without regard to case',
  required: true,
}
const CREATED_AT: ParamDoc = {
  name: 'created_at',
  type: 'date',
  description: 'RFC 2822 date or Unix seconds; default now',
}
const time = (record: StoredRecord) => formatUtc(new Date(record.createdAt))

const BOUNCES: KindTraits = {
  kind: 'bounces',
  noun: 'bounces',
  aliases: [],
  area: 'suppressions',
  fields: [
    ADDRESS,
    { name: 'code', type: 'string', description: 'SMTP code', default: '550' },
    { name: 'error', type: 'string', description: 'Error text; the first 4096 characters are kept' },
    CREATED_AT,
  ],
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

const COMPLAINTS: KindTraits = {
  kind: 'complaints',
  noun: 'complaints',
  aliases: [],
  area: 'suppressions',
  fields: [ADDRESS, CREATED_AT],
  columns: { all: ['address', 'created_at'], needed: ['address'] },
  view: (record) => ({ address: record.address, count: 1, created_at: time(record) }),
  added: (address) => ({ message: 'Address has been added to the complaints table', address }),
  addedMany: (count) => `${count} complaint addresses have been added to the complaints table`,
  removed: (address) => ({ message: 'Spam complaint has been removed', address }),
  cleared: 'Complaint addresses for this domain have been removed',
  unknown: 'No spam complaints found for this address',
}

const UNSUBSCRIBES: KindTraits = {
  kind: 'unsubscribes',
  noun: 'unsubscribes',
  aliases: [],
  area: 'suppressions',
  fields: [
    ADDRESS,
    {
      name: 'tag',
      type: 'string',
      repeated: true,
      description: 'Tag of the mail not wanted; * is all mail',
      default: '*',
    },
    { name: 'tags', type: 'string', repeated: true, description: 'The same as tag' },
    CREATED_AT,
  ],
  columns: { all: ['address', 'tags', 'tag', 'created_at'], needed: ['address'] },
  view: (record) => ({ address: record.address, tags: record.tags, created_at: time(record) }),
  added: (address) => ({ message: 'Address has been added to the unsubscribes table', address }),
  addedMany: (count) => `${count} addresses have been added to the unsubscribes table`,
  removed: (address) => ({ message: 'Unsubscribe event has been removed', address }),
  cleared: 'Unsubscribe addresses for this domain have been removed',
  unknown: 'Address not found in unsubscribers table',
}

const allowType = (value: string) => (value.includes('@') ? 'address' : 'domain')

const ALLOWLIST: KindTraits = {
  kind: 'whitelists',
  noun: 'allowlist entries',
  aliases: ['allowlists'],
  area: 'allowlist',
  fields: [
    { ...ADDRESS, required: false, description: 'Mail address; this or domain is needed' },
    { name: 'domain', type: 'string', description: 'Domain name, without its subdomains' },
    { name: 'reason', type: 'string', description: 'Why it is there' },
  ],
  columns: { all: ['address', 'domain', 'reason'], needed: ['address', 'domain'] },
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

export const KINDS: readonly KindTraits[] = [BOUNCES, COMPLAINTS, UNSUBSCRIBES, ALLOWLIST]

const BY_KIND = Object.fromEntries(KINDS.map((traits) => [traits.kind, traits])) as Record<
  SuppressionKind,
  KindTraits
>

export const traitsOf = (kind: SuppressionKind): KindTraits => BY_KIND[kind]
