/** Answers of the operations on tags (tags-stats.md sections 1 and 2). */
import {
  flag,
  integer,
  list,
  mailDate,
  message,
  named,
  object,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'
import { METRIC_VALUES } from '../metrics/shapes.ts'

export const UPDATED = message('Tag updated')
export const DELETED = message('Tag deleted')

const NAME = text('The tag as it was first spelled', { example: 'welcome' })
const DESCRIPTION = text('Its description; may be empty')
const COUNT = integer('How many there are')
const LIMIT = integer('How many there may be; 0: no limit')

export const TAG = named('Tag', 'A tag of a domain', {
  tag: NAME,
  description: DESCRIPTION,
  'first-seen': optional(rfc3339('When a message first carried it; absent: none has')),
  'last-seen': optional(rfc3339('When a message last carried it, at most an hour late; absent: none has')),
})
export const TAG_PAGE = pageOf('TagPage', 'A page, by name', TAG)
export const TAG_LIMIT = object('Limit and count', {
  id: text('Name of the domain', { example: 'example.com' }),
  limit: LIMIT,
  count: COUNT,
})

export const ACCOUNT_TAG = named('AccountTag', 'A tag of an account, over all its domains', {
  account_id: text('Id of the account'),
  parent_account_id: text('Id of its parent; empty for an account that is no subaccount'),
  account_name: text('Name of the account'),
  tag: NAME,
  description: DESCRIPTION,
  first_seen: optional(mailDate('When a message first carried it; absent: none has')),
  last_seen: optional(mailDate('When a message last carried it, at most an hour late; absent: none has')),
  metrics: METRIC_VALUES,
})
export const ACCOUNT_TAG_PAGE = named('AccountTagPage', 'A page of tags', {
  items: list('Tags', ACCOUNT_TAG),
  pagination: object('The page', {
    sort: text('As asked, or by default', { example: 'lastseen:desc' }),
    skip: integer('Tags that were left out'),
    limit: integer('Page size'),
    total: optional(integer('Tags on all pages; present if include_total asks for it')),
  }),
})
export const ACCOUNT_TAG_LIMIT = object('Limit and count', {
  limit: LIMIT,
  count: COUNT,
  limit_reached: flag('Whether new tags are dropped'),
})

export const ACCOUNT_TAG_QUERY = object('What to list; every member may be left out', {
  tag: optional(text('A tag, or how tags begin; in any letter case')),
  include_subaccounts: optional(flag('Those of subaccounts as well', { default: false })),
  include_metrics: optional(flag('Figures of the last 30 days', { default: false })),
  pagination: optional(
    object('The page', {
      sort: optional(text('lastseen, firstseen, tag or a metric', { default: 'lastseen:desc' })),
      skip: optional(integer('Tags to leave out, at most 100000', { default: 0, only: { minimum: 0 } })),
      limit: optional(
        integer('Page size; with figures at most 20', { default: 10, only: { minimum: 1, maximum: 1000 } }),
      ),
      include_total: optional(flag('Count the tags on all pages', { default: false })),
    }),
  ),
})
