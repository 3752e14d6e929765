/** Event sinks as the API shows and takes them (event-sinks.md). */
import {
  type Fields,
  flag,
  integer,
  list,
  named,
  nullable,
  type Of,
  type Optional,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../base/time/durations.ts'

export const SINK_KINDS = ['http', 's3', 'syslog', 'stdout', 'nats', 'amqp', 'kafka'] as const
export type SinkKindName = (typeof SINK_KINDS)[number]

export const BEHIND_DEFAULT_SECONDS = (3 * DAY_MS) / SECOND_MS
const FILTER = { maxItems: 100 }
const KIND = oneOf('Where events go', SINK_KINDS)
const FORMATS = ['json-lines', 'json-array', 'elasticsearch-bulk'] as const
const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const

const optionals = <F extends Fields>(fields: F) =>
  Object.fromEntries(Object.entries(fields).map(([name, shape]) => [name, optional(shape)])) as {
    [N in keyof F]: Optional<Of<F[N]>>
  }

const SETTINGS = optionals({
  url: text('Of http: where batches are posted. Of s3: the endpoint', {
    example: 'https://clickhouse.example.com/?query=INSERT%20INTO%20events%20FORMAT%20JSONEachRow',
    only: { maxLength: 2048, format: 'uri' },
  }),
  format: oneOf('Of http: the form of a batch', FORMATS),
  gzip: flag('Of http: whether batches are compressed. Default: unless the receiver is on this machine'),
  bucket: text('Of s3: the bucket', { only: { pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$' } }),
  region: text('Of s3: the region', { only: { pattern: '^[a-z0-9-]{1,40}$' } }),
  prefix: text('Of s3: what the names of objects begin with', {
    example: 'events/',
    // One way to match a text: nested repetition would take a thread for minutes.
    only: { pattern: '^(?:[A-Za-z0-9._=-]+(?:/[A-Za-z0-9._=-]+)*/?)?$', maxLength: 200 },
  }),
  access_key_id: text('Of s3: id of the access key', { only: { pattern: '^[A-Za-z0-9]{3,128}$' } }),
  servers: list(
    'Of nats and kafka: the first servers to ask. Of amqp and syslog: one server',
    text('host or host:port', {
      example: 'broker.example.com:9092',
      only: { pattern: '^(?:\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?$' },
    }),
    { only: { minItems: 1, maxItems: 10 } },
  ),
  tls: flag('Of syslog, nats, amqp and kafka: whether connections are TLS'),
  topic: text(
    'Of kafka: the topic. Of amqp: the exchange. Of nats: what subjects begin with, before the type of the event',
    { example: 'sendwright', only: { pattern: '^[A-Za-z0-9._-]{1,200}$' } },
  ),
  vhost: text('Of amqp: the virtual host', { only: { minLength: 1, maxLength: 200 } }),
  user: text('Of nats, amqp and kafka: the name that the secret is for', {
    only: { minLength: 1, maxLength: 200 },
  }),
  mechanism: oneOf('Of kafka: how the secret is proven', MECHANISMS),
  paused: flag('Whether it takes nothing until this is false'),
  accounts: list('Only events of these accounts', text('Account id', { only: { maxLength: 64 } }), {
    only: FILTER,
  }),
  domains: list('Only events of these sending domains', text('Domain', { only: { maxLength: 253 } }), {
    only: FILTER,
  }),
  events: list(
    'Only events of these types',
    text('Type', { example: 'delivered', only: { pattern: '^[a-z_]{1,40}$' } }),
    { only: FILTER },
  ),
  behind_max_seconds: integer(
    'How far it may fall behind: events older than this are skipped while it takes nothing, and counted. Retention keeps events for it that long',
    { unit: 'seconds', only: { minimum: HOUR_MS / SECOND_MS, maximum: (30 * DAY_MS) / SECOND_MS } },
  ),
})

export const SINK_NAME = text('Name', {
  example: 'warehouse',
  only: { pattern: '^[a-z0-9][a-z0-9._-]{0,31}$' },
})

export type GivenSink = Of<typeof SINK_BODY>
export const SINK_BODY = object('An event sink; absent members have their defaults', {
  kind: KIND,
  secret: optional(
    text(
      'Of http: the value of the header Authorization. Of s3: the secret access key. Of brokers: password, or for nats without `user` a token. Absent: that which is stored, while it goes to the same place',
      { only: { minLength: 1, maxLength: 4096, pattern: '^[\\x20-\\x7e]+$' } },
    ),
  ),
  from: optional(
    oneOf('For a new sink: whether it begins with the oldest event that is kept, or with the next one', [
      'oldest',
      'now',
    ]),
  ),
  ...SETTINGS,
})

export type SinkView = Of<typeof SINK>
export const SINK = named('EventSink', 'Where events are sent; without its secret', {
  name: SINK_NAME,
  kind: KIND,
  ...SETTINGS,
  warning: nullable(
    text('What is unsafe about it, such as a password that is sent without TLS; null: nothing'),
  ),
  behind_seconds: integer('Age of the oldest event that it has not taken; 0: it has all', {
    unit: 'seconds',
  }),
  sent: integer('Events that it has taken'),
  sent_at: nullable(rfc3339('When it took the last ones')),
  skipped: integer('Events that it missed, because it had taken nothing for too long'),
  skipped_from: nullable(rfc3339('When the first of these happened')),
  skipped_to: nullable(rfc3339('When the last of these happened')),
  failing_since: nullable(rfc3339('Since when it takes nothing; null: it does')),
  last_error: nullable(text('Why')),
  created_at: rfc3339('When it was made'),
  updated_at: rfc3339('When it was changed last'),
})
export const SINKS = object('Event sinks', { items: list('By name', SINK) })
