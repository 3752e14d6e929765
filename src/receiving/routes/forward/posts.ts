/**
 * POSTs of received mail (routes-inbound.md sections 6 to 9): a row of `route_posts` for what is to be posted, and a row of
 * the queue (src/platform/posts) that names it. Both end together, with the event of the last attempt.
 */

import { newId } from '../../../base/ids.ts'
import { STATUS_CODES } from '../../../base/net/node-http.ts'
import { VERSION } from '../../../base/process/version.ts'
import { CODE_TOO_OLD } from '../../../mail/deliver/attempt/outcome.ts'
import { eventMessage } from '../../../mail/record/event-message.ts'
import type { MessageRecord, MessageRecords } from '../../../mail/record/record.ts'
import type { Attempt, PostKind } from '../../../platform/posts/post-attempts.ts'
import type { PostQueue } from '../../../platform/posts/post-queue.ts'
import { laneOf } from '../../../platform/posts/post-rows.ts'
import { removeRows } from '../../../platform/store/commits.ts'
import type { RoutePostRow } from '../../../platform/store/schema.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import { insertMany, type Statement, type Store } from '../../../platform/store/store.ts'
import type { DomainDirectory } from '../../../sending/domains/names/directory.ts'
import {
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  type EventRecorder,
  failedEvent,
} from '../../../watching/events/event.ts'
import { postedEvent } from '../../../watching/events/later-events.ts'
import { readSigningKey } from '../../../watching/webhooks/signing-key.ts'
import { bareUrl, basicAuthorization, maskedUrl, userInfoOf } from '../../../watching/webhooks/webhook-url.ts'
import { attemptForm } from './form.ts'
import { createPostedForms, type PostedFormParts, type PostedForms } from './posted-forms.ts'

export interface NewRoutePost {
  kind: 'forward' | 'notify'
  url: string
  /** Envelope recipient. */
  recipient: string
}

export type RoutePosts = ReturnType<typeof createRoutePosts>

interface RoutePostParts extends Omit<PostedFormParts, 'idleMs'> {
  store: Store
  sealer: Sealer
  queue: Pick<PostQueue, 'addKind' | 'statements'>
  records: Pick<MessageRecords, 'byId'>
  domains: Pick<DomainDirectory, 'byId'>
  recorder: EventRecorder
  storageUrl: string
  scheduleMs: readonly number[]
}

const KIND = 'route'
const PURPOSE = 'route-post-url'
/** routes-inbound.md section 9 rule 2. */
const CONNECT_MAX_MS = 10_000
const TOTAL_MAX_MS = 60_000
/** How much longer a form is kept than the longest pause between two attempts: a lane may be busy. */
const IDLE_BEYOND_MS = 600_000

export function createRoutePosts(parts: RoutePostParts) {
  const { store, sealer, queue, clock, scheduleMs } = parts
  const forms = createPostedForms({ ...parts, idleMs: Math.max(0, ...scheduleMs) + IDLE_BEYOND_MS })
  queue.addKind(KIND, { prepare: (row) => prepare(parts, forms, row.subject) })
  return {
    /** For the transaction that stores the message; to be committed right away or not at all. */
    statements(record: MessageRecord, posts: readonly NewRoutePost[]): Statement[] {
      const now = Math.floor(clock.now())
      const rows = posts.map(
        ({ kind, url, recipient }): RoutePostRow => ({
          id: newId(now),
          account_id: record.accountId,
          domain_id: record.domainId,
          message_pk: record.id,
          recipient,
          kind,
          url_sealed: sealer.seal(PURPOSE, url),
          created_at: now,
        }),
      )
      const queued = posts.map(({ url }, at) => ({
        kind: KIND,
        accountId: record.accountId,
        url: maskedUrl(url),
        // Per host: a slow one delays no other, and gets few POSTs at once (routes-inbound.md section 9 rule 5).
        lane: laneOf(`route ${new URL(bareUrl(url)).host}`),
        subject: (rows[at] as RoutePostRow).id,
      }))
      return [...insertMany('route_posts', rows), ...queue.statements(queued)]
    },
    /** Removes those of a deleted domain; their rows in the queue end with their next attempt. */
    removeDomain: (domainId: string): Promise<void> =>
      removeRows(store, {
        from: 'route_posts',
        key: 'id',
        where: 'domain_id = ? ORDER BY id',
        values: [domainId],
      }),
    close: () => forms.close(),
  }
}

