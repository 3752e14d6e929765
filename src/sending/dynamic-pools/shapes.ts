/** Answers of the operations on dynamic pools (dynamic-pools.md section 1). */
import {
  either,
  flag,
  integer,
  list,
  message,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  type Shape,
  text,
} from '../../base/shape.ts'
import { DONE } from '../ips/shapes.ts'
import { BANDS } from './bands.ts'

const BAND = oneOf('Band', BANDS)
const IPS = (description: string) => list(description, text('Address', { example: '192.0.2.1' }))
const ACCOUNT_ID = text('Id of the account of the domain')
const DOMAIN_ID = text('Id of the domain')
const DOMAIN_NAME = text('Name of the domain', { example: 'example.com' })

const SETS = {
  new_senders: IPS('Addresses of the band dynamic_new'),
  good_reputation: IPS('Addresses of the band dynamic_good'),
  poor_reputation: IPS('Addresses of the band dynamic_poor'),
}
export const POOL_OVERVIEW = object('Pools, all three or none; those of the parent for a subaccount', {
  ...SETS,
  pools: list(
    'The same by pool',
    named('DynamicPool', 'Addresses of a band', {
      account_id: text('Id of the account that has it'),
      id: text('Id'),
      name: BAND,
      enabled: flag('Always true'),
      ips: IPS('Addresses'),
    }),
  ),
})
export const POOLS_SET = object('What they are now', { message: DONE.fields.message, ...SETS })

export const ASSIGNABLE = object('Domains by name, at most 1000', {
  items: list(
    'Domains',
    named('AssignableDomain', 'A domain that is not enrolled', {
      account_id: ACCOUNT_ID,
      id: DOMAIN_ID,
      name: DOMAIN_NAME,
    }),
  ),
})
export const ENROLLING = message('started', 'Begun in the background, or in progress already')

const RATES = {
  bounce_rate: nullable(number('Bounced of processed messages, a fraction; null: nothing was processed')),
  complaint_rate: nullable(
    number('Complaints of delivered messages, a fraction; null: nothing was delivered'),
  ),
}

const judged = (value: Shape<number>) => object('A figure with its band', { value, band: BAND })
export const HEALTH_CHECK = named('DomainHealthCheck', 'Where the figures of a domain put it', {
  pool: BAND,
  results: object('Each figure alone; a rate without mail to divide by is 0', {
    bounce_rate: judged(number('Bounced of processed messages, a fraction')),
    complaint_rate: judged(number('Complaints of delivered messages, a fraction')),
    processed_count: judged(integer('Processed messages')),
  }),
})

const link = (which: string) =>
  optional(text(`Address of the ${which} page; absent: there is none`, { only: { format: 'uri' } }))
const listOf = <T>(description: string, items: Shape<T>) =>
  object(description, {
    items: list('The items of this page', items),
    total_items: integer('Items on all pages'),
    paging: named('DynamicPoolPaging', 'Links to pages', {
      Next: link('next'),
      Previous: link('previous'),
      First: link('first'),
      Last: link('last'),
    }),
  })

export const ENROLLED_DOMAIN = named('EnrolledDomain', 'A domain that sends from a dynamic pool', {
  id: DOMAIN_ID,
  account_id: ACCOUNT_ID,
  account_name: text('Name of the account'),
  name: DOMAIN_NAME,
  registered_at: rfc3339('When it was enrolled'),
  pool: BAND,
  override: flag('Whether it stays in the band whatever its checks say'),
  ...RATES,
  processed_count: integer('Processed messages of the last check'),
})
export const ENROLLED_DOMAINS = listOf('A page of domains', ENROLLED_DOMAIN)

const BAND_OR_NONE = (description: string) => oneOf(description, [...BANDS, ''])
export const HISTORY_RECORD = named('DynamicPoolHistoryRecord', 'A change of the band of a domain', {
  id: text('Id'),
  owning_account_id: text('Id of the account that has the pools'),
  account_id: ACCOUNT_ID,
  account_name: text('Name of that account'),
  domain_id: DOMAIN_ID,
  domain_name: DOMAIN_NAME,
  new_band: BAND_OR_NONE('Band after it; empty: the domain has left'),
  prev_band: BAND_OR_NONE('Band before it; empty: the domain was not enrolled'),
  reason: text('Why', { example: 'bounce_rate in poor threshold' }),
  ...RATES,
  processed_count: nullable(integer('Processed messages; null: not known')),
  initiated_by: text('Id of a user or key, or system for a check'),
  timestamp: rfc3339('When'),
})
export const HISTORY = listOf('A page, newest first', HISTORY_RECORD)
export const DOMAIN_HISTORY = either(
  'A page, newest first; where there is a record, the newest one at top level as well',
  HISTORY,
  object('The same with the newest record', { ...HISTORY_RECORD.fields, ...HISTORY.fields }),
)
