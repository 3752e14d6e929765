import { countOf } from '../base/format.ts'
import type { ReplaySpanName } from './replay-times.ts'
import type { AttemptStatus, EventType } from './webhooks-api.ts'
import type { AttemptFilter } from './webhooks-search.ts'

export const EVENT_WORDS: Record<EventType, string> = {
  accepted: 'Accepted',
  delivered: 'Delivered',
  temporary_fail: 'Failed for now',
  permanent_fail: 'Failed for good',
  opened: 'Opened',
  clicked: 'Clicked',
  unsubscribed: 'Unsubscribed',
  complained: 'Complained',
}

export const eventWords = (type: string) => (EVENT_WORDS as Partial<Record<string, string>>)[type] ?? type

export const TEXT = {
  title: 'Webhooks',
  lead: 'Addresses of your programs, to which events are posted as they happen.',
  whose: 'Of which domain',
  account: 'All domains of the account',
  add: 'Add a webhook',
  edit: 'Change the webhook',
  save: 'Save',
  url: 'URL',
  urlPlaceholder: 'https://app.example.com/events',
  events: 'Events',
  change: 'Change',
  changeOf: (url: string) => `Change ${url}`,
  test: 'Test',
  testOf: (url: string) => `Test ${url}`,
  tested: (url: string, code: number, message: string) =>
    code === 0 ? `${url} did not answer: ${message}` : `${url} answered ${code} ${message}`,
  remove: 'Delete',
  removeOf: (url: string) => `Delete ${url}`,
  removed: 'Webhook deleted',
  added: 'Webhook added',
  saved: 'Webhook saved',
  attempts: 'Attempts',
  none: (domain: string | undefined) =>
    domain === undefined ? 'No webhook for the whole account' : `No webhook for ${domain}`,
  noneWhy:
    'With a webhook your program learns of deliveries, failures, opens and complaints within seconds, without asking for them.',
} as const

export const ATTEMPT_TEXT = {
  title: 'Attempts',
  lead: 'Each POST to a webhook of the last three days, newest first.',
  filters: {
    search: 'Part of a recipient or subject',
    url: 'URL (whole)',
    domain: 'Domain',
    event: 'Event',
    status: 'Status',
  } satisfies Record<AttemptFilter, string>,
  statusMeans:
    'Accepted: your endpoint answered 200. Failing: it did not, and is tried again. Given up: the last of the attempts failed too.',
  statuses: { ok: 'Accepted', failing: 'Failing', 'given-up': 'Given up' } satisfies Record<
    AttemptStatus,
    string
  >,
  event: 'Event',
  recipient: 'Recipient',
  noSubject: '(no subject)',
  partial: 'Not all attempts have been searched yet. Next searches older ones.',
  url: 'URL',
  status: 'Status',
  answer: 'Answer',
  when: 'When',
  next: 'Next attempt',
  took: 'Took',
  milliseconds: (ms: number) => `${ms.toLocaleString('en')} ms`,
  number: 'Attempt',
  domain: 'Domain',
  eventId: 'Event id',
  none: 'No attempt matches',
  noneWhy: 'Clear the filters to see all attempts of the last three days.',
  noneAtAll: 'Nothing has been posted in the last three days',
  noneAtAllWhy: 'Attempts show here once a webhook is added and mail is sent.',
  oneTitle: 'Attempt',
  body: 'What is posted',
  bodyWhy: 'Besides, a request has a signature of its own, which is not kept.',
  bodyName: 'the body',
  gone: 'The event is no longer stored, so what was posted is not known any more.',
  response: 'Beginning of the answer',
  noResponse: 'The answer had no text.',
  replay: 'Replay',
  replayed: 'Queued again',
  replaySpan: 'Replay a period',
  replayWhy: 'Posts the events of this time again, with their old ids, to the webhooks registered now.',
  span: 'Period',
  spans: {
    hour: 'Last hour',
    day: 'Last 24 hours',
    today: 'Today',
    yesterday: 'Yesterday',
    own: 'Your own times',
  } satisfies Record<ReplaySpanName, string>,
  from: 'From',
  to: 'To',
  anyDomain: 'All domains',
  anyEvent: 'All events',
  start: 'Replay the events',
  spanDone: (events: number, queued: number) =>
    `${countOf(events, 'event')} found, ${countOf(queued, 'request')} queued`,
} as const