async function prepare(
  parts: RoutePostParts,
  forms: PostedForms,
  id: string,
): ReturnType<PostKind['prepare']> {
  const row = await parts.store.db
    .selectFrom('route_posts')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst()
  const record = row ? await parts.records.byId(row.message_pk) : null
  const domain = row ? await parts.domains.byId(row.domain_id) : null
  if (!row || !record || !domain) return null
  const url = parts.sealer.open(PURPOSE, row.url_sealed).toString()
  const userInfo = userInfoOf(url)
  const messageUrl = eventMessage(record, parts.storageUrl, record.id, record.summary).storageUrl
  const signingKey = await readSigningKey(parts.store, parts.sealer, row.account_id)
  const kind = row.kind === 'notify' ? 'notify' : isRaw(url) ? 'raw' : 'parsed'
  const { form, done } = await forms.use(record, kind, messageUrl)
  const facts = { recipient: row.recipient, signingKey, now: parts.clock.now() }
  const { contentType, body } = attemptForm(form, facts)
  return {
    url: bareUrl(url),
    headers: {
      'content-type': contentType,
      'user-agent': `Sendwright/${VERSION}`,
      ...(userInfo !== null && { authorization: basicAuthorization(userInfo) }),
    },
    body,
    connectMs: CONNECT_MAX_MS,
    totalMs: TOTAL_MAX_MS,
    retryScheduleMs: parts.scheduleMs,
    record: (attempt) => [
      ...(attempt.status === 'failing'
        ? []
        : [{ sql: 'DELETE FROM route_posts WHERE id = ?', values: [row.id] }]),
      ...parts.recorder.statements([eventOf(parts, record, row, maskedUrl(url), attempt)]),
    ],
    done,
  }
}

/** The URL's path ends with `mime` (section 6), which Anymail follows by a slash. */
const isRaw = (url: string) => /mime\/?$/.test(new URL(url).pathname)

function eventOf(
  { storageUrl }: RoutePostParts,
  record: MessageRecord,
  row: RoutePostRow,
  url: string,
  attempt: Attempt,
): EventRecord {
  const about = eventMessage(record, storageUrl, record.id, record.summary)
  return postedEvent(outcomeEvent(about, row, attempt), url, row.kind === 'notify')
}

const CODE_NO_CONNECTION = 499
const REFUSED = 406

function outcomeEvent(about: EventMessage, row: RoutePostRow, attempt: Attempt): EventRecord {
  const { outcome, number, status, nextAttemptAt, at } = attempt
  const to = {
    recipient: row.recipient,
    recipientDomain: row.recipient.slice(row.recipient.lastIndexOf('@') + 1),
  }
  const code = outcome.kind === 'answered' ? outcome.status : CODE_NO_CONNECTION
  const message = outcome.kind === 'answered' ? reasonOf(outcome.status) : outcome.why
  const common = {
    'attempt-no': number,
    description: '',
    'session-seconds': outcome.durationMs / 1000,
  }
  const facts = { sendingIp: null, primaryDkim: null, recipientProvider: 'Other' }
  if (status === 'ok')
    return deliveredEvent(about, to, { ...facts, status: { ...common, code, message } }, at)
  if (nextAttemptAt !== null) {
    const retry = { 'retry-seconds': Math.round((nextAttemptAt - at) / 1000) }
    const failing = { ...common, code, message, ...retry }
    return failedEvent(about, to, { ...facts, status: failing, severity: 'temporary', reason: 'generic' }, at)
  }
  const isRefused = code === REFUSED
  const final = isRefused
    ? { ...common, code, message }
    : { ...common, code: CODE_TOO_OLD, message: 'Too old', 'last-code': code, 'last-message': message }
  const ended = { ...facts, severity: 'permanent', reason: isRefused ? 'generic' : 'old' } as const
  return failedEvent(about, to, { ...ended, status: final }, at)
}

/** The standard phrase: what a server writes may hold anything. */
const reasonOf = (status: number) => STATUS_CODES[status] ?? ''
