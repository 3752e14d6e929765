/** The queue as the API shows it (own-operations.md sections 2 and 3). */
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
import { pageOf } from '../../platform/http/request/paging.ts'
import { ADDRESS_PREFERENCES, REPLY_ACTIONS } from '../deliver/shaping/shaping-file.ts'

const PROVIDER = text('Display name of the provider', { example: 'Gmail' })
const SITE = text('Name of the mail hosts that share limits', { example: 'google' })

export type DeliveryReason = Of<typeof REASON>
const REASON = object('Why it has not been sent yet, or how it ended', {
  code: text('A stable code', { example: 'deferred' }),
  sentence: text('What it means'),
})

const DELIVERY_FIELDS = {
  id: text('Identifier of the delivery'),
  recipient: text('Mail address', { example: 'bob@example.com' }),
  state: oneOf('Where it is', [
    ...(['scheduled', 'queued', 'sending', 'delivered', 'bounced', 'expired'] as const),
    ...(['suppressed', 'rejected', 'cancelled'] as const),
  ]),
  attempts: integer('Attempts so far'),
  created_at: rfc3339('When the message was accepted'),
  updated_at: rfc3339('Last change'),
  next_attempt_at: nullable(rfc3339('Next attempt; null: it does not wait for one')),
  expires_at: rfc3339('When it is given up'),
  reason: REASON,
  lane: nullable(text('Last lane of mail from this domain to this destination; null: none is known')),
  last_reply: nullable(
    object('Last reply of a server; null: there was none', {
      code: integer('SMTP code', { example: 450 }),
      text: text('Text of the reply'),
    }),
  ),
}
export type DeliveryView = Of<typeof DELIVERY>
const DELIVERY = named('Delivery', 'One message to one recipient', DELIVERY_FIELDS)
export const DELIVERIES = pageOf('DeliveryPage', 'A page of deliveries', DELIVERY)

export type QueuedDelivery = Of<typeof QUEUED_DELIVERY>
const QUEUED_DELIVERY = named('QueuedDelivery', 'A delivery that is not done', {
  ...DELIVERY_FIELDS,
  account_id: text('Whose it is'),
  domain: text('Sending domain', { example: 'example.com' }),
  message_id: text('Message-Id without angle brackets'),
})
export const QUEUED_DELIVERIES = pageOf(
  'QueuedDeliveryPage',
  'A page of deliveries that are not done, oldest first',
  QUEUED_DELIVERY,
)

export type Transcript = Of<typeof TRANSCRIPT>
const TRANSCRIPT = named('Transcript', 'The SMTP dialogue of an attempt, without secrets', {
  attempt: integer('Number of the attempt, from 1'),
  started_at: rfc3339('When it began'),
  mx_host: nullable(text('The server; null: none was reached')),
  lines: list(
    'What was said',
    object('A line', {
      ms: integer('Time since the start', { unit: 'milliseconds' }),
      direction: oneOf('Whether this service sent or received it', ['sent', 'received']),
      line: text('The line'),
    }),
  ),
})
export const TRANSCRIPTS = object('Dialogues, first attempt first', { items: list('Attempts', TRANSCRIPT) })

export type SiteOrder = Of<typeof ORDER>
export const ORDER = named('SiteOrder', 'What is ordered for a site', {
  site: text('The site, or the domain of recipients'),
  pause: nullable(
    object('Nothing is sent; null: it is', {
      reason: text('For the others; may be empty, and is so for accounts other than the first'),
      since: rfc3339('When it began'),
      until: nullable(rfc3339('When it ends by itself; null: somebody ends it')),
    }),
  ),
  limits: nullable(
    object('Limits in place of those of the shaping; null: none are ordered', {
      connections: nullable(integer('Connections at a time from one address; null: as shaped')),
      rate: nullable(text('Messages in a time, or none; null: as shaped', { example: '300/1m' })),
      until: nullable(rfc3339('When they end by themselves; null: somebody ends them')),
    }),
  ),
})

const LIMITS = {
  connections: integer('Connections at a time'),
  messages_per_connection: integer('Messages on one connection'),
  messages_per_second: nullable(number('Messages per second; null: no limit')),
}

