/** Events as the API lists them and webhooks carry them (events.md section 2): one shape per type, and their union. */
import {
  anyJson,
  component,
  either,
  flag,
  integer,
  list,
  map,
  named,
  number,
  object,
  oneOf,
  optional,
  text,
  unixSeconds,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'

const ADDRESS_EXAMPLE = { example: 'alice@example.org' }

export const EVENT_ACCOUNT = named('EventAccount', 'The account that the event is of', {
  id: text('Id of the account'),
  'parent-id': optional(text('Id of its parent; present for a subaccount')),
})

const head = <const E extends string, const L extends string>(event: E, levels: readonly L[]) => ({
  event: oneOf('Type of the event', [event]),
  id: text('22 URL-safe characters; the same in repeats of a webhook', { example: 'Qk3sLr0fT9yXv2a7HdPq1w' }),
  timestamp: unixSeconds('When it happened, with microseconds', { example: 1780315200.104511 }),
  'log-level': oneOf('How serious it is', levels),
  account: optional(EVENT_ACCOUNT),
})

const LABELS = {
  tags: list('Tags of the message', text('Tag'), { example: ['welcome'] }),
  campaigns: list('Always empty', text('Campaign')),
  'user-variables': map('Variables of the message (v:name), as given', anyJson('Any value')),
}

const RECIPIENT = {
  recipient: text('Address of the recipient', ADDRESS_EXAMPLE),
  'recipient-domain': text('Domain of the recipient', { example: 'example.org' }),
}
const PROVIDER = {
  'recipient-provider': text('Mailbox provider by its MX hosts, or Other', { example: 'Gmail' }),
}

const MESSAGE_ID = text('Message-Id without angle brackets')
export const EVENT_ATTACHMENT = named('EventAttachment', 'An attachment of the message', {
  filename: text('Name of the file'),
  'content-type': text('Content type', { example: 'application/pdf' }),
  size: integer('Size', { unit: 'bytes' }),
})
const MESSAGE_FIELDS = {
  headers: named('EventMessageHeaders', 'Headers as people read them', {
    to: text('To'),
    from: text('From'),
    subject: text('Subject'),
    'message-id': MESSAGE_ID,
  }),
  attachments: list('Attachments', EVENT_ATTACHMENT),
  size: integer('Size of the message', { unit: 'bytes' }),
}
const RECIPIENTS = list('Addresses that the sender gave', text('Address'))
const MESSAGE = named('EventMessage', 'The message that the event is about', MESSAGE_FIELDS)
const ACCEPTED_MESSAGE = named('AcceptedEventMessage', 'The message that was accepted', {
  ...MESSAGE_FIELDS,
  recipients: RECIPIENTS,
  'scheduled-for': optional(unixSeconds('When delivery begins; present if it was scheduled')),
})
const RECEIVED_MESSAGE = named('StoredEventMessage', 'The message that was stored', {
  ...MESSAGE_FIELDS,
  recipients: RECIPIENTS,
})
const VISITED_MESSAGE = named('VisitedMessage', 'The message that was read', {
  headers: object('Its headers', { 'message-id': MESSAGE_ID }),
})

const STORAGE = named('EventStorage', 'Where the message can be read while it is kept', {
  key: text('Key of the stored message'),
  url: text('Address of the message (messages.md M3)'),
  region: text('Always default'),
  env: text('Always production'),
})

const ENVELOPE = {
  sender: text('Address of the sender'),
  targets: text('Address of the recipient, or the URL of a POST', ADDRESS_EXAMPLE),
  transport: oneOf('How it is transported', ['smtp', 'http']),
}
const SENDING_IP = optional(text('Address that it left from; if known', { example: '192.0.2.25' }))
const ACCEPTED_ENVELOPE = named('AcceptedEnvelope', 'Envelope of the message', ENVELOPE)
const ATTEMPT_ENVELOPE = named('AttemptEnvelope', 'Envelope of an attempt', {
  ...ENVELOPE,
  'sending-ip': SENDING_IP,
  'i-ip-pool-id': optional(text('Id of the pool that the sending address is in; if it is in one')),
  'i-ip-pool-name': optional(text('Name of that pool')),
})

const TEST_MODE = flag('Sent in test mode: nothing is delivered')
const AUTHENTICATED = flag('An account sent it; false: received mail')
const ROUTED = flag('Received mail that a route forwards')
const TEST_FLAGS = named('MessageFlags', 'Kind of the message', { 'is-test-mode': TEST_MODE })
const ACCEPTED_FLAGS = named('AcceptedFlags', 'Kind of the message', {
  'is-authenticated': AUTHENTICATED,
  'is-routed': optional(flag('Received mail; absent: sent by the account')),
  'is-test-mode': TEST_MODE,
})
const ATTEMPT_FLAGS = named('AttemptFlags', 'Kind of the message and of the attempt', {
  'is-authenticated': AUTHENTICATED,
  'is-routed': ROUTED,
  'is-big': flag('Always false'),
  'is-system-test': flag('Always false'),
  'is-test-mode': TEST_MODE,
  'is-delayed-bounce': optional(flag('True for a failure that was reported after the delivery')),
  'is-callback': optional(flag('True for the POST of a notice about a stored message')),
})

export const EVENT_TEMPLATE = named('EventTemplate', 'The template of the message', {
  name: text('Name of the template'),
  version: text('Tag of the version'),
  'is-text': flag('The text part was made from the rendered HTML'),
})
export const EVENT_MAILING_LIST = named(
  'EventMailingList',
  'The mailing list whose member the recipient is',
  {
    address: text('Address of the list'),
    'list-id': text('Id of the list'),
    sid: optional(text('Id of the member')),
  },
)
/** Members of all events about a message to a recipient. */
const SENT = {
  template: optional(EVENT_TEMPLATE),
  batch: optional(object('The batch that the message is of', { id: text('Id of the batch') })),
  'mailing-list': optional(EVENT_MAILING_LIST),
  'i-delivery-optimizer': optional(oneOf('Delivered at the best time of the recipient', ['send-time'])),
}

export const EVENT_ROUTE = named('EventRoute', 'A route that matched received mail', {
  id: text('Id of the route'),
  priority: integer('Its priority'),
  description: text('Its description; long ones are cut'),
  expression: text('Its expression; long ones are cut'),
  actions: list('Its actions, without passwords', text('Action')),
  match: object('What it matched', { recipient: text('The recipient') }),
})

export const DELIVERY_STATUS = named('DeliveryStatus', 'Outcome of an attempt', {
  code: integer('SMTP or HTTP code of the response, or one of the service (events.md section 2)', {
    example: 250,
  }),
  'attempt-no': integer('Number of the attempt, from 1; 0: there was none'),
  message: text('Text of the response'),
  description: text('What the service says of it'),
  'session-seconds': number('Duration of the attempt', { unit: 'seconds' }),
  'enhanced-code': optional(text('Enhanced status code (RFC 3463); if there was one', { example: '5.1.1' })),
  'mx-host': optional(text('Host that answered; if one was reached')),
  tls: optional(flag('Whether TLS was used; if known')),
  'certificate-verified': optional(flag('Whether the certificate was verified; if known')),
  utf8: optional(flag('Whether the host takes UTF-8 addresses and headers; if known')),
  'retry-seconds': optional(integer('Until the next attempt; in temporary failures', { unit: 'seconds' })),
  'bounce-type': optional(
    oneOf('`hard`: the mailbox does not exist; in permanent failures', ['hard', 'soft']),
  ),
  'last-code': optional(integer('Code of the last attempt; with code 602')),
  'last-message': optional(text('Message of the last attempt; with code 602')),
})

export const CONTENT_CHECK = named('ContentCheckNote', 'What the content check found (content-check.md)', {
  action: oneOf('What was done; `released`: it was held, and a person released it', [
    'tag',
    'refuse',
    'released',
  ]),
  reason: text('What was found', { example: 'score 15.3' }),
  score: optional(number('Points of the scorer; if it gave any')),
})

const ATTEMPTED = {
  ...LABELS,
  ...RECIPIENT,
  ...PROVIDER,
  message: MESSAGE,
  storage: STORAGE,
  envelope: ATTEMPT_ENVELOPE,
  ...SENT,
  flags: ATTEMPT_FLAGS,
  'delivery-status': DELIVERY_STATUS,
  'content-check': optional(CONTENT_CHECK),
  'primary-dkim': optional(
    text('Name of the DKIM key that signed it; if it was signed', {
      example: 'k1._domainkey.mail.example.com',
    }),
  ),
}

export const CLIENT_INFO = named('ClientInfo', 'The client by its User-Agent', {
  'client-name': text('Name', { example: 'Firefox' }),
  'client-os': text('Operating system', { example: 'Linux' }),
  'client-type': text(
    '`browser`, `mobile browser`, `email client`, `library`, `robot`, `feed reader`, `other` or `unknown`',
  ),
  'device-type': text('`desktop`, `mobile`, `tablet`, `other` or `unknown`'),
  'user-agent': text('User-Agent as sent'),
  bot: text('`apple`, `gmail` or `generic`: not a person; else empty'),
})
export const GEOLOCATION = named('Geolocation', 'Where the client is, by its address; Unknown: not known', {
  country: text('Two letters', { example: 'US' }),
  region: text('Region'),
  city: text('City'),
  timezone: text('Time zone of IANA', { example: 'America/New_York' }),
})

const VISITED = {
  ...LABELS,
  ...RECIPIENT,
  ...PROVIDER,
  'mailing-list': SENT['mailing-list'],
  message: VISITED_MESSAGE,
  ip: text('Address of the client'),
  'client-info': CLIENT_INFO,
  geolocation: GEOLOCATION,
}
const DELIVERED_AT = optional(unixSeconds('When the message was delivered; if known'))

const UPLOAD = {
  'task-id': text('Id of the upload'),
  'mailing-list': object('The list', { address: text('Its address') }),
}
const FORMAT = oneOf('Format of the upload', ['json', 'csv'])

export const IGNORED = list(
  'Parameters, and header fields under the prefix, that were not understood; present if there were any',
  text('Name', { example: 'o:trackng' }),
)

export const ACCEPTED = named('AcceptedEvent', 'A message to a recipient was accepted', {
  ...head('accepted', ['info']),
  ...LABELS,
  ...RECIPIENT,
  message: ACCEPTED_MESSAGE,
  storage: STORAGE,
  envelope: ACCEPTED_ENVELOPE,
  ...SENT,
  method: oneOf('How it was given', ['http', 'smtp']),
  flags: ACCEPTED_FLAGS,
  'originating-ip': optional(text('Address of the sender; if known')),
  'api-key-id': optional(text('Id of the API key or SMTP credential; if there was one')),
  'deliver-by': optional(unixSeconds('When delivery ends; present if the sender gave it')),
  routes: optional(list('Routes that matched; present for received mail', EVENT_ROUTE)),
  ignored: optional(IGNORED),
})
export const DELIVERED = named('DeliveredEvent', 'The receiving server accepted the message', {
  ...head('delivered', ['info']),
  ...ATTEMPTED,
})
export const FAILED = named('FailedEvent', 'An attempt failed', {
  ...head('failed', ['warn', 'error']),
  ...ATTEMPTED,
  severity: oneOf('`temporary`: another attempt follows', ['temporary', 'permanent']),
  reason: text(
    'bounce, generic, espblock, blacklisted, greylisted, old, suppress-bounce, suppress-unsubscribe, suppress-complaint or loop',
    { example: 'bounce' },
  ),
  'i-classification-rule-id': optional(text('Rule that classified the reply; present if a server replied')),
})
const REJECTED = named('RejectedEvent', 'The message was accepted, and refused before delivery', {
  ...head('rejected', ['warn']),
  ...LABELS,
  message: MESSAGE,
  storage: optional(STORAGE),
  reject: object('Why', { reason: text('Reason'), description: text('Details') }),
  flags: TEST_FLAGS,
})
export const OPENED = named('OpenedEvent', 'The message was opened', {
  ...head('opened', ['info']),
  ...VISITED,
  'delivered-at': DELIVERED_AT,
})
export const CLICKED = named('ClickedEvent', 'A link in the message was followed', {
  ...head('clicked', ['info']),
  ...VISITED,
  'delivered-at': DELIVERED_AT,
  url: text('Target of the link as written in the message', { example: 'https://example.com/' }),
})
export const UNSUBSCRIBED = named('UnsubscribedEvent', 'The recipient unsubscribed', {
  ...head('unsubscribed', ['info']),
  ...VISITED,
})
export const COMPLAINED = named('ComplainedEvent', 'The recipient called the message spam', {
  ...head('complained', ['warn']),
  ...LABELS,
  ...RECIPIENT,
  ...PROVIDER,
  'mailing-list': SENT['mailing-list'],
  message: MESSAGE,
  storage: STORAGE,
  envelope: optional(object('Envelope of the message; if known', { 'sending-ip': SENDING_IP })),
})
const STORED = named('StoredEvent', 'A route stored received mail', {
  ...head('stored', ['info']),
  ...LABELS,
  message: RECEIVED_MESSAGE,
  storage: STORAGE,
  flags: TEST_FLAGS,
})
const MEMBER_UPLOADED = named('ListMemberUploadedEvent', 'A member was added to a list or changed', {
  ...head('list_member_uploaded', ['info']),
  ...UPLOAD,
  member: object('The member', {
    address: text('Address'),
    name: text('Name'),
    subscribed: flag('Whether it gets mail'),
  }),
})
const MEMBER_UPLOAD_ERROR = named('ListMemberUploadErrorEvent', 'A member of an upload was refused', {
  ...head('list_member_upload_error', ['error']),
  ...UPLOAD,
  format: FORMAT,
  'member-description': text('The member as given'),
  error: object('Why', { message: text('Why it was refused') }),
})
const LIST_UPLOADED = named('ListUploadedEvent', 'An upload to a list has ended', {
  ...head('list_uploaded', ['info']),
  ...UPLOAD,
  format: FORMAT,
  subscribed: flag('Whether the members get mail'),
  'is-upsert': flag('Whether members that were there are changed'),
  'upserted-count': integer('Members that were added or changed'),
  'failed-count': integer('Members that were refused'),
})

export const EVENT = component(
  'Event',
  either(
    'What happened to a message or a list upload; `event` names the type. New members may be added.',
    ...[ACCEPTED, DELIVERED, FAILED, REJECTED, OPENED, CLICKED, UNSUBSCRIBED, COMPLAINED, STORED],
    ...[MEMBER_UPLOADED, MEMBER_UPLOAD_ERROR, LIST_UPLOADED],
  ),
)

export const EVENTS = pageOf(
  'EventPage',
  'A page: `next` continues in the direction of the list, until a page is empty',
  EVENT,
)
