/** Answers of the operations on classified bounces (bounce-classification.md). */
import {
  either,
  flag,
  integer,
  list,
  mailDate,
  map,
  named,
  nothingNull,
  nullable,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  type Shape,
  text,
} from '../../base/shape.ts'
import { COMPARATORS } from '../../watching/metrics/filter.ts'
import { DIMENSIONS, METRICS, type Metric } from './metrics-query.ts'
import { CATEGORIES } from './rules.ts'

const BOUNCED = object('Final failures', { total: integer('Their number in the last 7 days') })
const DOMAIN = object('Domain', { name: text('Its name', { example: 'example.com' }) })
const RULE = text('Rule that matched', { example: 'spamhaus' })
const ENTITY = text('Who refused: a receiver, a filter or a list', { example: 'gmail' })
const CATEGORY = oneOf('Category of the rule', CATEGORIES)
const EXPLANATION = text('What the failure means, and what to do')
const SAMPLE = optional(text('The newest reply that matched, with addresses masked, or one that would match'))
const SHORT_EXPLANATION = text('The category in words')

const GROUP = named('BounceGroup', 'Final failures that have the values of the groups in common', {
  subaccount: optional(object('With group subaccount.id', { id: text('Identifier of the account') })),
  domain: optional(DOMAIN),
  'rule-id': optional(RULE),
  'short-explanation': optional(SHORT_EXPLANATION),
  'entity-id': optional(ENTITY),
  bounced: BOUNCED,
})

export const BOUNCE_GROUPS = object('Most first', {
  items: nullable(list('Each has the members of the asked groups; null: none', GROUP)),
  _duration: text('Time of the query', { example: '12ms' }),
})

export const DOMAIN_BOUNCES = object('Most first', {
  items: list('The domains of this page', object('A domain', { domain: DOMAIN, bounced: BOUNCED })),
  total: integer('All domains with failures'),
  req: object('Always empty', {}),
})

export const ENTITY_BOUNCES = object('Most first', {
  items: list(
    'Who refused',
    named('EntityBounces', 'Final failures by one receiver, filter or list', {
      'entity-id': ENTITY,
      'entity-name': text('Its name', { example: 'Gmail' }),
      bounced: BOUNCED,
    }),
  ),
})

export const RULE_BOUNCES = object('Most first', {
  items: list(
    'The rules that matched',
    named('RuleBounces', 'Final failures by one rule', {
      'rule-id': RULE,
      category: CATEGORY,
      severity: oneOf('Only final failures are counted', ['PERMANENT']),
      'sample-text': SAMPLE,
      explanation: EXPLANATION,
      bounced: BOUNCED,
    }),
  ),
})

export const ENTITIES = map('Names by entity id', object('An entity', { name: text('Its name') }))

const BOUNCE_RULE = named('BounceRule', 'A rule by which failures are classified', {
  entity_id: ENTITY,
  class: CATEGORY,
  'sample-text': SAMPLE,
  explanation: EXPLANATION,
  'short-explanation': SHORT_EXPLANATION,
})
export const RULES = map('Rules by id', BOUNCE_RULE)
export const RULE_GROUP = object('The rule', {
  id: text('Its id, as group-id of the metrics has it'),
  ...BOUNCE_RULE.fields,
  'entity-name': text('Who refused'),
})

const asked = (name: string) => nullable(text(`Null unless ${name} is asked`))
const figure = (name: Metric): Shape<number | null> =>
  nullable(
    name.endsWith('rate')
      ? number('Whole percent of failures and deliveries; null: not known', { unit: 'percent' })
      : integer(name === 'delivered_smtp_count' ? 'Null: not counted' : 'Number'),
  )

export const BOUNCE_METRICS = named(
  'BounceMetrics',
  'Failures that have the values of the dimensions in common',
  {
    'account.id': asked('account.name'),
    'account.name': asked('account.name'),
    'entity-name': asked('entity-name'),
    'recipient-provider': nothingNull('Not yet served'),
    'recipient-domain': asked('recipient-domain'),
    'domain.name': asked('domain.name'),
    'envelope.i-ip-pool-id': nothingNull('Not yet served'),
    'envelope.i-ip-pool-name': asked('envelope.i-ip-pool-name'),
    'envelope.sending-ip': asked('envelope.sending-ip'),
    timestamp: nullable(mailDate('Start of the interval; null unless timestamp is asked')),
    tags: nullable(text('Tags of the message, joined by comma and blank; null unless tags are asked')),
    tag: asked('tag'),
    criticality: asked('criticality'),
    severity: asked('severity'),
    category: asked('category'),
    'group-id': nullable(text('The rule; null unless group-id is asked')),
    'sample-text': asked('group-id'),
    explanation: asked('group-id'),
    metrics: named(
      'BounceFigures',
      'Bounces are permanent failures, delays temporary ones',
      Object.fromEntries(METRICS.map((name) => [name, figure(name)])) as Record<Metric, Shape<number | null>>,
    ),
  },
)

const RESOLUTION = oneOf('Length of an interval', ['day', 'hour'])
export const METRICS_PAGE = object('Groups that have failures', {
  start: mailDate('Start of the first interval'),
  end: mailDate('Start of the last interval, which counts in full'),
  resolution: RESOLUTION,
  duration: optional(text('As asked; absent: it was not')),
  dimensions: list('As asked', oneOf('A dimension', DIMENSIONS)),
  pagination: object('The page', {
    sort: text('As asked; empty: it was not', { example: 'timestamp:asc' }),
    skip: integer('Items left out at the beginning'),
    limit: integer('Size of the page'),
    total: integer('Items of all pages'),
  }),
  items: list('The items of this page', BOUNCE_METRICS),
})

export const UNKNOWN_REPLIES = object('Most frequent first', {
  days: integer('Days that are counted'),
  rules: text('Version of the rules'),
  items: list(
    'Replies that no rule knows',
    named('UnknownReply', 'A reply that no rule knows', {
      text: text('Reply, with # for words that have digits'),
      count: integer('How often'),
      sample: text('One as it was, with addresses masked'),
      last_at: rfc3339('When it was last received'),
    }),
  ),
  partial: optional(flag('True: there were more than are counted; else absent')),
})

export const METRICS_BODY = object('What to count', {
  start: optional(text('RFC 2822; default 7 days before end')),
  end: optional(text('RFC 2822; default now')),
  resolution: optional(oneOf('Length of an interval', ['day', 'hour'], { default: 'day' })),
  duration: optional(text('Replaces start: 48h, 60m (minutes), 30s')),
  dimensions: optional(list('What to group by; default one item', oneOf('A dimension', DIMENSIONS))),
  metrics: optional(list('Default all', oneOf('A metric', METRICS))),
  filter: optional(
    object('What to count', {
      AND: optional(
        list(
          'All of them must be true',
          object('A condition', {
            attribute: text('A dimension, not timestamp'),
            comparator: oneOf('How', COMPARATORS),
            values: list('Any of them', either('A value', text(''), object('', { value: text('A value') }))),
          }),
        ),
      ),
    }),
  ),
  include_subaccounts: optional(flag('Those of subaccounts too', { default: false })),
  pagination: optional(
    object('The page', {
      sort: optional(text('`<column>:<asc|desc>`')),
      skip: optional(integer('Items to leave out', { default: 0 })),
      limit: optional(integer('1 to 50', { default: 10 })),
    }),
  ),
})