export type LaneView = Of<typeof LANE>
const LANE = named('Lane', 'What waits from one source address to one site', {
  lane: text('Source and site', { example: '192.0.2.1/google' }),
  source: text('Source address; any: the system chooses it; none: there is none to use now'),
  site: SITE,
  provider: PROVIDER,
  queued: integer('Deliveries that wait'),
  due: integer('Those of them whose time has come'),
  deferred: integer('Those that were tried before'),
  paused: integer('Those that are paused'),
  connections: integer('Connections open now'),
  limits: object('Limits now', {
    connections: nullable(integer('Connections at a time; null: the lane is not in use')),
    messages_per_connection: nullable(integer('Messages on one connection; null: the lane is not in use')),
    messages_per_second: nullable(number('Messages per second; null: no limit, or not in use')),
  }),
  set_limits: nullable(object('Limits of the shaping; null: the lane is not in use', LIMITS)),
  backed_off_until: nullable(rfc3339('Until when it is slower than its limits; null: it is not')),
  backed_off_why: nullable(
    text('The reply that slowed it down; only its codes for accounts other than the first'),
  ),
  blocked: nullable(
    object('The provider blocks the source address; null: it does not', {
      site: SITE,
      provider: PROVIDER,
      state: oneOf('Whether it is tried again; `listed`: it is on a blocklist of the provider', [
        'closed',
        'probing',
        'listed',
      ]),
      reply: text('The reply that said so, or the lists; only its codes for accounts other than the first'),
      times: integer('Blocks in a row'),
      since: rfc3339('When it began'),
      until: rfc3339('When it is tried again'),
    }),
  ),
  override: nullable(ORDER),
  oldest_due: nullable(rfc3339('Since when the oldest is due; null: none is')),
})
export const LANES = object('Lanes', { items: list('All lanes', LANE) })

const QUEUE_DOMAIN = named('QueueDomain', 'What waits for a domain', {
  domain: text('Domain name', { example: 'example.com' }),
  queued: integer('Deliveries that wait'),
  deferred: integer('Those of them that were tried before'),
  paused: integer('Those that are paused'),
  oldest: nullable(rfc3339('When the oldest was accepted')),
})
export type QueueDomains = Of<typeof QUEUE_DOMAINS>
export const QUEUE_DOMAINS = object('Domains, most mail first', {
  sending: list('By sending domain', QUEUE_DOMAIN),
  recipient: list('By domain of recipients', QUEUE_DOMAIN),
})

export const ACTIONS = ['pause', 'resume', 'retry', 'expire', 'drop', 'move'] as const

const QUEUE_FILTER = {
  domain: optional(text('Sending domain')),
  recipient_domain: optional(text('Domain of recipients')),
  provider: optional(PROVIDER),
  lane: optional(text('Name of a lane')),
  tag: optional(text('Tag of the message')),
  message_id: optional(text('Message-Id')),
  reason: optional(text('Code of the reason', { example: 'deferred' })),
  older_than: optional(text('Accepted before: 30s, 10m, 2h or 1d ago', { example: '2h' })),
}

export const QUEUE_ACTION = object('Action, filter and whether to count only', {
  action: oneOf('What to do', ACTIONS),
  filter: object('Which deliveries: those that match all that is given, at least one member', QUEUE_FILTER),
  pool: optional(text('Pool to move to; needed for move')),
  dry_run: optional(flag('Count only', { default: false })),
})
export type ActionResult = Of<typeof ACTION_RESULT>
export const ACTION_RESULT = object('What was done', {
  matched: integer('Deliveries that the filter matches'),
  changed: integer('Deliveries that were changed'),
})

export type ContentHoldView = Of<typeof CONTENT_HOLD>
const CONTENT_HOLD = named('ContentHold', 'Messages of the same content that the content check keeps', {
  id: text('Identifier of the content'),
  account_id: text('Account that sends it'),
  domain: text('Sending domain', { example: 'example.com' }),
  message_id: text('Message-Id of one of the messages; empty: it is gone'),
  from: text('Its From'),
  subject: text('Its subject'),
  messages: integer('Messages that wait'),
  reason: text('What was found', { example: 'score 15.3' }),
  held_at: rfc3339('Since when the first waits'),
})
export const CONTENT_HOLDS = object('What the content check keeps', {
  items: list('Contents, those that wait longest first', CONTENT_HOLD),
})
export const CONTENT_DECISION = object('What was decided on', {
  messages: integer('Messages that waited; their deliveries follow within moments'),
})

const SITE_LIMITS = {
  prefer: nullable(
    oneOf('Addresses of its hosts that come first, or are the only ones', ADDRESS_PREFERENCES),
  ),
  ...LIMITS,
  recovery_seconds: number('From a slow-down to full speed', { unit: 'seconds' }),
  blocked_pause_seconds: number('How long an address is not used after a reply that blocks it', {
    unit: 'seconds',
  }),
  blocked_pause_max_seconds: number('The same at the most, if that repeats', { unit: 'seconds' }),
  replies: list(
    'What replies ask for; the first that fits decides',
    object('Rule', {
      code: text('SMTP code, class such as 4xx, or any', { example: '4xx' }),
      patterns: list('Texts, one of which the reply has; none: any text', text('Pattern')),
      action: oneOf('What is done', REPLY_ACTIONS),
    }),
  ),
}
export type ShapingView = Of<typeof SHAPING>
export const SHAPING = named('Shaping', 'Limits by provider in force', {
  version: text('Version of the table'),
  file: nullable(text("Path of the operator's file; null: there is none")),
  loaded_at: rfc3339('When it was read'),
  faults: list('What is wrong with the newest file, if it is not in force', text('Fault')),
  default: object('Where no provider is known', SITE_LIMITS),
  providers: list(
    'Providers',
    object('Provider', { site: SITE, mx: list('Host names', text('Host name')), ...SITE_LIMITS }),
  ),
  overrides: list('What is ordered over them', ORDER),
})
