import { countOf } from '../base/format.ts'
import type { FilterName, QueueAction, QueueFilter } from './delivery-api.ts'
import type { View } from './delivery-search.ts'

const messages = (count: number) => countOf(count, 'message')

export const TEXT = {
  title: 'Delivery',
  lead: 'What waits to be delivered, how fast it goes now, and what holds it. Each of your addresses has a queue for each provider. Counts are of recipients.',
  act: 'Act on the queue',
  actOn: (what: string) => `Act on mail of ${what}`,
  find: 'Find a queue, provider or domain',
  view: 'Show by',
  views: { lanes: 'Queues', destinations: 'Destinations', senders: 'Sending domains' } satisfies Record<
    View,
    string
  >,
  waiting: 'Waiting',
  due: 'Due now',
  deferred: 'Deferred',
  paused: 'Paused',
  means: {
    lane: 'Mail from one of your addresses to one provider. It has limits and a pace of its own, and backs off when the provider asks for it.',
    due: 'Recipients whose next attempt is due: they leave as fast as the queue allows.',
    deferred: 'Recipients whose server said “not now”. They are tried again by themselves.',
    rate: 'The most connections at a time, and the most messages in a while.',
  },
  lanesHeld: 'Queues backed off',
  lane: 'Queue',
  group: (provider: string, lanes: number, queued: number) =>
    `${provider}: ${countOf(lanes, 'queue')}, ${queued.toLocaleString('en')} waiting`,
  reasons: {
    empty: 'Nothing waits',
    paused: 'Everything in it was paused',
    due: 'Due: waits for a connection or its rate',
    deferred: (count: number) => `${messages(count)} deferred before, waiting for the next attempt`,
    scheduled: 'Nothing is due yet',
  },
  recipientDomain: 'Destination',
  sendingDomain: 'Sending domain',
  connections: 'Connections',
  rate: 'Limit',
  state: 'State',
  oldestDue: 'Oldest due',
  oldest: 'Oldest',
  unknownReplies: 'Replies that no rule knows',
  unknownRepliesLead: (days: number) =>
    `The most frequent ones of the last ${days} days. They never suppress an address. Numbers and addresses are masked; a file of rules of your own can say what they mean.`,
  reply: 'Reply',
  failures: 'Failures',
  newest: 'Newest',
  connectionsOf: (now: number, max: number | null) => (max === null ? String(now) : `${now} of ${max}`),
  perSecond: (count: number) => `${count.toLocaleString('en', { maximumFractionDigits: 2 })} a second`,
  perConnection: (count: number) => `${count} a connection`,
  noLimit: 'none',
  from: (source: string) => (source === 'any' ? 'from any address' : `from ${source}`),
  backedOff: 'Backed off',
  blocked: 'Address blocked',
  probing: 'Blocked address is tried',
  listed: 'Address on a blocklist',
  until: 'until',
  delivering: 'Delivering',
  idle: 'Waiting',
  allPaused: 'Paused',
  nothing: 'Nothing waits',
  nothingWhy:
    'All accepted mail has been delivered or has failed for good. New mail shows here while it is on its way.',
  nothingFound: (q: string) => `Nothing here has “${q}” in its name`,
  nothingFoundWhy: 'Clear the search to see all.',
  more: (count: number) => `${count.toLocaleString('en')} more; the search finds them.`,
} as const

export const HELD_TEXT = {
  title: 'Kept by the content check',
  lead: 'These texts look like spam or have a virus, and wait for you. A decision is for all messages of an account with the text, and for a week for new ones.',
  leadOfOthers: 'These texts look like spam or have a virus, and wait for the operator of this service.',
  message: 'Message',
  reason: 'Found',
  messages: 'Messages',
  since: 'Since',
  release: 'Send',
  releaseOf: (subject: string) => `Send “${subject}”`,
  releaseConsequence: 'Its messages are sent now, and new ones with this text for a week.',
  released: (count: number) => `${messages(count)} on the way`,
  drop: 'Drop',
  dropOf: (subject: string) => `Drop “${subject}”`,
  dropConsequence:
    'Its messages are not sent, nor new ones with this text for a week. This cannot be undone.',
  dropped: (count: number) => `Dropped ${messages(count)}`,
} as const

