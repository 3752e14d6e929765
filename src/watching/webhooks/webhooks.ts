/**
 * Webhooks: POSTs that report events.
 *
 * 1. `outboxStatements` adds one row per registered URL to the transaction of every event.
 * 2. The queue of POSTs claims the row; `prepare` reads the event and the current signing keys.
 * 3. Each attempt is logged in the transaction that removes or postpones the row.
 * 4. A replay writes new rows for past events, which keep their ids.
 */

import { firstIdAt } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { HttpClient, HttpOutcome } from '../../platform/posts/http-client.ts'
import type { PostKind } from '../../platform/posts/post-attempts.ts'
import type { PostQueue } from '../../platform/posts/post-queue.ts'
import { laneOf, type NewPost } from '../../platform/posts/post-rows.ts'
import { countOf } from '../../platform/store/count.ts'
import type { WebhookAttemptRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import type { EventRecord } from '../events/event.ts'
import { attemptStatement } from './attempts.ts'
import { eventDataOf, type SigningKeys, type WebhookEvent, webhookRequest } from './payload.ts'
import { redacted } from './redaction.ts'
import type { Registry, Target } from './registry.ts'
import { samplePayload } from './sample.ts'
import { openSigningKey, signingKeysOf } from './signing-key.ts'
import { typeOfEvent, type WebhookType } from './types.ts'
import { authorization, bareUrl, maskedUrl, userInfoOf } from './webhook-url.ts'

/** The kind of these POSTs in the queue. */
export const WEBHOOK = 'webhook'

interface SenderParts extends Pick<Core, 'store' | 'sealer' | 'clock'> {
  registry: Registry
  headerPrefix: string
  scheduleMs: readonly number[]
  /** Retry webhooks of type `delivered` too (rule 23). */
  retryDelivered: boolean
  /** Requests continue the trace of their message. */
  isTracing: boolean
}

/** How the queue sends webhooks. */
export function createWebhookKind(parts: SenderParts): PostKind {
  const { registry, clock } = parts
  return {
    async prepare(post) {
      const found = await readEvent(parts, post.subject)
      if (!found) return null
      const { event, type, keys, id } = found
      // Rule 26. Also holds after a change on another node: `target` queries the database before it returns null.
      const target = await registry.target(event.accountId, event.domainName, type, post.url)
      if (target === null) return null
      const { headers, body } = webhookRequest(event, keys, parts.headerPrefix, clock.now())
      const once = type === 'delivered' && !parts.retryDelivered
      return {
        url: bareUrl(target.url),
        headers: { ...headers, ...authorization(target.userInfo) },
        body,
        traceparent: parts.isTracing ? await traceOfEvent(parts.store, event) : undefined,
        retryScheduleMs: once ? [] : parts.scheduleMs,
        record: (attempt) => {
          const { domainName, payload } = event
          return [attemptStatement(post, { id, domainName, type, payload }, attempt)]
        },
      }
    },
  }
}

/** The stored event with the current keys; null: retention has deleted it. */
async function readEvent({ store, sealer }: Pick<SenderParts, 'store' | 'sealer'>, id: string) {
  const row = await store.db
    .selectFrom('events')
    .innerJoin('accounts', 'accounts.id', 'events.account_id')
    .leftJoin('accounts as parents', 'parents.id', 'accounts.parent_id')
    .leftJoin('account_settings', 'account_settings.account_id', 'events.account_id')
    .select([
      'events.account_id',
      'events.domain_name',
      'events.payload_json',
      'webhooks_redact_pii',
      'accounts.signing_key_sealed as own_key',
      'parents.id as parent_id',
      'parents.signing_key_sealed as parent_key',
    ])
    .where('events.id', '=', id)
    .executeTakeFirst()
  if (!row) return null
  const payload = JSON.parse(row.payload_json) as Record<string, unknown>
  const type = typeOfEvent(String(payload['event']), payload)
  if (type === null) return null
  const event: WebhookEvent = {
    accountId: row.account_id,
    parentId: row.parent_id,
    domainName: row.domain_name,
    payload: row.webhooks_redact_pii === 1 ? redacted(payload) : payload,
  }
  const keys: SigningKeys = {
    own: openSigningKey(sealer, row.own_key),
    parent: row.parent_key === null ? null : openSigningKey(sealer, row.parent_key),
  }
  return { id, event, type, keys }
}

/** The trace of the event's message, if that is still stored and traced: by its key, or that of a copy of a batch. */
async function traceOfEvent(
  { db }: Store,
  { accountId, payload }: WebhookEvent,
): Promise<string | undefined> {
  const key = (payload['storage'] as { key?: unknown } | undefined)?.key
  if (typeof key !== 'string' || key === '') return undefined
  const row = await db
    .selectFrom('messages')
    .select('options_json')
    .where((eb) =>
      eb.or([
        eb('id', '=', key),
        eb('id', '=', eb.selectFrom('deliveries').select('message_pk').where('deliveries.id', '=', key)),
      ]),
    )
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (!row) return undefined
  return (JSON.parse(row.options_json) as { traceparent?: string }).traceparent
}

interface WebhooksParts extends Pick<Core, 'store' | 'sealer' | 'clock'> {
  registry: Registry
  queue: PostQueue
  client: HttpClient
  headerPrefix: string
  storageUrl: string
}

interface ReplaySpan {
  /** Undefined: every domain of the account. */
  domainName: string | undefined
  /** Undefined: every registered URL. */
  url: string | undefined
  from: number
  to: number
  types: readonly WebhookType[]
}

export type Webhooks = ReturnType<typeof createWebhooks>

/** Events per replay: several minutes of work for an endpoint that answers in 100 ms. */
const REPLAY_MAX = 50_000
/** Events per query and transaction. */
const REPLAY_PAGE = 500

export function createWebhooks(parts: WebhooksParts) {
  const { store, sealer, registry, queue, client, clock } = parts
  const post = (eventId: string, { url, lane, ownerId }: Omit<Target, 'userInfo'>): NewPost => ({
    kind: WEBHOOK,
    accountId: ownerId,
    url,
    lane,
    subject: eventId,
  })

  return {
    /** Inserts the POSTs for these events, for the transaction of the events; uses only registrations in memory. */
    outboxStatements(events: readonly EventRecord[]): Statement[] {
      if (registry.isEmpty()) return []
      const posts = events.flatMap((event) => {
        const type = typeOfEvent(event.event, event.payload)
        if (type === null) return []
        const targets = registry.targets(event.accountId, event.domainName, type)
        return targets.map((target) => post(event.id, target))
      })
      return queue.statements(posts)
    },
    /** Sends one sample of a type (W6); nothing is stored. */
    async test(
      domain: { accountId: string; name: string },
      type: WebhookType,
      url: string,
    ): Promise<HttpOutcome> {
      const now = clock.now()
      const payload = samplePayload(type, domain.name, parts.storageUrl, now)
      const { parentId, ...keys } = await signingKeysOf(store, sealer, domain.accountId)
      const event = { accountId: domain.accountId, parentId, domainName: domain.name, payload }
      const request = webhookRequest(event, keys, parts.headerPrefix, now)
      const headers = { ...request.headers, ...authorization(userInfoOf(url)) }
      return client.send({ url: bareUrl(url), headers, body: request.body })
    },
    /** What a webhook about the event says, as it would be sent now; null: the event is no longer stored. */
    async eventData(eventId: string): Promise<ReturnType<typeof eventDataOf> | null> {
      const found = await readEvent({ store, sealer }, eventId)
      return found && eventDataOf(found.event)
    },
    /** Queues the event of an attempt again. @throws NotFound if its webhook or event no longer exists */
    async replayAttempt(attempt: WebhookAttemptRow): Promise<void> {
      const event = await store.db
        .selectFrom('events')
        .select(['account_id', 'domain_name'])
        .where('id', '=', attempt.event_id)
        .executeTakeFirst()
      if (!event) throw new NotFound('Event not found')
      const type = attempt.event_type as WebhookType
      if ((await registry.target(event.account_id, event.domain_name, type, attempt.url)) === null) {
        throw new NotFound('Webhook not found')
      }
      const target = { url: attempt.url, lane: laneOf(attempt.url), ownerId: attempt.account_id }
      await store.commit(queue.statements([post(attempt.event_id, target)]))
    },
    /** Queues all events of a time span again. @throws BadRequest over REPLAY_MAX */
    async replaySpan(accountId: string, span: ReplaySpan): Promise<{ events: number; queued: number }> {
      const total = await countOf(eventKeysOf(store, accountId, span))
      const wantedUrl = span.url === undefined ? undefined : maskedUrl(span.url)
      if (total > REPLAY_MAX) {
        throw new BadRequest(`${total} events match, at most ${REPLAY_MAX} can be replayed at a time`)
      }
      let events = 0
      let queued = 0
      for (let after = 0; ; ) {
        const keys = eventKeysOf(store, accountId, span)
          .select('seq')
          .where('seq', '>', after)
          .orderBy('seq')
          .limit(REPLAY_PAGE)
        const rows = await store.db
          .selectFrom('events')
          .select(['seq', 'id', 'domain_name', 'event', 'payload_json'])
          .where('seq', 'in', keys)
          .orderBy('seq')
          .execute()
        const posts: NewPost[] = []
        for (const row of rows) {
          const payload = JSON.parse(row.payload_json) as Record<string, unknown>
          const type = typeOfEvent(row.event, payload)
          if (type === null || !span.types.includes(type)) continue
          events++
          const targets = registry.targets(accountId, row.domain_name, type)
          const wanted = targets.filter(({ url }) => wantedUrl === undefined || url === wantedUrl)
          posts.push(...wanted.map((target) => post(row.id, target)))
        }
        if (posts.length > 0) await store.commit(queue.statements(posts))
        queued += posts.length
        after = rows.at(-1)?.seq ?? after
        if (rows.length < REPLAY_PAGE) return { events, queued }
      }
    },
  }
}

/** Keys of the events in the span; `failed` ones of both severities, which the column does not distinguish. */
function eventKeysOf(store: Store, accountId: string, span: ReplaySpan) {
  const names = new Set(span.types.map((type) => (type.endsWith('_fail') ? 'failed' : type)))
  const query = store.db
    .selectFrom('event_keys')
    .where('account_id', '=', accountId)
    .where('timestamp_us', '>=', Math.floor(span.from * 1000))
    .where('timestamp_us', '<=', Math.ceil(span.to * 1000))
    .where('event', 'in', [...names])
  return span.domainName === undefined ? query : query.where('domain_name', '=', span.domainName)
}

interface FailingEndpoint {
  accountId: string
  /** As registered, with the secret part of its user info masked. */
  url: string
  /** Unix milliseconds of the oldest event that it has not taken. */
  failingSince: number
}

/** An operator looks after a few; the rest follows when these work. */
const ENDPOINTS_MAX = 100
/** Attempts of an account that are searched for a success: an endpoint that is used has some among them. */
const ATTEMPTS_READ_MAX = 20_000

/**
 * Skips from lane to lane in the index of failing rows, so that a lane with 100,000 of them costs as much as one with a
 * single row.
 */
const FAILING_LANES = `WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM outgoing_posts WHERE attempts > 0
    UNION ALL
    SELECT (SELECT min(p.lane) FROM outgoing_posts p WHERE p.attempts > 0 AND p.lane > lanes.lane)
    FROM lanes WHERE lanes.lane IS NOT NULL),
  heads AS (SELECT (SELECT p.id FROM outgoing_posts p WHERE p.attempts > 0 AND p.lane = lanes.lane
    ORDER BY p.created_at LIMIT 1) AS id FROM lanes WHERE lanes.lane IS NOT NULL)
  SELECT p.account_id, p.url, p.created_at FROM heads JOIN outgoing_posts p ON p.id = heads.id
  WHERE p.kind = ? AND p.created_at <= ? ORDER BY p.created_at LIMIT ?`

const SUCCESSES = `SELECT DISTINCT url FROM (SELECT url, status FROM webhook_attempts
  WHERE account_id = ? AND id > ? ORDER BY id DESC LIMIT ${ATTEMPTS_READ_MAX}) newest WHERE status = 'ok'`

/** Endpoints that have taken nothing since `since` (Unix milliseconds), though an older event waits for them. */
export async function failingEndpoints(store: Store, since: number): Promise<FailingEndpoint[]> {
  const rows = await store.read({
    sql: FAILING_LANES,
    values: [WEBHOOK, Math.floor(since), ENDPOINTS_MAX],
  })
  const byAccount = Map.groupBy(rows, (row) => String(row['account_id']))
  const failing: FailingEndpoint[] = []
  for (const [accountId, ofAccount] of byAccount) {
    const working = await store.read({ sql: SUCCESSES, values: [accountId, firstIdAt(since)] })
    const urls = new Set(working.map((row) => String(row['url'])))
    for (const row of ofAccount) {
      const [url, failingSince] = [String(row['url']), Number(row['created_at'])]
      if (!urls.has(url)) failing.push({ accountId, url, failingSince })
    }
  }
  return failing
}
