/** Answers of the operations on domains (domains.md). */
import {
  flag,
  gmtDate,
  integer,
  list,
  message,
  named,
  nullable,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'
import { FIELD_SHAPES } from './fields.ts'

const DISABLEMENT = object('Why nothing can be sent; only if the domain is disabled', {
  code: text('Why, as a word'),
  note: text('Why, by whoever disabled it'),
  reason: text('Why, in words'),
  permanently: flag('It does not end by itself'),
  until: optional(gmtDate('When it ends; absent: not known')),
})

export const DOMAIN = named('Domain', 'A sending domain', {
  ...FIELD_SHAPES,
  created_at: gmtDate('When it was added'),
  is_disabled: flag('Whether the state is disabled'),
  smtp_login: text('Login for SMTP submission: postmaster at the domain', {
    example: 'postmaster@example.com',
  }),
  tracking_host: text('Host of tracking links: web_prefix and name', { example: 'email.example.com' }),
  subaccount_id: optional(text('The account of the domain; only if that is a subaccount')),
  disabled: optional(DISABLEMENT),
  pod: optional(text('The pod that has it; `default` where there are none', { example: 'default' })),
})

const VALID = oneOf('Whether DNS had the record at the last check', ['valid', 'unknown'])

export const DNS_RECORD = named('DnsRecord', 'A DNS record to publish, and what DNS had at the last check', {
  name: optional(text('Name; not of MX, whose name is the domain')),
  record_type: oneOf('Type', ['TXT', 'CNAME', 'A', 'AAAA', 'MX']),
  priority: optional(text('Only of MX', { example: '10' })),
  value: text('Value to publish'),
  cached: list('What DNS had at the last check, even if it is wrong', text('A value')),
  valid: VALID,
  is_active: flag('Of a DKIM record: its key signs. All others: true'),
})

const RECORDS = {
  receiving_dns_records: list('MX records', DNS_RECORD),
  sending_dns_records: list('Records for DKIM, SPF and the tracking host', DNS_RECORD),
}

export const DOMAIN_CHANGED = object('The domain and its records', {
  ...message('Domain has been updated').fields,
  domain: DOMAIN,
  ...RECORDS,
})

export const DOMAIN_READ = object('The domain and its records', {
  domain: DOMAIN,
  receiving_dns_records: optional(RECORDS.receiving_dns_records),
  sending_dns_records: optional(RECORDS.sending_dns_records),
})

export const DOMAIN_LIST = object('A page of domains', {
  total_count: integer('All that match, not only those of this page'),
  items: list('The domains of this page', DOMAIN),
})

const PRIORITY = optional(integer('Only of MX', { example: 10 }))
const LOOK = {
  asked: text('The query; empty before the first check', { example: 'TXT mg.example.com' }),
  server: text('Address and port of the server that answered; empty: none was asked'),
  found: list('What DNS had', text('A value')),
  valid: VALID,
  sentence: text('The question, the answer, and what to change'),
  checked_at: optional(rfc3339('When; absent before the first check')),
}
const NAME = text('Name of the record')
const VALUE = text('Value to publish')

export const DOMAIN_DNS = named('DomainDns', 'What DNS had at the last check, and what to change', {
  records: list(
    'Every record of the domain',
    named('ExplainedRecord', 'A record with the last look at it', {
      record: object('What to publish', {
        purpose: oneOf('What for', [
          ...(['dkim', 'spf', 'tracking', 'mx', 'return-path-spf', 'return-path-mx'] as const),
          ...(['mta-sts', 'mta-sts-host'] as const),
        ]),
        name: NAME,
        type: DNS_RECORD.fields.record_type,
        value: text('Value to publish; for SPF an existing record is kept and extended'),
        priority: PRIORITY,
        is_active: DNS_RECORD.fields.is_active,
      }),
      ...LOOK,
    }),
  ),
  dmarc: object('Advice about DMARC; the state does not depend on it', {
    record: optional(
      object('What to publish; absent before the first check', {
        purpose: oneOf('What for', ['dmarc']),
        name: NAME,
        type: oneOf('Type', ['TXT']),
        value: VALUE,
      }),
    ),
    ...LOOK,
  }),
  service: list(
    "Faults of the operator's own records, which those of the domain refer to",
    named('OwnRecordFault', 'What is wrong with a record of the service', {
      records: list(
        'What to publish; the first is enough',
        object('A record', {
          purpose: oneOf('What for', ['host', 'mx-target', 'tracking-target', 'spf-include']),
          name: NAME,
          type: oneOf('Type', ['A', 'AAAA', 'CNAME', 'TXT']),
          value: nullable(text('Null: not known here')),
        }),
      ),
      state: oneOf('missing: there is none that can be used; elsewhere: it leads to other addresses', [
        'missing',
        'elsewhere',
        'unanswered',
      ]),
      found: LOOK.found,
      sentence: text('What is wrong and which record to make'),
    }),
  ),
})

const CONNECTION = {
  require_tls: FIELD_SHAPES.require_tls,
  skip_verification: FIELD_SHAPES.skip_verification,
}

export const DOMAIN_CONNECTION = named('DomainConnection', 'TLS settings, in both public forms', {
  ...CONNECTION,
  connection: object('The same', CONNECTION),
})

export const CONNECTION_CHANGED = object('The settings as they are now', {
  ...message('Domain connection settings have been updated, may take 10 minutes to fully propagate').fields,
  ...CONNECTION,
  'require-tls': CONNECTION.require_tls,
  'skip-verification': CONNECTION.skip_verification,
})

const SELECTOR = text('Selector', { example: 'k1' })
const AUTHORITY = text('The domain in whose name the key signs', { example: 'example.com' })

export const DOMAIN_KEY = named('DomainKey', 'A DKIM key without its private part', {
  signing_domain: AUTHORITY,
  selector: SELECTOR,
  dns_record: object('Its record', { ...DNS_RECORD.fields, name: text('Name') }),
})

/** Lists write `valid` in upper case (domain-keys.md, types). */
export const LISTED_KEY = named('ListedDomainKey', 'A DKIM key in a list', {
  ...DOMAIN_KEY.fields,
  dns_record: object('Its record', {
    ...DOMAIN_KEY.fields.dns_record.fields,
    valid: oneOf('Whether DNS had the record at the last check', ['VALID', 'UNKNOWN']),
  }),
})

export const KEY_PAGE = pageOf('DomainKeyPage', 'A page, by authority and selector', LISTED_KEY, {
  total_count: integer('All that match, not only those of this page'),
})
export const AUTHORITY_KEYS = object('All its keys', { items: list('By selector', LISTED_KEY) })

export const KEY_SWITCHED = object('Done', {
  ...message('domain key activated').fields,
  authority: AUTHORITY,
  selector: SELECTOR,
  active: flag('Whether it signs'),
})

export const AUTHORITY_CHANGED = object('Whether it changed, and the records', {
  ...message('Domain DKIM authority has been changed').fields,
  changed: flag('False: it was so before, or there is no registered parent'),
  sending_dns_records: RECORDS.sending_dns_records,
})

const SECURITY_STATE = oneOf('wait_verify: on, but its records are not found yet', [
  'disabled',
  'wait_verify',
  'enabled',
])
const INTERVAL = text('Days or hours between rotations', { example: '120d' })

export const KEY_ROTATION = named('KeyRotation', 'How far automatic sender security is', {
  state: SECURITY_STATE,
  active_selector: nullable(text('Selector that signs; null: none yet', { example: 'pdk1' })),
  rotation_enabled: flag('Keys are rotated from time to time'),
  rotation_interval: INTERVAL,
  next_at: nullable(rfc3339('When the next rotation is due; null: none is planned, or one has just begun')),
  in_progress: nullable(
    object('A rotation in progress; null: none', {
      phase: oneOf('publishing: a new key is in DNS; retiring: it signs, and the former one is still there', [
        'publishing',
        'retiring',
      ]),
      selector: text('Selector of the new key while publishing, else of the former one'),
      until: rfc3339(
        'When the phase ends: the new key is looked up, or the former one is no longer published',
      ),
    }),
  ),
})

export const ROTATION_DOMAIN = named('RotationDomain', 'Automatic sender security of a domain', {
  id: text('Identifier of the domain'),
  account_id: text('Account of the domain'),
  sid: text('Label of the domain in the DKIM zone'),
  name: text('Name of the domain', { example: 'example.com' }),
  state: SECURITY_STATE,
  active_selector: optional(text('Selector that signs; absent: none yet')),
  rotation_enabled: oneOf('Keys are rotated from time to time; as text', ['true', 'false']),
  rotation_interval: INTERVAL,
  records: list(
    'CNAME records to publish',
    object('A record', {
      name: NAME,
      type: oneOf('Type', ['CNAME']),
      identifier: oneOf('What for', ['DKIM']),
      value: VALUE,
      comment: text('What it is', { example: 'Customer DKIM CNAME Record' }),
    }),
  ),
})