export const ACTION_TEXT = {
  title: 'Act on the queue',
  what: 'What to do',
  labels: {
    pause: 'Pause',
    resume: 'Resume',
    retry: 'Retry now',
    move: 'Move',
    drop: 'Drop',
  } satisfies Record<QueueAction, string>,
  meanings: {
    pause: 'Keeps it in the queue until it is resumed, or until its delivery window ends',
    resume: 'Delivers it when it was due before the pause',
    retry: 'Makes it due now, also what is deferred or paused',
    move: 'Sends it from another pool of addresses',
    drop: 'Cancels it for good, with an event “rejected”',
  } satisfies Record<QueueAction, string>,
  which: 'Which mail',
  narrow: 'Narrow down',
  filters: {
    recipient_domain: 'Destination (domain)',
    provider: 'Provider',
    lane: 'Queue',
    domain: 'Sending domain',
    tag: 'Tag',
    message_id: 'Message id',
    older_than: 'Older than',
  } satisfies Record<FilterName, string>,
  placeholders: {
    recipient_domain: 'gmail.com',
    provider: 'Gmail',
    lane: '',
    domain: 'mail.example.com',
    tag: 'newsletter',
    message_id: '',
    older_than: '',
  } satisfies Record<FilterName, string>,
  ages: [
    ['', 'any age'],
    ['10m', '10 minutes'],
    ['1h', '1 hour'],
    ['6h', '6 hours'],
    ['1d', '1 day'],
    ['3d', '3 days'],
  ] as const,
  pool: 'To the pool',
  sharedPool: 'Shared addresses',
  needsFilter: 'Say which mail: one field at least.',
  needsPool: 'Choose the pool.',
  counting: 'Counting…',
  sentence: {
    pause: (count: number, to: string) => `Stops ${messages(count)}${to}.`,
    resume: (count: number, to: string) => `Resumes ${messages(count)}${to}.`,
    retry: (count: number, to: string) => `Delivers ${messages(count)}${to} as soon as their queues allow.`,
    move: (count: number, to: string) => `Moves ${messages(count)}${to}.`,
    drop: (count: number, to: string) => `Cancels ${messages(count)}${to}. This cannot be undone.`,
  } satisfies Record<QueueAction, (count: number, to: string) => string>,
  none: {
    pause: 'No mail to pause matches.',
    resume: 'No paused mail matches.',
    retry: 'No mail that waits matches.',
    move: 'No mail that waits matches.',
    drop: 'No mail that waits matches.',
  } satisfies Record<QueueAction, string>,
  later: 'Only mail that waits now; what is accepted later is not affected.',
  done: {
    pause: (count: number) => `Paused ${messages(count)}`,
    resume: (count: number) => `Resumed ${messages(count)}`,
    retry: (count: number) => `${messages(count)} due now`,
    move: (count: number) => `Moved ${messages(count)}`,
    drop: (count: number) => `Dropped ${messages(count)}`,
  } satisfies Record<QueueAction, (count: number) => string>,
  button: (action: QueueAction, count: number | undefined) =>
    count === undefined || count === 0
      ? ACTION_TEXT.labels[action]
      : `${ACTION_TEXT.labels[action]}: ${messages(count)}`,
  typeToDrop: (count: number) => `drop ${count}`,
  typeLabel: 'to confirm',
  type: 'Type',
  cancel: 'Cancel',
} as const

/** " to gmail.com of mail.example.com with the tag news": what a filter means, after "12 messages". */
export function filterWords(filter: QueueFilter): string {
  const { recipient_domain, provider, lane, domain, tag, message_id, older_than } = filter
  return [
    recipient_domain && ` to ${recipient_domain}`,
    provider && ` to ${provider}`,
    lane && ` in the queue ${lane}`,
    domain && ` from ${domain}`,
    tag && ` with the tag ${tag}`,
    message_id && ' of this message',
    older_than && ` older than ${older_than}`,
  ]
    .filter(Boolean)
    .join('')
}
