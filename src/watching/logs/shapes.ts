/** Answers of the operations on logs (metrics-logs.md section 5) and on reasons (own-operations.md section 11). */
import {
  flag,
  integer,
  list,
  map,
  media,
  named,
  nullable,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
  unixSeconds,
} from '../../base/shape.ts'
import { EVENT_NAMES } from '../events/event.ts'
import {
  CLIENT_INFO,
  DELIVERY_STATUS,
  EVENT_ATTACHMENT,
  EVENT_MAILING_LIST,
  EVENT_ROUTE,
  EVENT_TEMPLATE,
  GEOLOCATION,
  IGNORED,
} from '../events/shapes.ts'
import { filterShape } from '../metrics/shapes.ts'
import { ATTRIBUTE_NAMES, COMPARATORS } from './log-filter.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, LOG_EVENTS } from './log-query.ts'
import { METRIC_EVENT_NAMES } from './metric-events.ts'

export const CSV = media('text/csv', 'The whole list as a file, for `Accept: text/csv`')

const word = (description: string, example?: string) =>
  optional(text(description, example === undefined ? {} : { example }))
const yes = (description: string) => optional(flag(description))
const count = (description: string) => optional(integer(description))
const time = (description: string) => optional(unixSeconds(description))

/** What an event has depends on its type and on what is known (events.md section 2). */
export const LOG_ITEM = named('LogItem', 'An event; it has the members that apply', {
  id: text('Unique for ever', { example: 'Qk3sLr0fT9yXv2a7HdPq1w' }),
  event: oneOf('Type of the event', EVENT_NAMES, { example: 'delivered' }),
  '@timestamp': rfc3339('When it happened, to the millisecond', { example: '2026-01-31T12:00:00.123Z' }),
  'log-level': oneOf('How serious it is', ['info', 'warn', 'error']),
  account: object('Whose it is', {
    id: text('Id of the account'),
    'parent-id': word('Id of its parent; present for a subaccount'),
  }),
  domain: object('The domain', { name: text('Name', { example: 'example.com' }) }),
  tags: list('Tags of the message', text('Tag')),
  campaigns: list('Always empty', text('Campaign')),
  'user-variables': text('Variables of the message as JSON, at most 4 KB', { example: '{"order":"17"}' }),
  method: word('How the message was given: HTTP or SMTP', 'HTTP'),
  'originating-ip': word('Address of the sender'),
  'api-key-id': word('Id of the API key or SMTP credential'),
  ignored: optional(IGNORED),
  'deliver-by': time('When delivery ends'),
  'delivered-at': time('When the message was delivered'),
  recipient: word('Address of the recipient', 'alice@example.org'),
  'recipient-domain': word('Its domain', 'example.org'),
  'recipient-provider': word('Mailbox provider by its MX hosts, or Other', 'Gmail'),
  severity: optional(oneOf('Of a failure; temporary: another attempt follows', ['temporary', 'permanent'])),
  reason: word('Why it failed or was rejected', 'bounce'),
  reject: optional(object('Why it was rejected', { reason: text('Reason'), description: text('Details') })),
  'i-classification-rule-id': word('Rule that classified the reply'),
  'delivery-status': optional(DELIVERY_STATUS),
  'i-delivery-optimizer': word('send-time: delivered at the best time of the recipient'),
  'primary-dkim': word('Name of the DKIM key that signed it', 'k1._domainkey.mail.example.com'),
  envelope: optional(
    object('Envelope', {
      sender: word('Address of the sender'),
      targets: word('Address of the recipient, or the URL of a POST'),
      transport: optional(oneOf('How it is transported', ['smtp', 'http'])),
      'sending-ip': word('Address that it left from', '192.0.2.25'),
      'i-ip-pool-id': word('Id of the pool of that address'),
      'i-ip-pool-name': word('Name of that pool'),
    }),
  ),
  message: optional(
    object('The message', {
      headers: object('Headers', {
        'message-id': text('Message-Id without angle brackets'),
        to: word('To'),
        from: word('From'),
        subject: word('Subject'),
      }),
      attachments: optional(list('Attachments', EVENT_ATTACHMENT)),
      recipients: optional(list('Addresses given by the sender', text('Address'))),
      size: optional(integer('Size of the message', { unit: 'bytes' })),
      'scheduled-for': time('When delivery begins'),
    }),
  ),
  storage: optional(
    object('Where the message can be read while it is kept', {
      key: text('Key of the stored message'),
      url: list('Its address', text('URL')),
      region: text('Always default'),
      env: text('Always production'),
    }),
  ),
  flags: optional(
    object('Kind of the message and of the attempt', {
      'is-authenticated': yes('An account sent it'),
      'is-routed': yes('Received mail that a route forwards'),
      'is-big': yes('Always false'),
      'is-system-test': yes('Always false'),
      'is-test-mode': yes('Sent in test mode'),
      'is-delayed-bounce': yes('A failure that was reported after the delivery'),
      'is-callback': yes('The POST of a notice about a stored message'),
    }),
  ),
  template: optional(EVENT_TEMPLATE),
  batch: optional(object('The batch that the message is of', { id: text('Id') })),
  'mailing-list': optional(
    object('The mailing list', {
      ...EVENT_MAILING_LIST.fields,
      'list-id': word('Its id; absent in uploads of members'),
    }),
  ),
  routes: optional(list('Routes that matched received mail', EVENT_ROUTE)),
  url: word('Target of the link'),
  ip: word('Address of the client'),
  'client-info': optional(CLIENT_INFO),
  geolocation: optional(GEOLOCATION),
  'task-id': word('Id of an upload of members'),
  format: optional(oneOf('Format of the upload', ['json', 'csv'])),
  member: optional(
    object('The member', {
      address: text('Address'),
      name: text('Name'),
      subscribed: flag('Whether it gets mail'),
    }),
  ),
  'member-description': word('The refused member as given'),
  error: optional(object('Why it was refused', { message: text('The text') })),
  subscribed: yes('Whether the members get mail'),
  'is-upsert': yes('Whether members that were there are changed'),
  'upserted-count': count('Members that were added or changed'),
  'failed-count': count('Members that were refused'),
})

