/** The sinks of the service: how a request becomes a row, and a row a connection. */
import { BadRequest, NotFound, present } from '../../base/process/errors.ts'
import { SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { confidentialUrl } from '../../platform/config/parsers.ts'
import { storedUrlFault, withAdvice } from '../../platform/posts/http-client.ts'
import type { EventSinkRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { cursorOf } from '../events/follower.ts'
import { settledPosition } from '../events/search/walk.ts'
import { amqpSink } from './kinds/amqp.ts'
import { httpSink } from './kinds/http.ts'
import { kafkaSink } from './kinds/kafka.ts'
import { stdoutSink, syslogSink } from './kinds/lines.ts'
import { natsSink } from './kinds/nats.ts'
import { s3Sink } from './kinds/s3.ts'
import type { GivenSink, SinkKindName, SinkView } from './shapes.ts'
import { shownError, shownUrl, sinkWarning } from './shown-sink.ts'
import type { SinkConnection, SinkKind, SinkSettings } from './sink.ts'

export const KINDS: Readonly<Record<SinkKindName, SinkKind>> = {
  http: httpSink,
  s3: s3Sink,
  syslog: syslogSink,
  stdout: stdoutSink,
  nats: natsSink,
  amqp: amqpSink,
  kafka: kafkaSink,
}

/** Settings of every kind. */
const COMMON: readonly string[] = ['paused', 'accounts', 'domains', 'events', 'behind_max_seconds']
const SEALED_AS = 'event-sink'
/** Each reads all events. */
const SINKS_MAX = 20

/** The row in `event_followers` that holds the place of a sink: retention waits for it. */
export const followerOf = (name: string) => `sink:${name}`

export type KnownSinks = ReturnType<typeof createKnownSinks>

export function createKnownSinks({
  store,
  sealer,
  clock,
  httpClient,
  config,
}: Pick<Core, 'store' | 'sealer' | 'clock' | 'httpClient' | 'config'>) {
  const { db } = store

  const find = (name: string) =>
    db.selectFrom('event_sinks').selectAll().where('name', '=', name).executeTakeFirst()

  /** @throws BadRequest */
  async function given(body: GivenSink, before: EventSinkRow | undefined) {
    const { kind, secret, from: _, ...settings } = before === undefined ? body : withStoredUrl(body, before)
    const { needs, takes, secret: rule } = KINDS[kind]
    for (const name of Object.keys(settings))
      if (!COMMON.includes(name) && !(takes as readonly string[]).includes(name))
        throw new BadRequest(`${name} is not for ${kind}`)
    const missing = needs.find((name) => settings[name] === undefined)
    if (missing !== undefined) throw new BadRequest(`Missing mandatory parameter: ${missing}`)
    await checkUrl(kind, settings, secret)
    if (secret !== undefined && rule === 'none') throw new BadRequest(`secret is not for ${kind}`)
    // A stored secret goes nowhere else than where it was for.
    const stays =
      before?.kind === kind && destination(JSON.parse(before.settings_json)) === destination(settings)
    const isKept = secret === undefined && stays && before.secret_sealed !== null
    if (secret === undefined && !isKept && rule === 'needed')
      throw new BadRequest('Missing mandatory parameter: secret')
    return { kind, settings_json: JSON.stringify(settings), secret, isKept }
  }

  async function checkUrl(kind: SinkKindName, { url }: SinkSettings, secret: string | undefined) {
    if (url === undefined) return
    if (kind === 's3' ? !isOrigin(url) : secret !== undefined && confidentialUrl(url) === null)
      throw new BadRequest('Invalid parameter: url')
    const fault = kind === 'http' ? await storedUrlFault(httpClient, url) : null
    if (fault !== null) throw new BadRequest(`Invalid parameter: url: ${withAdvice(fault)}`)
  }

  const secretOf = ({ secret_sealed: sealed, name }: EventSinkRow): string =>
    sealed === null ? '' : sealer.open(SEALED_AS, sealed, name).toString()

  return {
    list: (): Promise<EventSinkRow[]> => db.selectFrom('event_sinks').selectAll().orderBy('name').execute(),

    /** @throws NotFound */
    async one(name: string): Promise<EventSinkRow> {
      return present(await find(name), 'Event sink not found')
    },

    /** @throws BadRequest for a fault, a missing secret, or over SINKS_MAX */
    async put(name: string, body: GivenSink): Promise<EventSinkRow> {
      const now = Math.floor(clock.now())
      const before = await find(name)
      if (before && body.from !== undefined) throw new BadRequest('from is for a new event sink')
      const { secret, isKept, ...row } = await given(body, before)
      const change = {
        ...row,
        ...(!isKept && { secret_sealed: secret === undefined ? null : sealer.seal(SEALED_AS, secret, name) }),
        ...{ failing_since: null, last_error: null, updated_at: now },
      }
      const { tx, seq } = await settledPosition(store)
      // A place is that of the last event that was read.
      const start = body.from === 'oldest' ? { tx: 0, seq: 0 } : { tx, seq: seq - 1 }
      await store.transaction(async (tx) => {
        const names = await tx.selectFrom('event_sinks').select('name').execute()
        if (names.length >= SINKS_MAX && !names.some((one) => one.name === name))
          throw new BadRequest(`at most ${SINKS_MAX} event sinks`)
        await tx
          .insertInto('event_sinks')
          .values({ name, ...NEW, secret_sealed: null, ...change, created_at: now })
          .onConflict((conflict) => conflict.column('name').doUpdateSet(change))
          .execute()
        await tx
          .insertInto('event_followers')
          .values({ name: followerOf(name), ...start })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute()
      })
      return (await find(name)) as EventSinkRow
    },

    /** @throws NotFound */
    async remove(name: string): Promise<void> {
      await store.transaction(async (tx) => {
        const { numDeletedRows } = await tx
          .deleteFrom('event_sinks')
          .where('name', '=', name)
          .executeTakeFirst()
        if (Number(numDeletedRows) === 0) throw new NotFound('Event sink not found')
        await tx.deleteFrom('event_followers').where('name', '=', followerOf(name)).execute()
      })
    },

    open(row: EventSinkRow): Promise<SinkConnection> {
      const secret = secretOf(row)
      const settings = settingsOf(row)
      return KINDS[row.kind].open({ settings, secret, client: httpClient, hostname: config.hostname })
    },

    /** An error of the sink for its log line and `last_error`. */
    shownError: (row: EventSinkRow, words: string) => shownError(words, settingsOf(row), secretOf(row)),

    /** Milliseconds between now and the oldest event that the sink has not read; 0: there is none. */
    async behindMs({ name }: Pick<EventSinkRow, 'name'>): Promise<number> {
      const at = await oldestAfter(store, followerOf(name))
      return at === null ? 0 : Math.max(0, clock.now() - at)
    },
  }
}

const NEW = { sent: 0, sent_at: null, skipped: 0, skipped_from: null, skipped_to: null } as const

export const settingsOf = ({ settings_json: json }: Pick<EventSinkRow, 'settings_json'>): SinkSettings =>
  JSON.parse(json) as SinkSettings

/** Since when it takes nothing, in Unix milliseconds, and why; null: it takes events. */
export function stopOf(row: EventSinkRow): { since: number; reason: string } | null {
  if (settingsOf(row).paused) return { since: Number(row.updated_at), reason: 'paused' }
  return row.failing_since === null
    ? null
    : { since: Number(row.failing_since), reason: row.last_error ?? 'it fails' }
}

/** Where it leads and how it is proven there: what a secret is for. PLAIN shows what SCRAM does not. */
const destination = ({ url, servers, tls, bucket, user, access_key_id, mechanism }: SinkSettings) =>
  JSON.stringify([url, servers, tls, bucket, user, access_key_id, mechanism])

/** A view leaves out the values of the query, so what is put back as it was shown means the stored one. */
function withStoredUrl(body: GivenSink, before: EventSinkRow): GivenSink {
  const { url } = settingsOf(before)
  return url !== undefined && body.kind === before.kind && body.url === shownUrl(url)
    ? { ...body, url }
    : body
}

/** An address without a path, as S3 signs for. */
function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href
}

async function oldestAfter(store: Store, follower: string): Promise<number | null> {
  const { tx, seq } = await cursorOf(store, follower)
  const [after, values] = store.kind === 'sqlite' ? ['seq > ?', [seq]] : ['(tx, seq) > (?, ?)', [tx, seq]]
  const order = store.kind === 'sqlite' ? 'seq' : 'tx, seq'
  const sql = `SELECT timestamp_us FROM events WHERE ${after} ORDER BY ${order} LIMIT 1`
  const [row] = await store.read({ sql, values: values as number[] })
  return row === undefined ? null : Number(row['timestamp_us']) / 1000
}

const dateOf = (ms: number | null) => (ms === null ? null : new Date(Number(ms)).toISOString())

const shownSettings = ({ url, ...others }: SinkSettings): SinkSettings =>
  url === undefined ? others : { url: shownUrl(url), ...others }

export const sinkView = (row: EventSinkRow, behindMs: number): SinkView => ({
  ...{ name: row.name, kind: row.kind },
  ...shownSettings(settingsOf(row)),
  warning: sinkWarning(row, settingsOf(row)),
  behind_seconds: Math.floor(behindMs / SECOND_MS),
  ...{ sent: Number(row.sent), sent_at: dateOf(row.sent_at), skipped: Number(row.skipped) },
  ...{ skipped_from: dateOf(row.skipped_from), skipped_to: dateOf(row.skipped_to) },
  ...{ failing_since: dateOf(row.failing_since), last_error: row.last_error },
  ...{ created_at: dateOf(row.created_at) as string, updated_at: dateOf(row.updated_at) as string },
})
