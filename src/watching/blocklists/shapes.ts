/** Answers of the operations on blocklists (monitoring.md). */
import {
  constant,
  flag,
  integer,
  list,
  map,
  message,
  named,
  nothing,
  nullable,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
  unixSeconds,
} from '../../base/shape.ts'
import { PAGING, pageOf } from '../../platform/http/request/paging.ts'

const DOMAIN = text('Name of the domain', { example: 'example.com' })
const IP = text('Address', { example: '192.0.2.1' })
const ZONE = text('Zone of the list, without a key', { example: 'bl.spamcop.net' })
const NAME = text('Name of the list', { example: 'SpamCop' })
const ACCOUNT_ID = text('Id of the account')
const COMMENTS = list('Where an entry is looked up and removed', text('Address of a page'))
const STATE = oneOf('`unknown`: no list has answered usably yet', ['healthy', 'listed', 'unknown'])

export const MONITORED_DOMAIN = named('MonitoredDomain', 'A domain that is looked up in blocklists', {
  acid: ACCOUNT_ID,
  created_at: unixSeconds('When it was added'),
  name: DOMAIN,
  services: map('By service, whether it is on', flag('Whether it is on')),
  txt_record: text('The TXT record of the domain that verifies it; empty for a sending domain'),
  verified: object('Whether it is looked up', {
    status: oneOf(
      '`sending`: a sending domain of the account; `inbox_ready`: its TXT record was found; `pending`: it is being looked for, or was not asked for yet; `failed`: it was not found within 24 hours',
      ['sending', 'inbox_ready', 'pending', 'failed'],
    ),
    verified_at: unixSeconds('When it was verified; 0: it is not'),
  }),
})
export const MONITORED_DOMAINS = pageOf('MonitoredDomains', 'A page, by name', MONITORED_DOMAIN)
export const ADDED_DOMAIN = object('It is monitored once it is verified', {
  domain: MONITORED_DOMAIN,
  message: text('What was done', { example: 'The domain has been added' }),
})
export const REMOVED_DOMAIN = message('example.com has been removed')
export const PENDING_DOMAIN = message('Domain pending verification')

export const LISTED_ADDRESS = named('ListedAddress', 'A blocklist that has an address', {
  list: ZONE,
  name: NAME,
  first_seen: rfc3339('When it was found there first'),
  last_seen: rfc3339('When it was found there last'),
  delist_requested_at: constant('Nobody asks for removal here', '0001-01-01T00:00:00Z'),
  comments: COMMENTS,
})
export const MONITORED_IP = named('MonitoredIp', 'An address that is looked up in blocklists', {
  ip: IP,
  ip_pool: text('As the account says; may be empty'),
  description: text('As the account says; may be empty'),
  state: STATE,
  listed: list('Lists that have it', LISTED_ADDRESS),
})
export const MONITORED_IPS = object('Addresses that the account may send from', {
  items: list('Addresses, in the order of the text', MONITORED_IP),
})
const WORDS = {
  ip_pool: optional(text('A name of the pool; default empty')),
  description: optional(text('Default empty')),
}
export const NEW_IP = object('An address', { ip: IP, ...WORDS })
export const IP_WORDS = object('What is said of it', WORDS)
export const REMOVED_IP = nothing('It is not monitored any more')

export const LISTED_DOMAIN = named('ListedDomain', 'A blocklist that has a domain', {
  list: ZONE,
  name: NAME,
  first_seen: rfc3339('When it was found there first'),
  last_seen: rfc3339('When it was found there last'),
  comments: COMMENTS,
})
export const DOMAIN_HEALTH = named('DomainHealth', 'A domain with the lists that have it', {
  account_id: ACCOUNT_ID,
  domain: DOMAIN,
  updated_at: rfc3339('When it was looked up last; before that, when it was added'),
  state: STATE,
  listed: list('Lists that have it', LISTED_DOMAIN),
})
export const DOMAIN_HEALTHS = object('Domains that are looked up', {
  domains: list('By name', DOMAIN_HEALTH),
})
export const DOMAIN_LISTS = object('Lists that have the domain', {
  blocklists: list('Lists', LISTED_DOMAIN),
})
export const DOMAIN_EVENTS = object('A page of the history, newest first', {
  events: list(
    'Changes of this page',
    named('BlocklistEvent', 'A domain was listed or delisted', {
      timestamp: rfc3339('When it was found'),
      event: oneOf('What happened', ['listed', 'delisted']),
      domain: DOMAIN,
      account_id: ACCOUNT_ID,
      list: ZONE,
      name: NAME,
    }),
  ),
  paging: PAGING,
})

const SINCE = rfc3339('Since when')
export const WATCHED_LISTS = object('The lists that are watched', {
  items: list(
    'Lists, as in the settings',
    named('WatchedList', 'A blocklist that is watched', {
      list: ZONE,
      name: NAME,
      page: text('Where an entry is looked up and removed; may be empty'),
      tests: list(
        'What its test entries said',
        object('One kind of entries', {
          kind: oneOf('Kind', ['ipv4', 'ipv6', 'domain']),
          usable: flag('Whether its answers count'),
          fault: text('Why they do not; empty: they do'),
          checked_at: rfc3339('When'),
        }),
      ),
      used_by: list(
        'Destinations that refuse mail by it',
        object('A destination', {
          site: text('As in the names of lanes'),
          provider: text('Name of the provider'),
          seen_at: nullable(rfc3339('When a refusal named the list last; null: it is known to')),
        }),
      ),
      looked_up: integer('Addresses or domains that are looked up in it'),
      listed: list(
        'Addresses or domains that it has',
        object('An entry', {
          subject: text('Address or registrable domain'),
          code: text('The code of the list', { example: '127.0.0.2' }),
          since: SINCE,
          last_seen: rfc3339('When it was found there last'),
        }),
      ),
    }),
  ),
})
