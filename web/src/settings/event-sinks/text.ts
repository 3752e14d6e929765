/** Texts of the page of event sinks. */
import type { Field, Sink, SinkKind } from './sinks-api.ts'

export const TEXT = {
  title: 'Event sinks',
  lead: 'Every event of the service, sent as it happens to a broker, a warehouse or a log collector. Delivery never waits for one.',
  add: 'Add an event sink',
  create: 'Add it',
  save: 'Save',
  saved: 'Event sink saved',
  added: (name: string) => `${name} gets events from now on`,
  name: 'Name',
  namePlaceholder: 'warehouse',
  kind: 'Kind',
  kinds: {
    http: 'HTTP (ClickHouse, Elasticsearch)',
    s3: 'Bucket (S3)',
    nats: 'NATS JetStream',
    amqp: 'AMQP (RabbitMQ)',
    kafka: 'Kafka',
    syslog: 'Syslog',
    stdout: 'Standard output',
  } satisfies Record<SinkKind, string>,
  fields: {
    url: 'URL',
    servers: 'Server',
    topic: 'Topic',
    bucket: 'Bucket',
    region: 'Region',
    prefix: 'Names of objects begin with',
    vhost: 'Virtual host',
    user: 'User',
    access_key_id: 'Id of the access key',
    secret: 'Secret',
    format: 'Form of a batch',
    mechanism: 'How the password is proven',
    tls: 'Connect with TLS',
  } satisfies Record<Field, string>,
  why: {
    http: { url: 'Batches are posted there.', secret: 'The whole value of the header Authorization.' },
    s3: { url: 'The endpoint, without a path.', secret: 'The secret access key.' },
    nats: {
      servers: 'host:port, several with commas.',
      topic: 'Subjects are this, a dot, and the type of the event.',
      secret: 'A password with a user, else a token.',
    },
    amqp: { servers: 'host:port', topic: 'The exchange; the routing key is the type of the event.' },
    kafka: { servers: 'host:port, several with commas.', topic: '' },
    syslog: { servers: 'host:port' },
    stdout: {},
  } as Readonly<Record<SinkKind, Partial<Record<Field, string>>>>,
  secretKept: 'Empty: the one that is stored, while it goes to the same place.',
  formats: {
    'json-lines': 'JSON, one event on a line',
    'json-array': 'A JSON array',
    'elasticsearch-bulk': 'Elasticsearch, bulk',
  } satisfies Record<NonNullable<Sink['format']>, string>,
  mechanisms: ['scram-sha-512', 'scram-sha-256', 'plain'] as const,
  events: 'Only these events',
  eventsWhy: 'Such as delivered, failed. Empty: all.',
  from: 'Begin with',
  froms: [
    ['now', 'the next event'],
    ['oldest', 'the oldest event that is kept'],
  ] as const,
  sink: 'Sink',
  changeOf: (name: string) => `Change ${name}`,
  state: 'State',
  states: { ok: 'Takes events', failing: 'Takes nothing', paused: 'Paused' },
  since: 'since',
  skipped: (count: number) =>
    `Missed ${count.toLocaleString('en')} ${count === 1 ? 'event' : 'events'}, which happened`,
  skippedWhy: 'It had taken nothing for too long: they were skipped.',
  until: 'to',
  behind: 'Behind by',
  behindMeans: 'Age of the oldest event that it has not taken',
  notBehind: 'nothing',
  sent: 'Sent',
  sentLast: 'last',
  pause: 'Pause',
  pauseOf: (name: string) => `Pause ${name}`,
  paused: (name: string) => `${name} is paused. Its events wait`,
  resume: 'Resume',
  resumeOf: (name: string) => `Resume ${name}`,
  resumed: (name: string) => `${name} goes on where it was`,
  remove: 'Remove',
  removeOf: (name: string) => `Remove ${name}`,
  removeTitle: 'Remove this event sink?',
  removeWhy: (name: string) =>
    `${name} gets no further events, and its place among them and its secret are forgotten. What it has got stays there.`,
  removed: (name: string) => `${name} removed`,
  none: 'No event sinks',
  noneWhy: 'Send events to where you keep history, and the queue’s own database stays small.',
} as const

/** What the errors of connections mean; the first that fits. */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'Nothing listens there.'],
  [/ENOTFOUND|EAI_AGAIN/, 'The name has no address.'],
  [/EHOSTUNREACH|ENETUNREACH/, 'No way leads there.'],
  [/ECONNRESET|EPIPE|closed the connection/, 'It closed the connection.'],
  [/certificate|self.signed/i, 'Its TLS certificate is not accepted.'],
  [/timeout|timed out|ETIMEDOUT/i, 'It does not answer in time.'],
  [/^40[13] |auth|ACCESS.REFUSED|Signature|AccessDenied/i, 'It does not accept the secret.'],
  [/^404 |NoSuchBucket|NOT_FOUND|unknown.topic/i, 'What events are sent to does not exist there.'],
  [/no queue is bound/, 'No queue of the broker wants these events.'],
  [/no stream matches|no responders|503$/i, 'No stream of the broker wants these events.'],
  [/^5\d\d /, 'It has failed itself.'],
  [/document was refused/, 'It refuses a document, and those after it wait.'],
]

/** One sentence about an error, and the error itself. */
export function errorWords(error: string): string {
  const meaning = MEANINGS.find(([pattern]) => pattern.test(error))?.[1]
  return meaning === undefined ? error : `${meaning} (${error})`
}

/** 90 as "90 s", 5400 as "90 min", days beyond two of them. */
export function lagWords(seconds: number): string {
  if (seconds === 0) return TEXT.notBehind
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}