const COUNTS = map('Events by name; names without any are left out', integer('Number of events'))
const LOG_TOTALS = object('Counts; empty without include_totals', {
  all: count('Events of the whole list'),
  metrics: optional(COUNTS),
  partial: optional(oneOf('There are more: the counts are what was found before the limit', [true])),
})
const token = (which: string) => word(`Token of the ${which} page; absent: there is none`)

export const LOGS = named('LogsResult', 'A page, with tokens of the pages around it', {
  start: text('As given, else RFC 2822'),
  end: text('As given, else RFC 2822'),
  items: list('The events of this page', LOG_ITEM),
  pagination: object('Tokens', {
    previous: token('previous'),
    first: token('first'),
    next: token('next'),
    last: token('last'),
    total: count('Events of the whole list; with include_totals'),
  }),
  aggregates: LOG_TOTALS,
})

export const LOG_STREAM = media(
  'text/event-stream',
  '`events` events; their data is `{items, skipped}`, the items as in LogsResult and in the order of their commit, and their id that of the last item',
)

export const LOG_QUERY = object('What to list; every member may be left out', {
  start: word('RFC 2822, or Unix seconds; default: one day before the end'),
  end: word('RFC 2822, or Unix seconds; default: now'),
  duration: word('Time before the end: 2h, 1d, 1m (a month). Replaces start'),
  events: optional(list('Types of events; default all', oneOf('Type', LOG_EVENTS))),
  metric_events: optional(list('The events that a metric counts', oneOf('Metric', METRIC_EVENT_NAMES))),
  filter: optional(filterShape(ATTRIBUTE_NAMES, COMPARATORS)),
  include_subaccounts: optional(flag('Those of subaccounts as well', { default: false })),
  include_totals: optional(flag('Count the whole list', { default: false })),
  pagination: optional(
    object('The page', {
      sort: optional(oneOf('Direction', ['timestamp:desc', 'timestamp:asc'], { default: 'timestamp:desc' })),
      token: word('Of another page; the rest of the request is ignored then'),
      limit: optional(
        integer('Page size', { default: LIMIT_DEFAULT, only: { minimum: 1, maximum: LIMIT_MAX } }),
      ),
    }),
  ),
})

const VISITS = {
  opened: integer('Openings'),
  unique_opened: integer('Unique openings'),
  clicked: integer('Clicks'),
  unique_clicked: integer('Unique clicks'),
}
const VISIT_COUNTS = named('Visits', 'Openings and clicks', VISITS)
const VOLUMES = {
  accepted: integer('Accepted messages'),
  delivered: integer('Deliveries'),
  temporary_failed: integer('Failed attempts that are repeated'),
  permanent_failed: integer('Failures for good'),
  ...VISITS,
  complained: integer('Complaints'),
}
export const FAILURE_CLASS = named('FailureClass', 'Failures of one class at a provider', {
  class: text('Category of the failures'),
  rule: text('Id of the rule that classified them'),
  explanation: text('What it means'),
  temporary: integer('Failed attempts that are repeated'),
  permanent: integer('Failures for good'),
  reply: object('The most frequent reply', { text: text('Its text'), count: integer('How often') }),
  sample: object('The newest delivery that got the reply', {
    domain: text('Sending domain'),
    failed_at: rfc3339('When'),
    sending_ip: nullable(text('Address that it left from; null: not known')),
    event_id: nullable(text('Id of its event; null: removed')),
    message_id: nullable(text('Message-Id; null: not known')),
    recipient: nullable(text('Recipient; null: not known')),
  }),
})
export const DELIVERY_REASONS = named('DeliveryReasons', 'Why rates are what they are', {
  start: rfc3339('Beginning of the time, in whole hours'),
  end: rfc3339('End of the time, exclusive'),
  domain: nullable(text('The domain that was asked for; null: all of the account')),
  visits: object('Openings and clicks by kind of client', {
    all: VISIT_COUNTS,
    people: VISIT_COUNTS,
    machines: map('By kind of machine', VISIT_COUNTS),
  }),
  providers: list(
    'Providers, those with most mail first',
    named('ProviderReasons', 'Figures of a provider', {
      provider: text('Name of the mailbox provider', { example: 'Gmail' }),
      ...VOLUMES,
      failures: list('Classes of failures', FAILURE_CLASS),
    }),
  ),
  partial: optional(oneOf('There were more failures than are read', [true])),
})
