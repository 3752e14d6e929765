/** Sources of reputation and what they say, as the API shows and takes them (reputation.md). */
import {
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { PAGING } from '../../platform/http/request/paging.ts'

/* Sources */

export const GOOGLE_GRANTS = ['jwt_bearer', 'refresh_token'] as const
const URL_BOUNDS = { only: { maxLength: 2048, format: 'uri' } } as const

const GOOGLE_SETTINGS = {
  grant: oneOf('jwt_bearer: a service account; refresh_token: an account of a person', GOOGLE_GRANTS),
  client_id: text('Address of the service account (`client_email`), or the OAuth client', {
    example: 'mail@my-project.iam.gserviceaccount.com',
    only: { minLength: 1, maxLength: 512 },
  }),
  subject: nullable(
    text('User whom the service account acts for; null: for itself', {
      only: { minLength: 1, maxLength: 320 },
    }),
  ),
  token_url: text('Where access tokens come from, https', URL_BOUNDS),
  api_url: text('Where the API is, https', URL_BOUNDS),
}
const SNDS_SETTINGS = { api_url: text('The folder of data.aspx and ipStatus.aspx, https', URL_BOUNDS) }

const STATE = {
  created_at: rfc3339('When it was stored'),
  updated_at: rfc3339('When it was stored last'),
  last_read_at: nullable(rfc3339('When everything was read; null: not yet')),
  next_read_at: rfc3339('When it is read next'),
  failures: integer('Reads in a row that failed'),
  error: nullable(text('Why the last read failed; null: it did not')),
  error_at: nullable(rfc3339('When that was')),
  failing_since: nullable(rfc3339('Since when reads have failed; null: the last one did not')),
}
export const GOOGLE_SOURCE = named('GoogleReputationSource', 'How Gmail Postmaster Tools are read', {
  ...GOOGLE_SETTINGS,
  has_client_secret: flag('A private key or client secret is stored'),
  has_refresh_token: flag('A refresh token is stored'),
  ...STATE,
  domains: list(
    'Domains of this service that Postmaster Tools list',
    object('A domain', {
      name: text('Name'),
      read_through: nullable(
        text('Newest day that was asked for; null: none yet', { example: '2026-11-26' }),
      ),
      error: nullable(text('Why it cannot be read; null: it can')),
    }),
  ),
})
export const SNDS_SOURCE = named('SndsReputationSource', 'How Microsoft SNDS is read', {
  ...SNDS_SETTINGS,
  ...STATE,
  read_through: nullable(text('Newest day that was read; null: none yet', { example: '2026-11-26' })),
})

export const GOOGLE_URLS = {
  token_url: 'https://oauth2.googleapis.com/token',
  api_url: 'https://gmailpostmastertools.googleapis.com',
}
export const SNDS_URL = 'https://sendersupport.olc.protection.outlook.com/snds'

export type GoogleBody = Of<typeof GOOGLE_BODY>
export const GOOGLE_BODY = object('Credentials; absent members have their defaults', {
  grant: GOOGLE_SETTINGS.grant,
  client_id: GOOGLE_SETTINGS.client_id,
  subject: optional(GOOGLE_SETTINGS.subject),
  client_secret: optional(
    text('Private key (PEM) of the service account, or the client secret; absent: that which is stored', {
      only: { minLength: 1, maxLength: 8_192 },
    }),
  ),
  refresh_token: optional(
    text('Refresh token; absent: that which is stored', { only: { minLength: 1, maxLength: 8_192 } }),
  ),
  token_url: optional(
    text('Where access tokens come from', { ...URL_BOUNDS, default: GOOGLE_URLS.token_url }),
  ),
  api_url: optional(text('Where the API is', { ...URL_BOUNDS, default: GOOGLE_URLS.api_url })),
})
export type SndsBody = Of<typeof SNDS_BODY>
export const SNDS_BODY = object('Credentials; absent members have their defaults', {
  key: optional(
    text('Key of the link that SNDS shows; absent: that which is stored', {
      only: { minLength: 1, maxLength: 256 },
    }),
  ),
  api_url: optional(text('The link without the file and the key', { ...URL_BOUNDS, default: SNDS_URL })),
})
export const SOURCE_TEST = named('ReputationSourceTest', 'What a source has answered now', {
  ok: flag('It could be read'),
  result: text('What it has answered, or why it could not be read'),
})

/* Gmail Postmaster Tools */

const CONFIGURED = flag('The operator has stored credentials; false: nothing is read')
const TOTAL = integer('Items without limit and offset')
const FOUND = { total: TOTAL, configured: CONFIGURED }
const ADDRESS = text('Address')
const DOMAIN = text('Domain')
const REPUTATION = integer('Always 0, unknown: version 2 of the API has no reputation')
const RATIOS = {
  user_reported_spam_ratio: number('Mail that users call spam, from 0 to 1; 0 also where Gmail names none'),
  spf_success_ratio: number('Mail that passed SPF'),
  dkim_success_ratio: number('Mail that passed DKIM'),
  dmarc_success_ratio: number('Mail that passed DMARC'),
  inbound_encryption_ratio: number('Mail that came by TLS'),
  delivery_error_ratio: number('Mail that was refused or deferred'),
}
export type DeliveryError = Of<typeof DELIVERY_ERROR>
const DELIVERY_ERROR = object('A reason', {
  error_class: text('`PERMANENT_ERROR` or `TEMPORARY_ERROR`'),
  error_type: text("Gmail's reason", { example: 'LOW_DOMAIN_REPUTATION' }),
  error_ratio: number('Mail that had it, from 0 to 1'),
})
const REQUIREMENT = object('A requirement', {
  requirement: text("Gmail's name of it", { example: 'DMARC_POLICY' }),
  status: text('`COMPLIANT` or `NEEDS_WORK`'),
})
export const COMPLIANCE = list("Gmail's requirements, by the last read", REQUIREMENT)
export type GptDomain = Of<typeof GPT_DOMAIN>
export const GPT_DOMAIN = named('GptDomain', 'What Gmail says of a domain on a day', {
  account_id: text('Account of the domain'),
  name: text('Domain'),
  ...RATIOS,
  delivery_errors: list('By reason', DELIVERY_ERROR),
  reputation: REPUTATION,
  date: rfc3339('Begin of the day'),
  ip_counts: list(
    'Always empty, as for `reputation`',
    object('Addresses', { reputation: integer('Reputation'), total: integer('Number') }),
  ),
  feedback_loops: list(
    'By the identifier of Feedback-ID',
    object('A feedback loop', { id: text('Identifier'), spam_ratio: number('From 0 to 1') }),
  ),
})
export const GPT_DOMAINS = object('Days of domains, newest first', {
  domain: text('The domain; empty: several'),
  data: list('Days', GPT_DOMAIN),
  total: TOTAL,
  compliance: optional(COMPLIANCE),
  configured: CONFIGURED,
})
export const GPT_DOMAIN_LIST = object('Domains', {
  data: list('By name', object('A domain', { name: DOMAIN, date: rfc3339('Its newest day') })),
  ...FOUND,
})
export const GPT_LOOPS = object('Days of feedback loops, newest first', {
  data: list(
    'Days',
    object('A feedback loop on a day', {
      name: DOMAIN,
      id: text('Identifier'),
      ratio: number('Mail that users call spam, from 0 to 1'),
      date: rfc3339('Begin of the day'),
    }),
  ),
  ...FOUND,
})
const GPT_ADDRESS = object('An address on a day', {
  address: ADDRESS,
  domain_name: DOMAIN,
  reputation: REPUTATION,
  date: rfc3339('Begin of the day'),
})
const NO_ADDRESSES = list('Always empty: version 2 of the API names no addresses', GPT_ADDRESS)
export const GPT_ADDRESSES = object('Days of addresses', {
  address: text('The address; empty: all'),
  data: NO_ADDRESSES,
  ...FOUND,
})
export const GPT_DOMAIN_ADDRESSES = object('Days of addresses', {
  domain: DOMAIN,
  data: NO_ADDRESSES,
  ...FOUND,
})
export const GPT_ADDRESS_LIST = object('Addresses', {
  data: list('Always empty', object('An address', { address: ADDRESS, date: rfc3339('Its newest day') })),
  ...FOUND,
})
export const GPT_SUMMARY = object('Means of all days of all domains', {
  domains: integer('Domains with days'),
  days: integer('Days of all of them'),
  ...RATIOS,
  configured: CONFIGURED,
})
export const GPT_SUMMARY_DOMAINS = object('Means of the days of each domain', {
  data: list(
    'By name',
    object('A domain', {
      name: DOMAIN,
      days: integer('Days'),
      date: rfc3339('The newest'),
      ...RATIOS,
      reputation: REPUTATION,
      compliance: COMPLIANCE,
    }),
  ),
  ...FOUND,
})
export const GPT_SUMMARY_ADDRESSES = object('Addresses', {
  data: NO_ADDRESSES,
  ...FOUND,
})
export const GPT_SUMMARY_ERRORS = object('Means of delivery errors', {
  data: list('The most frequent first', DELIVERY_ERROR),
  ...FOUND,
})

/* Microsoft SNDS */

export const SNDS_DAY = named('SndsAddress', 'What Microsoft says of an address on a day', {
  ip_address: ADDRESS,
  date: rfc3339('Begin of the day'),
  recipients: integer('Recipients at Outlook.com'),
  filter_result: text('`GREEN`, `YELLOW` or `RED`: less than 10 %, up to 90 %, more are spam'),
  complaint_rate: text('As Microsoft writes it', { example: '< 0.1%' }),
  trap_hits: integer('Messages to spam traps'),
  trap_message_period: text('From when to when; empty: none'),
  trap_percentage: number('Of the recipients, from 0 to 100'),
  is_blocked: flag('The address is blocked now'),
  block_text: text('Why; empty: it is not'),
})
export const SNDS_SUMMARY = object('Addresses', {
  summary: list('Addresses, or days of one', SNDS_DAY),
  ...FOUND,
})

/* Spam traps */

const HITS = {
  pristine: integer('Always 0: Microsoft does not tell kinds of traps apart'),
  recycled: integer('As before'),
  typo: integer('As before'),
  harvested: integer('As before'),
  total: integer('Hits'),
}
const GROUP = {
  domain: optional(text('Grouped by domain; always empty: it is unknown')),
  subject: optional(text('Grouped by subject; always empty')),
  ip: optional(text('Grouped by address')),
  from: optional(text('Grouped by From; always empty')),
}
export const TRAPS = object('Hits of spam traps', {
  items: list('By day', object('A day', { date: text('Day', { example: '2026-11-26' }), ...GROUP, ...HITS })),
  paging: PAGING,
})
export const DIMENSIONS = ['timestamp', 'domain_name', 'ip', 'sender', 'from', 'tags', 'subaccount'] as const
export const TRAPS_2 = object('Hits of spam traps', {
  items: list(
    'By the values of the dimension',
    object('A value', {
      dimension: text('Day, address, id of the account, or empty where it is unknown'),
      ...HITS,
    }),
  ),
  paging: PAGING,
})
