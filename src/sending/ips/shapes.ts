/** Answers of the operations on addresses, pools, warm-ups and blocks (ips-pools.md). */
import {
  described,
  flag,
  integer,
  list,
  map,
  message,
  named,
  nullable,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'

const IP = text('Address', { example: '192.0.2.1' })
const IPS = list('Addresses', IP)
const POOL_ID = text('Id of a pool')
const TOTAL = integer('Number of items in all')

export const DONE = message('success')
export const STARTED = object('Begun in the background', {
  message: text('What was done', { example: 'started' }),
  reference_id: text('Names the work in the log'),
})

const IP_FIELDS = {
  ip: IP,
  rdns: text('The confirmed reverse name; empty without one', { example: 'mx1.example.com' }),
  dedicated: flag('Whether one account alone has it; a shared one serves all'),
}
export const ADDRESS = named('IpAddress', 'An address that mail is sent from', IP_FIELDS)
const ON_WARMUP = flag('Whether it is on warm-up')
export const ADDRESS_LIST = object('Dedicated addresses of the account and the shared ones', {
  items: IPS,
  details: list(
    'The same addresses',
    object('Address', {
      ip: IP,
      is_on_warmup: optional(described('Only present while it is on warm-up', ON_WARMUP)),
    }),
  ),
  assignable_to_pools: list('Dedicated ones of the account in no pool of either kind', IP),
  total_count: integer('Number of items'),
})
export const ADDRESS_DETAILS = object('Addresses with their settings', {
  items: list(
    'Addresses',
    named('IpAddressDetails', 'An address with its settings', {
      ...IP_FIELDS,
      enabled: flag('Whether mail may leave from it'),
      is_on_warmup: ON_WARMUP,
      pool_id: optional(text('Id of the pool that it is in; absent: in none')),
      domains_count: integer('Domains of the account that send from it'),
    }),
  ),
  total_count: integer('Number of items'),
})
export const ADDRESS_DOMAINS = object('Domains that send from the address, by id', {
  items: list(
    'Domains of this page',
    named('IpDomain', 'A domain with its addresses', {
      domain: text('Name of the domain', { example: 'example.com' }),
      ips: list('Addresses that it sends from', IP),
    }),
  ),
  total_count: integer('Domains that match, on all pages'),
})
export const AVAILABLE = object('What the account may have', {
  allowed: object('Numbers of addresses', {
    dedicated: integer('Spare ones that may be requested'),
    shared: integer('Shared ones that the account may use'),
  }),
})
export const DOMAIN_ADDRESSES = object('Addresses that the domain sends from', {
  items: IPS,
  total_count: TOTAL,
})

const PAGING = named('IpPaging', 'Links to pages', {
  first: text('Address of the first page', { only: { format: 'uri' } }),
  next: text('Address of the next page; the one after the last is empty', { only: { format: 'uri' } }),
})

export const POOL = named('IpPool', 'Dedicated addresses that domains are linked to', {
  pool_id: POOL_ID,
  name: text('Name'),
  description: text('Description; may be empty'),
  ips: list('Its addresses, by the time they were added', IP),
  is_linked: flag('Whether a domain is linked to it now'),
  is_inherited: flag('Whether it belongs to the parent, which lets this account use it'),
  linked_domains: optional(
    list('Names of linked domains, at most 1000; only where one pool is read', text('Name')),
  ),
  metadata: object('Further facts', {
    assignments: map(
      'By address',
      object('Address of the pool', { linked_at: rfc3339('When it was added') }),
    ),
  }),
})
export const POOL_LIST = object('Own pools by age, then an inherited one', {
  ip_pools: list('Pools', POOL),
  message: DONE.fields.message,
})
export const POOL_READ = object('The pool, twice', {
  ...POOL.fields,
  details: POOL,
  message: DONE.fields.message,
})
export const POOL_CREATED = object('Created', { message: DONE.fields.message, pool_id: POOL_ID })
export const POOL_DOMAINS = object('A page of linked domains, by id', {
  domains: list('Domains', named('IpPoolDomain', 'A domain', { id: text('Id'), name: text('Name') })),
  paging: PAGING,
})
export const ADDED_IPS = object('Addresses', {
  ips: list('Dedicated addresses in no pool; at most 1000', IP),
})
export const DELEGATION_LIST = object('Delegations, at most 10000', {
  items: list(
    'Delegations',
    named('IpPoolDelegation', 'A pool that a subaccount may use', {
      pool_id: POOL_ID,
      subaccount_id: text('Id of the subaccount'),
    }),
  ),
  total_count: TOTAL,
})

const LIMIT = integer('Most messages of the stage in 24 hours')
const SENT = text('Whole percent of the limit that was sent in the present 24 hours', { example: '42%' })
const THROTTLE = integer('Messages of this hour that were kept away from the address', { unit: 'percent' })
const STAGE = integer('Number of the stage, from 1')
const STAGE_START = rfc3339('When the stage began')
const START_VOLUME = integer('Messages sent from the address before the stage')
const HOURLY = integer('Most messages in an hour: a 24th of the limit, rounded up')

const WARMUP_FIELDS = {
  sent_within_stage: SENT,
  throttle: THROTTLE,
  stage_number: STAGE,
  stage_start_volume: START_VOLUME,
  stage_start_time: STAGE_START,
  stage_volume_limit: LIMIT,
}
export const WARMUP_ITEM = named('IpWarmupItem', 'An address on warm-up', { ip: IP, ...WARMUP_FIELDS })
export const WARMUP_PAGE = object('A page, by address', {
  items: list('Addresses on warm-up', WARMUP_ITEM),
  paging: PAGING,
})
export const WARMUP = named('IpWarmup', 'State of a warm-up; several values have an older and a newer name', {
  ...WARMUP_FIELDS,
  stage: described('The same as stage_number', STAGE),
  start_volume: described('The same as stage_start_volume', START_VOLUME),
  stage_limit: described('The same as stage_volume_limit', LIMIT),
  stage_started_at: described('The same as stage_start_time', STAGE_START),
  hourly_limit: HOURLY,
  hour_started_at: rfc3339('Beginning of the hour that `throttle` counts'),
  plan_started_at: rfc3339('When the warm-up began'),
  plan_last_updated_at: rfc3339('When a stage was last judged'),
  total_stages: integer('Stages of the plan'),
  stage_history: list(
    'Completed stages, the oldest first',
    named('IpWarmupStage', 'A completed stage', {
      first_updated_at: rfc3339('When it began'),
      completed_at: rfc3339('When it was completed'),
      limit: LIMIT,
    }),
  ),
})
export const WARMUP_READ = object('Its state', { details: WARMUP })

const PROGRESS_FIELDS = {
  stage_number: STAGE,
  stage_start_time: STAGE_START,
  stage_volume_limit: LIMIT,
  hourly_limit: HOURLY,
  sent_within_stage: SENT,
  throttle: THROTTLE,
}
export const WARMUP_PROGRESS = named('IpWarmupProgress', 'A warm-up in all, and by provider', {
  ip: IP,
  paused_at: nullable(rfc3339('Since when it is paused; null: it is not')),
  total_stages: integer('Stages of the plan'),
  ...PROGRESS_FIELDS,
  providers: list(
    'Providers that the address has sent to',
    named('IpWarmupProvider', 'The warm-up of an address with a provider', {
      provider: text('A site that the shaping names, or * for all others together', {
        example: 'google.com',
      }),
      ...PROGRESS_FIELDS,
      sent: integer('Messages sent to the provider since the warm-up began'),
    }),
  ),
})

export const BLOCK = named('IpBlock', 'A provider that refuses mail from an address', {
  site: text('The destination, as in the names of lanes'),
  provider: text('Name of the provider'),
  state: oneOf(
    '`closed` until the time of `until`; then `probing`: single messages find out; `listed`: a blocklist that the provider uses has it, and it is left while others of the set are open',
    ['closed', 'probing', 'listed'],
  ),
  reply: text('The reply that closed it, or the lists'),
  times: integer('Pauses in a row'),
  since: rfc3339('When it was closed first, or listed'),
  until: rfc3339('End of the pause; of a listing, unless the lists confirm it'),
})

export const INSTALLED_ADDRESS = named(
  'InstalledIpAddress',
  'An address of the installation, for the operator',
  {
    ip: IP,
    dedicated: IP_FIELDS.dedicated,
    account_id: nullable(text('Its account; null: shared, or not given to anybody')),
    enabled: flag('Whether it is switched on'),
    usable: flag(
      'Also named by the configuration of a process in the last 3 hours, and confirmed where that is required',
    ),
    configured_here: flag('Whether the configuration of this process names it'),
    local_ip: nullable(text('Address of the machine that NAT makes it of; null: none is configured here')),
    proxy: nullable(
      text('Proxy that connections leave through, without its login; null: none is configured here', {
        example: 'socks5://10.0.0.9:1080',
      }),
    ),
    pool_id: nullable(text('The pool that it is in')),
    is_on_warmup: ON_WARMUP,
    blocked_by: list('Providers that block it', BLOCK),
    check: object('Result of the hourly check', {
      checked_at: nullable(rfc3339('When; null: not yet')),
      bound: nullable(flag('Whether this machine has the address; null: not known, or behind a proxy')),
      dns_agrees: nullable(flag('Whether its reverse name leads back to it; null: not known')),
      rdns: IP_FIELDS.rdns,
      fault: text('What is wrong; empty: nothing'),
    }),
  },
)
export const INSTALLED_ADDRESSES = object('Addresses of the installation', {
  items: list('Addresses', INSTALLED_ADDRESS),
})
export const SHARED_SETTING = object('The setting', {
  account_id: text('Id of the account'),
  allowed: flag('Whether it may send from shared addresses'),
})
