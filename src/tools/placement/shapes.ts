/** Answers of the operations on inbox placement (validation.md section 6). */
import {
  anyJson,
  either,
  flag,
  integer,
  list,
  map,
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
import { pageOf } from '../../platform/http/request/paging.ts'

const ACCOUNT_ID = text('The account; empty in a shared result')
const SEED_LIST_ID = text('Identifier of the list')
const RESULT_ID = text('Identifier of the result')
const PROVIDER = text('Domain of the receiver', { example: 'gmail.com' })
const STATE = oneOf('Whether the copy was seen', ['pending', 'delivered', 'missing'])
const CREATED_AT = rfc3339('When it was created')
const UPDATED_AT = rfc3339('When it was last changed')
const TOTAL = { total: integer('Number of items on all pages') }

export const SEED_PROVIDER = named('SeedProvider', 'A provider that has seeds', {
  domain: PROVIDER,
  display_name: text('Shown name'),
  region: text('Region; may be empty'),
  created_at: rfc3339('When the file of seeds last changed'),
  updated_at: rfc3339('The same as created_at'),
})

export type Counts = Of<typeof COUNTS>
const COUNTS = named('PlacementCounts', 'How many copies are where', {
  delivered: integer('Copies that arrived'),
  missing: integer('Copies that did not arrive in time'),
  pending: integer('Copies that are waited for'),
  spam: integer('Copies among spam'),
  inbox: integer('Copies that arrived elsewhere than among spam'),
  total: integer('All copies'),
  provider: text('The provider, or all', { example: 'all' }),
  categories: map('By category; primary, promotions and updates are always present', integer('Copies'), {
    example: { primary: 2, promotions: 0, updates: 0 },
  }),
})

export type SeedView = Of<typeof SEED>
const SEED = named('Seed', 'A test mailbox at a receiver', {
  AccountID: ACCOUNT_ID,
  id: text('Its address in lower case'),
  email: text('Its address', { example: 'seed@gmail.com' }),
  provider: PROVIDER,
  created_at: rfc3339('When the file of seeds last changed'),
  updated_at: rfc3339('The same as created_at'),
  max_email_count_hit_at: rfc3339('The same as created_at'),
  attributes: object('Further properties', { region: text('Region; may be empty') }),
  last_sent_to_at: rfc3339('Newest test of the list; without one the same as created_at'),
  last_delivered_at: rfc3339('The same as last_sent_to_at'),
  sync_state: optional(STATE),
})

const LIST_DATES = {
  Id: SEED_LIST_ID,
  kid: SEED_LIST_ID,
  created_at: CREATED_AT,
  updated_at: UPDATED_AT,
  last_result_at: rfc3339('Newest test; without one the same as created_at'),
}

export type SeedListView = Of<typeof SEED_LIST>
export const SEED_LIST = named('SeedList', 'A list of test mailboxes', {
  ...LIST_DATES,
  ID: SEED_LIST_ID,
  AccountID: ACCOUNT_ID,
  name: text('Shown name'),
  target_email: text('Address that names the list; it receives no mail'),
  sending_domains: list('Domains that send to the list', text('Domain')),
  seed_filter: text('Addresses of seeds, separated by commas; empty: all'),
  provider_filter: text('Providers of seeds, separated by commas; empty: all'),
  mailing_list: text('Always empty'),
  has_results: flag('A test was made with it'),
  Seeds: nullable(list('Null: there are none, or results in pages do not show them', SEED)),
  tags: object('Further properties', { remote_id: optional(text('Id in another system, if one was given')) }),
  delivery_stats: object('Copies of the newest test', { all: COUNTS }),
  SeedQuality: integer('Number of seeds'),
  is_auto_generated: flag('The list of all seeds, which the service makes'),
})
export const SEED_LISTS = pageOf('SeedListPage', 'A page', SEED_LIST, TOTAL)

export type GoneList = Of<typeof GONE_LIST>
const GONE_LIST = object('A list that was deleted, or is not shown', {
  ...LIST_DATES,
  Seeds: nullable(list('Always null', SEED)),
})

const CHECK = (name: string) =>
  text(`Verdict of the receiver on ${name}; empty: none was found`, { example: 'pass' })

export type SeedResult = Of<typeof SEED_RESULT>
const SEED_RESULT = object('The copy of one seed', {
  email: text('Address of the seed; made up in a shared result'),
  provider: PROVIDER,
  destination: text('inbox, spam, or the name of another folder; empty: not seen yet', { example: 'inbox' }),
  state: STATE,
  originating_ip: text('First address from outside in the trace fields; empty: unknown'),
  tags: list('Always empty', text('Tag')),
  dkim: CHECK('DKIM'),
  spf: CHECK('SPF'),
  dmarc: CHECK('DMARC'),
  headers: list(
    'Fields that tell how the receiver judged the copy; empty in pages and shared results',
    object('Header field', { key: text('Its name'), value: text('Up to 500 characters of its value') }),
  ),
  extensions: object('Further properties', {
    category: text('primary, promotions, updates, social or forums; may be empty', { example: 'primary' }),
    seconds: optional(
      integer('Time from the test to the arrival; only once it arrived', { unit: 'seconds' }),
    ),
    problem: optional(text('Why the mailbox could not be read at the last look; absent: it could')),
  }),
})

export type ResultView = Of<typeof RESULT>
const RESULT = named('PlacementResult', 'Where the copies of a test were seen', {
  Id: RESULT_ID,
  rid: RESULT_ID,
  result_id: RESULT_ID,
  AccountID: ACCOUNT_ID,
  KeyBoxID: SEED_LIST_ID,
  keybox_email: text('Address of the list; empty: it was deleted'),
  subject: text('Subject of the message'),
  sender: text('Address of the author'),
  seedlist_name: text('Name of the list; empty: it was deleted'),
  status: oneOf('How far the test is', ['processing', 'completed']),
  created_at: CREATED_AT,
  updated_at: UPDATED_AT,
  attributes: object('Always empty', {}),
  campaign_id: text('Always empty'),
  sharing_enabled: flag('The result can be seen without a key'),
  sharing_id: text('Identifier of the link'),
  sharing_expires_at: rfc3339('When the link ends'),
  Box: either('The list', SEED_LIST, GONE_LIST),
  seed_results: list('By seed', SEED_RESULT),
  spamassassin: optional(
    object("The scorer's view of the message; absent without a scorer, a score or seeds", {
      is_spam: flag('It takes the message for spam'),
      score: number('Its score'),
      required: optional(number('Score of spam; absent where the scorer does not name it')),
      rules: list('Always empty', text('Rule')),
    }),
  ),
  delivery_stats: map('By provider', COUNTS),
})
export const RESULTS = pageOf('PlacementResultPage', 'A page', RESULT, TOTAL)
export const RESULT_ANSWER = object('The result', { result: RESULT })
/** The member is spelled so. */
export const RESULT_DELETED = object('Deleted', {
  Message: text('What was done', { example: 'result deleted' }),
})

export const TEST_STARTED = object('Where the result will be', {
  result_id: RESULT_ID,
  links: object('Addresses', { results: text('Address of the result', { only: { format: 'uri' } }) }),
})

export type Sharing = Of<typeof SHARING>
const SHARING = named('PlacementSharing', 'Whether a result can be seen without a key', {
  result_id: RESULT_ID,
  expires_at: rfc3339('When the link ends'),
  enabled: flag('Shared or not'),
  url_id: text('Identifier of the link'),
  url: text('The link', { only: { format: 'uri' } }),
  api_url: text('The same as url', { only: { format: 'uri' } }),
})
export const SHARING_ANSWER = object('The link', { sharing: SHARING })

export const ATTRIBUTE = object('Values of an attribute, or the names of all', {
  items: object('The values', {
    attribute: text('Name of the attribute; attributes: the values are names', { example: 'sender' }),
    values: list('Distinct values', text('Value')),
  }),
})
export const FILTERS_ANSWER = object('Parameters', {
  supported_filters: object('Filters', {
    filters: list(
      'All of them',
      object('A filter', { parameter: text('Name of the parameter'), description: text('Meaning') }),
    ),
  }),
})

export const TEST_MESSAGE = object('The message', {
  from: text('Author, in a domain of the account'),
  subject: text('At most 998 characters'),
  html: optional(text('Body; needed without template_name')),
  template_name: optional(text('In place of html')),
  variables: optional(map('Variables of the template', anyJson('Value'))),
  seed_list: optional(text('Id or address; default: all seeds')),
  provider_filter: optional(list('Only seeds of these providers', PROVIDER)),
})
