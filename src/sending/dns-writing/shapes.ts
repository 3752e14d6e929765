/** DNS providers and DNS changes as the API shows and takes them (dns-writing.md). */
import {
  flag,
  list,
  named,
  nullable,
  type Of,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { TSIG_ALGORITHMS } from '../../protocols/dns/tsig.ts'
import { WRITTEN_PURPOSES } from './plan.ts'

export const PROVIDER_KINDS = ['rfc2136', 'cloudflare', 'route53', 'desec', 'hetzner'] as const
export type ProviderKind = (typeof PROVIDER_KINDS)[number]

export const PROVIDER_NAME = text('Name', {
  example: 'main',
  only: { pattern: '^[a-z0-9][a-z0-9._-]{0,31}$' },
})
const KIND = oneOf('What takes the records; rfc2136: a name server with dynamic updates', PROVIDER_KINDS)
const SETTINGS = {
  server: text('Of rfc2136: the name server, host or host:port', {
    example: 'ns1.example.com',
    only: { minLength: 1, maxLength: 260 },
  }),
  key_name: text('Of rfc2136: name of the TSIG key', {
    example: 'sendwright',
    only: { minLength: 1, maxLength: 253 },
  }),
  algorithm: oneOf('Of rfc2136: algorithm of the TSIG key', TSIG_ALGORITHMS),
  access_key_id: text('Of route53: id of the access key', { only: { pattern: '^[A-Za-z0-9]{8,128}$' } }),
  api_url: text('Another address of the interface, https', { only: { maxLength: 2048, format: 'uri' } }),
}

export type ProviderView = Of<typeof PROVIDER>
export const PROVIDER = named('DnsProvider', 'Where records of domains can be written; without its secret', {
  name: PROVIDER_NAME,
  kind: KIND,
  server: nullable(SETTINGS.server),
  key_name: nullable(SETTINGS.key_name),
  algorithm: nullable(SETTINGS.algorithm),
  access_key_id: nullable(SETTINGS.access_key_id),
  api_url: nullable(SETTINGS.api_url),
  created_at: rfc3339('When it was made'),
  updated_at: rfc3339('When it was changed last'),
})
export const PROVIDERS = object('DNS providers of the account', { items: list('By name', PROVIDER) })

export type GivenProvider = Of<typeof PROVIDER_BODY>
export const PROVIDER_BODY = object('A DNS provider; absent members have their defaults', {
  kind: KIND,
  secret: optional(
    text(
      'API token, secret access key, or secret of the TSIG key in base64; absent: that which is stored, while it goes to the same place',
      { only: { minLength: 1, maxLength: 4096 } },
    ),
  ),
  server: optional(SETTINGS.server),
  key_name: optional(SETTINGS.key_name),
  algorithm: optional(
    oneOf('Of rfc2136: algorithm of the TSIG key', TSIG_ALGORITHMS, { default: 'hmac-sha256' }),
  ),
  access_key_id: optional(SETTINGS.access_key_id),
  api_url: optional(SETTINGS.api_url),
})

const PURPOSE = oneOf('What the record is for', WRITTEN_PURPOSES)
const DRY_RUN = optional(flag('Only say what would be written', { default: false }))

export const APPLY_BODY = object('What to write', {
  provider: optional(
    text('Name of a DNS provider; absent: the one whose zone is nearest to the domain', {
      only: { maxLength: 32 },
    }),
  ),
  replace: optional(
    list('Purposes whose records of others are replaced; without that they are left', PURPOSE, {
      only: { maxItems: WRITTEN_PURPOSES.length },
    }),
  ),
  dry_run: DRY_RUN,
  digest: optional(
    text('Digest of what was shown: anything else is not written', { only: { pattern: '^[0-9a-f]{32}$' } }),
  ),
})
export const UNDO_BODY = object('How to take it back', { dry_run: DRY_RUN })

const VALUE = text('A value; of MX with its priority, of TXT with its strings joined')
export const CHANGE = named('DnsChange', 'What was written for a domain, or would be', {
  id: nullable(text('Identifier; null: nothing was written')),
  domain: text('Domain', { example: 'example.com' }),
  provider: text('Name of the DNS provider', { example: 'main' }),
  undoes: nullable(text('Identifier of the change that this one took back; null: it wrote the records')),
  state: oneOf(
    'planned: shown only; unchanged: there is nothing to write; writing: begun, and perhaps broken off; failed: some of it may have been written',
    ['planned', 'unchanged', 'writing', 'done', 'failed', 'undone'],
  ),
  digest: text('Names exactly these changes'),
  entries: list(
    'By record',
    object('A record', {
      purpose: PURPOSE,
      name: text('Name of the record'),
      type: oneOf('Type', ['A', 'AAAA', 'CNAME', 'MX', 'TXT']),
      action: oneOf('left: not written, for the reason given', [
        'add',
        'change',
        'remove',
        'unchanged',
        'left',
      ]),
      add: list('Values that come', VALUE),
      remove: list('Values that go', VALUE),
      reason: text('Why it is left; else empty'),
      written: nullable(flag('Whether it stands at the provider; null: not known, or not yet')),
    }),
  ),
  error: nullable(text('Why it failed; null: it did not')),
  created_at: nullable(rfc3339('When it was begun; null: nothing was written')),
})
export type ChangeView = Of<typeof CHANGE>
export const CHANGES = object('Changes of a domain', { items: list('Newest first', CHANGE) })

export const LINK = object('A link to the DNS provider of a domain', {
  provider: nullable(text('As it calls itself; null: none that takes part in Domain Connect')),
  url: nullable(text('Where the owner of the zone agrees to the records; null: there is none')),
  reason: text('Why there is none; else empty'),
})
