/** Where events are sent (docs/api/event-sinks.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export type Sink = Api.EventSink
export type SinkKind = Sink['kind']

export const SINKS_KEY = 'event-sinks'
const PATH = '/sendwright/v1/event-sinks'
const REFRESH_MS = 5_000
const pathOf = (name: string) => `${PATH}/${encodeURIComponent(name)}` as const

export const sinksQuery = queryOptions({
  queryKey: [SINKS_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(PATH, signal)).items,
  refetchInterval: REFRESH_MS,
})

/** What its owner decides; the rest is its state. */
const STATE = [
  ...['name', 'behind_seconds', 'sent', 'sent_at', 'skipped', 'skipped_from', 'skipped_to'],
  ...['failing_since', 'last_error', 'warning', 'created_at', 'updated_at'],
]
const settingsOf = (sink: Sink): Partial<Sink> =>
  Object.fromEntries(Object.entries(sink).filter(([name]) => !STATE.includes(name)))

export type SinkSettings = Partial<Sink> & { secret?: string; from?: 'oldest' | 'now' }

export const saveSink = async (name: string, settings: SinkSettings) =>
  valueOrThrow(await sendJson('PUT', pathOf(name), settings))

/** Changes some settings; the others and the secret stay. */
export const changeSink = (sink: Sink, change: SinkSettings) =>
  saveSink(sink.name, { ...settingsOf(sink), ...change })

export const removeSink = async (name: string) => valueOrThrow(await sendJson('DELETE', pathOf(name)))

type Text = 'url' | 'topic' | 'bucket' | 'region' | 'prefix' | 'vhost' | 'user' | 'access_key_id' | 'secret'
export type Field = Text | 'servers' | 'format' | 'mechanism' | 'tls'

/** Fields of each kind; `!` marks what it needs. */
const FIELDS_OF: Record<SinkKind, readonly (Field | `${Field}!`)[]> = {
  http: ['url!', 'format', 'secret'],
  s3: ['url!', 'bucket!', 'access_key_id!', 'secret!', 'region', 'prefix'],
  nats: ['servers!', 'topic!', 'user', 'secret', 'tls'],
  amqp: ['servers!', 'topic!', 'vhost', 'user', 'secret', 'tls'],
  kafka: ['servers!', 'topic!', 'user', 'secret', 'mechanism', 'tls'],
  syslog: ['servers!', 'tls'],
  stdout: [],
}
export const KINDS = Object.keys(FIELDS_OF) as SinkKind[]

export const fieldsOf = (kind: SinkKind): { field: Field; isNeeded: boolean }[] =>
  FIELDS_OF[kind].map((mark) => ({ field: mark.replace('!', '') as Field, isNeeded: mark.endsWith('!') }))
