/** Answers of the operations on alerts, the bodies that they take, and what notices post (alerts.md sections 1 and 2). */
import {
  component,
  either,
  flag,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { SIGNATURE } from '../webhooks/shapes.ts'

export const METRICS = [
  'hard_bounce_rate',
  'temporary_fail_rate',
  'delivered_rate',
  'complained_rate',
] as const
export const LIMIT_METRICS = ['email_preview_success_count', 'seed_test_count'] as const
export const COMPARATORS = ['=', '!=', '<', '<=', '>', '>='] as const
export const DIMENSIONS = ['domain', 'ip', 'ip_pool', 'recipient_provider', 'subaccount'] as const
export const CHANNELS = ['email', 'slack', 'webhook'] as const
export const FILTER_COMPARATORS = ['=', '!=', 'contains', 'not contains'] as const
export const EVENT_TYPES = [
  'send_alert',
  'validation_job',
  'validation_preview',
  'ip_listed',
  'ip_delisted',
  'domain_listed',
  'domain_delisted',
  'sender_stopped',
  'sender_released',
] as const

const NAME = text('Unique in the account', { only: { maxLength: 128 } })
const DESCRIPTION = text('Free text', { only: { maxLength: 1000 } })
const GROUP = text('Free text', { only: { maxLength: 128 } })
const METRIC = oneOf('What is judged', METRICS)
const COMPARATOR = oneOf('When it is true the alert triggers', COMPARATORS)
const LIMIT = text('Decimal from 0 to 1', { example: '0.05' })
const DIMENSION = oneOf('Each value of it is judged alone', DIMENSIONS)
const ALERT_CHANNELS = list('Where notices go', oneOf('Channel', CHANNELS), { default: ['email'] })
export const FILTER = named('AlertFilter', 'Mail that counts', {
  dimension: oneOf('What is compared', DIMENSIONS),
  comparator: oneOf('How, without letter case', FILTER_COMPARATORS),
  values: list('With any of these', text('Value'), { only: { minItems: 1, maxItems: 100 } }),
})
const FILTERS = list('All must be true', FILTER, { only: { maxItems: 20 } })
const PERIOD = text('Time that is judged, 1h to 30d', { default: '1h', only: { pattern: '^\\d{1,3}[hd]$' } })

const OWNER = {
  parent_account_id: optional(text('Parent of the subaccount; present for its alerts')),
  subaccount_id: optional(text('The subaccount; present for its alerts')),
}
const TIMES = { created_at: rfc3339('When it was made'), updated_at: rfc3339('When it last changed') }

export const ALERT = named('Alert', 'A threshold on a rate of sending', {
  id: text('UUID'),
  ...OWNER,
  account_group: optional(GROUP),
  name: NAME,
  description: DESCRIPTION,
  metric: METRIC,
  comparator: COMPARATOR,
  limit: LIMIT,
  dimension: DIMENSION,
  alert_channels: ALERT_CHANNELS,
  filters: FILTERS,
  period: PERIOD,
  ...TIMES,
  last_checked: optional(rfc3339('When it was last checked; absent: never')),
})
export const ALERTS = object('Alerts, those of the account first; at most 1000', {
  items: list('Alerts', ALERT),
  total: integer('Number of all'),
})
export const ALERT_BODY = object('The alert', {
  name: NAME,
  description: optional(DESCRIPTION),
  account_group: optional(GROUP),
  subaccount_id: optional(text('Makes the alert one of this subaccount')),
  metric: METRIC,
  comparator: COMPARATOR,
  limit: either('Decimal from 0 to 1, such as 0.05', LIMIT, number('The same as a number')),
  dimension: DIMENSION,
  alert_channels: optional(ALERT_CHANNELS),
  filters: optional(FILTERS),
  period: optional(PERIOD),
})

const USE = {
  metric: oneOf('What is limited', LIMIT_METRICS),
  comparator: oneOf('Whether the limit names what is too much or what is allowed', COMPARATORS),
  dimension: oneOf('domain: each domain has the limit; else each account', DIMENSIONS),
}
const COUNT = text('Whole number', { example: '50' })
export const USAGE_LIMIT = named('UsageLimit', 'A limit of what is no mail', {
  id: text('UUID'),
  ...OWNER,
  account_group: optional(GROUP),
  name: NAME,
  description: DESCRIPTION,
  ...USE,
  limit: COUNT,
  filters: FILTERS,
  period: PERIOD,
  ...TIMES,
  last_checked: optional(rfc3339('When a use was last compared with it; absent: never')),
})
export const USAGE_LIMITS = object('Limits, those of the account first; at most 1000', {
  items: list('Limits', USAGE_LIMIT),
  total: integer('Number of all'),
})
export const USAGE_LIMIT_BODY = object('The limit', {
  name: NAME,
  description: optional(DESCRIPTION),
  ...USE,
  limit: either('Whole number, such as 50', COUNT, integer('The same as a number')),
  filters: optional(FILTERS),
  period: optional(PERIOD),
})

export const HIT = named('AlertHit', 'A value for which an alert has triggered', {
  id: text('Id of the hit'),
  ...OWNER,
  name: text('Name of the alert; own checks of the service begin with sendwright:'),
  ...TIMES,
  triggered: flag('Whether it lasts'),
  expires_at: rfc3339('When it is removed; 0001-01-01T00:00:00Z while it lasts'),
  latest_value: text('The figure, as decimal', { example: '0.08' }),
  metric: text('What is judged', { example: 'hard_bounce_rate' }),
  comparator: text('How it is compared', { only: { enum: COMPARATORS } }),
  limit: text('With what, as decimal', { example: '0.05' }),
  dimension: optional(text('What the value is of; absent: there is one value only')),
  dimension_value: optional(text('The value', { example: 'mail.example.com' })),
  since: optional(rfc3339('Since when it is so; present in hits of own checks')),
  advice: optional(text('What is wrong and what to do; present in hits of own checks')),
})
export const HITS = object('Hits, newest first; at most 1000', {
  items: list('Hits', HIT),
  total: integer('Number of the items'),
})

const OWN_CHECK = {
  name: text('Begins with sendwright:', { example: 'sendwright:disk-space' }),
  description: text('What it checks'),
  metric: text('The figure'),
  comparator: oneOf('When it is true the check has a hit', COMPARATORS),
  limit: text('Decimal'),
  dimension: optional(text('What the values of its hits are; absent: it has one hit at most')),
}
export const OWN_CHECK_VIEW = named('OwnCheck', 'A check of the service itself', OWN_CHECK)
export const OWN_CHECKS = object('One item per check', {
  items: list(
    'The checks',
    object('A check with its hits', {
      ...OWN_CHECK,
      interval_seconds: integer('Time between two checks', { unit: 'seconds' }),
      hits: list('Hits that last', HIT),
    }),
  ),
})

export const CHANNEL_SETTINGS = named('AlertChannelSettings', 'Targets of a channel', {
  emails: optional(list('Mail addresses; of email', text('Address'), { only: { maxItems: 10 } })),
  url: optional(text('Of a webhook, or an incoming webhook of Slack')),
  channel_ids: optional(
    list('Of slack: channels of the workspace, where there is no url', text('Channel id'), {
      only: { maxItems: 20 },
    }),
  ),
})
const SETTING_FIELDS = {
  event_type: oneOf('What is told', EVENT_TYPES),
  channel: oneOf('Channel', CHANNELS),
  settings: CHANNEL_SETTINGS,
}
export const SETTING = named('AlertSetting', 'Where the notices of an event type go', {
  id: text('UUID'),
  ...SETTING_FIELDS,
})
export const CHANGED_SETTING = object('The setting', {
  message: text('What was done', { example: 'Alert setting updated' }),
  id: text('UUID'),
  ...SETTING_FIELDS,
})
export const SETTING_BODY = object('Where the notices of an event type go', SETTING_FIELDS)
export const SETTINGS = object('Settings of all channels', {
  events: list('Oldest first', SETTING),
  webhooks: object('Of webhooks', {
    signing_key: text('Key that they are signed with; empty for roles that may not read the account'),
  }),
  slack: object('The workspace; empty: none is connected', {
    token: optional(text('Its token, masked', { example: 'xoxb-****' })),
    team_id: optional(nullable(text('Id of the workspace'))),
    team_name: optional(nullable(text('Its name'))),
    scope: optional(nullable(text('Permissions of the token'))),
  }),
})
export const EVENT_TYPE_LIST = object('Event types', {
  events: list('Event types', oneOf('Event type', EVENT_TYPES)),
})

const EVENT_TYPE = oneOf('Of what notices', EVENT_TYPES)
export const EMAIL_TEST = object('Where to', {
  event_type: EVENT_TYPE,
  emails: list('Mail addresses', text('Address'), { only: { minItems: 1, maxItems: 10 } }),
})
export const WEBHOOK_TEST = object('Where to', { event_type: EVENT_TYPE, url: text('Of a webhook') })
export const SLACK_TEST = object('Where to', {
  event_type: EVENT_TYPE,
  channel_ids: optional(
    list('Channels of the workspace; default: the targets that the settings name', text('Channel id'), {
      only: { maxItems: 20 },
    }),
  ),
})
export const SLACK_WORKSPACE = object('A workspace of Slack', {
  token: text('Token of an app there', {
    example: 'xoxb-...',
    only: { minLength: 1, maxLength: 500, pattern: '^[\\x21-\\x7e]+$' },
  }),
  team_id: optional(nullable(text('Id of the workspace', { only: { maxLength: 200 } }))),
  team_name: optional(nullable(text('Its name', { only: { maxLength: 200 } }))),
  scope: optional(nullable(text('Permissions of the token', { only: { maxLength: 2000 } }))),
})
export const SLACK_CHANNEL = named('SlackChannel', 'A channel of Slack', {
  id: text('Id', { example: 'C012AB3CD' }),
  name: text('Name'),
  is_archived: flag('Nobody can write to it'),
})
export const SLACK_CHANNELS = object('Channels that the token may see; none without a workspace', {
  items: list('Channels', SLACK_CHANNEL),
  paging: object('Links; empty: there is no such page', {
    first: text('First page'),
    last: text('Always empty: Slack pages forward only'),
    next: text('Next page'),
    previous: text('Always empty'),
  }),
})
export const NEW_SIGNING_KEY = object('The key', { signing_key: text('The new key') })

const VALIDATED = named('ValidationNotice', 'A bulk validation that is complete', {
  id: text('Its id'),
  quantity: integer('Number of addresses'),
  records_processed: integer('Number of those that were judged'),
  summary: object('Its result', { result: map('Number of addresses by result', integer('Number')) }),
})
const STOPPED_SENDER = named('SenderNotice', 'An account or a domain whose standing has changed', {
  account_id: text('The account'),
  domain: optional(text('The domain; absent: the account as a whole')),
  state: oneOf('As it is now', ['good', 'warned', 'slowed', 'held']),
  code: optional(text('Which figure is too high', { example: 'bounces' })),
  reason: optional(text('The same in words, with the figure and its limit')),
  until: optional(rfc3339('When it is released by itself')),
})
const about = <const E extends string>(events: readonly E[]) => oneOf('What is told', events)
const TEST = optional(flag('True in a test: nothing has happened'))
export const ALERT_POST = named('AlertPost', 'The JSON body of a notice', {
  signature: SIGNATURE,
  'parent-signature': optional(SIGNATURE),
  'event-data': component(
    'AlertNotice',
    either(
      'What has happened',
      object('A hit has triggered, or is over', {
        event: about(['send_alert', 'ip_listed', 'ip_delisted', 'domain_listed', 'domain_delisted']),
        test: TEST,
        alert: either('The alert, or the check of the service', ALERT, OWN_CHECK_VIEW),
        hit: HIT,
      }),
      object('A job is complete', { event: about(['validation_job']), test: TEST, job: VALIDATED }),
      object('A preview is complete', {
        event: about(['validation_preview']),
        test: TEST,
        preview: VALIDATED,
      }),
      object('The account, or a domain of it, was warned, slowed or held for what it sends, or released', {
        event: about(['sender_stopped', 'sender_released']),
        test: TEST,
        sender: STOPPED_SENDER,
      }),
    ),
  ),
})
