/** What webhooks post, and the answers of the operations on them (webhooks.md; own-operations.md section 5). */
import {
  component,
  described,
  descriptionOf,
  either,
  type Fields,
  integer,
  list,
  named,
  nullable,
  type ObjectShape,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { pageOf } from '../../platform/http/request/paging.ts'
import {
  ACCEPTED,
  CLICKED,
  CLIENT_INFO,
  COMPLAINED,
  DELIVERED,
  EVENT_ACCOUNT,
  FAILED,
  GEOLOCATION,
  OPENED,
  UNSUBSCRIBED,
} from '../events/shapes.ts'
import { WEBHOOK_TYPES } from './types.ts'

const { country, region, city, timezone } = GEOLOCATION.fields
/** Without personal data (rule 27) there are only the others. */
const VISITED = {
  'client-info': named('WebhookClientInfo', 'The client by its User-Agent', {
    ...CLIENT_INFO.fields,
    'user-agent': optional(text('User-Agent as sent; absent without personal data')),
  }),
  geolocation: named('WebhookGeolocation', 'Where the client is; without personal data only its country', {
    country,
    region: optional(region),
    city: optional(city),
    timezone: optional(timezone),
  }),
}

/** An event with the members that only webhooks have. */
const posted = <const F extends Fields, const M extends Fields>(
  name: string,
  event: ObjectShape<F>,
  others: M,
) =>
  named(name, descriptionOf(event), {
    ...event.fields,
    ...others,
    account: EVENT_ACCOUNT,
    domain: object('The domain of the message', { name: text('Name of the domain') }),
  })

export const EVENT_DATA = component(
  'WebhookEvent',
  either(
    'An event with its account and domain; `event` names the type. New members may be added.',
    posted('AcceptedWebhook', ACCEPTED, {}),
    posted('DeliveredWebhook', DELIVERED, {}),
    posted('FailedWebhook', FAILED, {}),
    posted('OpenedWebhook', OPENED, VISITED),
    posted('ClickedWebhook', CLICKED, VISITED),
    posted('UnsubscribedWebhook', UNSUBSCRIBED, VISITED),
    posted('ComplainedWebhook', COMPLAINED, {}),
  ),
)

export const SIGNATURE = named('WebhookSignature', 'Proves that the service posted it', {
  timestamp: text('Unix seconds', { example: '1780315203' }),
  token: text('50 random hex digits, new for each attempt'),
  signature: text('HMAC-SHA256 of timestamp and token, without a separator, in lower-case hex'),
})

export const WEBHOOK_POST = named('WebhookPost', 'The JSON body of a webhook', {
  signature: SIGNATURE,
  'parent-signature': optional(
    described(
      'By the signing key of the parent; only to its webhooks, about events of subaccounts',
      SIGNATURE,
    ),
  ),
  'event-data': EVENT_DATA,
})

const MESSAGE = text('What was done')
const URL = text('URL with its user info', { example: 'https://example.com/hook' })
const MASKED_URL = text('URL; its password is masked')

const TYPE_URLS = named('WebhookUrls', 'The URLs of a type', { urls: list('At most three', URL) })
const ofType = optional(TYPE_URLS)
export const DOMAIN_WEBHOOKS = object('Webhooks of the domain', {
  webhooks: named('DomainWebhooks', 'URLs by type; a type without URLs is absent', {
    accepted: ofType,
    clicked: ofType,
    opened: ofType,
    unsubscribed: ofType,
    delivered: ofType,
    permanent_fail: ofType,
    temporary_fail: ofType,
    complained: ofType,
  }),
})
export const ONE_WEBHOOK = object('The URLs', { webhook: TYPE_URLS })
export const WEBHOOK_DONE = object('Done, with the URLs', { message: MESSAGE, webhook: TYPE_URLS })
export const WEBHOOK_TESTED = object('Response of the receiver', {
  code: integer('Its status; 0: there was no response', { example: 200 }),
  message: text('Its reason, or why there was no response', { example: 'OK' }),
})

const UNKNOWN_WEBHOOK = object('Unknown webhook', { Description: text('The text') })
export const UNKNOWN = either(
  'Unknown domain or webhook',
  object('Unknown domain', { message: text('The text') }),
  UNKNOWN_WEBHOOK,
)
export const DUPLICATE = object('The URL has one of the types already', { Description: text('The text') })

const WEBHOOK_ID = text('24 hex digits')
export const ACCOUNT_WEBHOOK = named('AccountWebhook', 'A webhook for the events of all domains', {
  webhook_id: WEBHOOK_ID,
  description: text('Free text'),
  url: URL,
  event_types: list('Types of events', oneOf('Type', WEBHOOK_TYPES)),
  created_at: rfc3339('When it was made'),
})
export const ACCOUNT_WEBHOOKS = object('Webhooks of the account', {
  webhooks: list('Oldest first', ACCOUNT_WEBHOOK),
})
export const ACCOUNT_WEBHOOK_CREATED = object('Created', { webhook_id: WEBHOOK_ID })

export const STATUSES = ['ok', 'failing', 'given-up'] as const
const EVENT_ID = text('Id of the event')
const ATTEMPT = named('WebhookAttempt', 'An attempt to deliver a webhook', {
  id: text('Id of the attempt'),
  event_id: EVENT_ID,
  event: text('Type of the webhook', { only: { enum: WEBHOOK_TYPES } }),
  domain: text('Domain of the event'),
  recipient: optional(text('Recipient that the webhook names, masked where it masks it')),
  subject: optional(text('Subject of the message, as in the webhook; its beginning')),
  url: MASKED_URL,
  attempt: integer('Number of the attempt, from 1'),
  status: oneOf('failing: another attempt follows', STATUSES),
  status_code: optional(integer('Status of the response; absent: there was none', { example: 200 })),
  error: optional(text('Why there was no response')),
  response: text('Beginning of the response'),
  duration_ms: integer('Duration', { unit: 'milliseconds' }),
  created_at: rfc3339('When it was made'),
  next_attempt_at: optional(rfc3339('When the next one follows; absent: none does')),
})
export const ATTEMPTS = pageOf('WebhookAttemptPage', 'A page of attempts, newest first', ATTEMPT, {
  partial: optional(
    oneOf('With `search`: the page ends here though there may be more; `next` goes on', [true] as const),
  ),
})
export const ONE_ATTEMPT = object('The attempt, with what is posted about its event', {
  ...ATTEMPT.fields,
  'event-data': nullable(EVENT_DATA),
})
export const REPLAYED = object('Queued; the event keeps its id', { message: MESSAGE, event_id: EVENT_ID })
export const SPAN_REPLAYED = object('Queued', {
  events: integer('Events that were found'),
  queued: integer('Requests that were queued'),
})

export const SIGNING_KEY = object('The key', {
  message: MESSAGE,
  http_signing_key: text('Key that webhooks are signed with', {
    example: 'key-0123456789abcdef0123456789abcdef',
  }),
})
