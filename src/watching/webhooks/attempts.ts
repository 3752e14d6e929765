/**
 * The log of attempts: what was posted where, the response, and when the next attempt follows. Old and surplus rows are
 * removed; pending posts are in another table and not affected by that.
 */

import { sql } from 'kysely'
import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { IdPage } from '../../platform/http/request/paging.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Attempt } from '../../platform/posts/post-attempts.ts'
import { commitInChunks } from '../../platform/store/commits.ts'
import { removeBeyond, type SizedTable } from '../../platform/store/kept-size.ts'
import type { OutgoingPostRow, WebhookAttemptRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import type { WebhookType } from './types.ts'

interface AttemptFilter {
  domain?: string | undefined
  url?: string | undefined
  event?: string | undefined
  status?: WebhookAttemptRow['status'] | undefined
  /** Part of the recipient or of the subject, without regard to the case of ASCII letters. */
  search?: string | undefined
}

/** A page of attempts, newest first. */
interface AttemptPage {
  rows: WebhookAttemptRow[]
  /** The attempt at which a search for a part stopped; null: it has seen all of them, or nothing was searched. */
  stoppedAt: string | null
}

/** What the log says of an event. */
interface AttemptEvent {
  id: string
  domainName: string
  type: WebhookType
  /** As the webhook has it. */
  payload: Readonly<Record<string, unknown>>
}

export type AttemptLog = ReturnType<typeof createAttemptLog>

/** own-operations.md section 5. */
const RESPONSE_SHOWN_BYTES = 1024
const RECIPIENT_MAX = 320
const SUBJECT_MAX = 200
/** No index finds a part of a text: a page looks at so many attempts, some 50 ms. */
const SEARCHED_MAX = 20_000
/** As long as the shortest retention of events: without its event an attempt cannot be replayed. */
export const KEEP_MS = 3 * DAY_MS
/** Up to about 1 GB. */
const ATTEMPTS_MAX = 1_000_000
/** Rows removed per statement, so that the writer is blocked only briefly. */
const PRUNE_ROWS = 1_000
const PRUNE_EVERY_MS = 10 * MINUTE_MS

/** Inserts the row of one attempt. */
export function attemptStatement(
  post: OutgoingPostRow,
  event: AttemptEvent,
  { number, outcome, status, nextAttemptAt, at }: Attempt,
): Statement {
  const answered = outcome.kind === 'answered' ? outcome : null
  const row: WebhookAttemptRow = {
    id: newId(at),
    account_id: post.account_id,
    domain_name: event.domainName,
    event_id: event.id,
    event_type: event.type,
    url: post.url,
    attempt: number,
    status,
    status_code: answered?.status ?? null,
    error: outcome.kind === 'answered' ? null : outcome.why,
    response: answered ? shown(answered.body) : '',
    duration_ms: outcome.durationMs,
    next_attempt_at: nextAttemptAt === null ? null : Math.floor(nextAttemptAt),
    created_at: Math.floor(at),
    recipient: textIn(event.payload['recipient'], RECIPIENT_MAX),
    subject: textIn(subjectIn(event.payload), SUBJECT_MAX),
  }
  return insert('webhook_attempts', row)
}

const subjectIn = (payload: AttemptEvent['payload']): unknown =>
  (payload['message'] as { headers?: { subject?: unknown } } | undefined)?.headers?.subject

const textIn = (value: unknown, max: number): string | null =>
  typeof value === 'string' ? value.slice(0, max).replaceAll('\0', '\uFFFD') : null

/** The beginning of the response as text; PostgreSQL's text cannot hold NUL. */
function shown(body: Buffer): string {
  return body.subarray(0, RESPONSE_SHOWN_BYTES).toString('utf8').replaceAll('\0', '\uFFFD')
}

const SIZED: SizedTable = {
  ...{ name: 'webhook_attempts', key: 'id', age: 'id' },
  ...{ texts: ['url', 'response', 'error', 'recipient', 'subject'], rowBytes: 500 },
}

/** `bytesMax`: space that attempts may take; null: no limit but their number. */
export function createAttemptLog(
  store: Store,
  clock: Clock,
  bytesMax: number | null = null,
  attemptsMax = ATTEMPTS_MAX,
  searchedMax = SEARCHED_MAX,
) {
  /** The oldest rows first, as long as all of a batch fulfil the condition. */
  const removeOldest = (condition: string, value: string | number, signal: AbortSignal | undefined) => {
    const statement = `DELETE FROM webhook_attempts WHERE ${condition} AND id IN
      (SELECT id FROM webhook_attempts ORDER BY id LIMIT ${PRUNE_ROWS})`
    return commitInChunks(store, { sql: statement, values: [value] }, PRUNE_ROWS, signal)
  }

  const asciiLower = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

  /** Newest first. */
  async function list(
    accountId: string,
    filter: AttemptFilter,
    page: IdPage,
    limit: number,
  ): Promise<AttemptPage> {
    const ascending = page.kind === 'last' || page.kind === 'previous'
    const order = ascending ? 'asc' : 'desc'
    let query = store.db.selectFrom('webhook_attempts').where('account_id', '=', accountId)
    // Repeats the condition of the partial index of failures; neither database derives it from the line below.
    if (filter.status !== undefined && filter.status !== 'ok') query = query.where('status', '<>', 'ok')
    if (page.kind === 'next') query = query.where('id', '<', page.pivot)
    if (page.kind === 'previous') query = query.where('id', '>', page.pivot)
    let stop: string | undefined
    if (filter.search !== undefined) {
      const last = query
        .select('id')
        .orderBy('id', order)
        .limit(1)
        .offset(searchedMax - 1)
      stop = (await last.executeTakeFirst())?.id
      if (stop !== undefined) query = query.where('id', ascending ? '<=' : '>=', stop)
      const find = sql.raw(store.kind === 'sqlite' ? 'instr' : 'strpos')
      const part = asciiLower(filter.search)
      query = query.where(
        sql<boolean>`(${find}(lower(recipient), ${part}) > 0 OR ${find}(lower(subject), ${part}) > 0)`,
      )
    }
    if (filter.domain !== undefined) query = query.where('domain_name', '=', filter.domain.toLowerCase())
    if (filter.url !== undefined) query = query.where('url', '=', filter.url)
    if (filter.event !== undefined) query = query.where('event_type', '=', filter.event)
    if (filter.status !== undefined) query = query.where('status', '=', filter.status)
    const rows = await query.selectAll().orderBy('id', order).limit(limit).execute()
    const stoppedAt = rows.length < limit ? (stop ?? null) : null
    return { rows: ascending ? rows.reverse() : rows, stoppedAt }
  }

  async function prune(signal?: AbortSignal): Promise<void> {
    await removeOldest('created_at < ?', Math.floor(clock.now() - KEEP_MS), signal)
    const surplus = await store.db
      .selectFrom('webhook_attempts')
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(attemptsMax)
      .executeTakeFirst()
    if (surplus) await removeOldest('id <= ?', surplus.id, signal)
    await removeBeyond(store, SIZED, bytesMax, signal)
  }

  return {
    list,
    read: (accountId: string, id: string): Promise<WebhookAttemptRow | undefined> =>
      store.db
        .selectFrom('webhook_attempts')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('id', '=', id)
        .executeTakeFirst(),
    /** Removes what is too old or too much. */
    prune,
    job: createJob({
      name: 'webhook-attempt-retention',
      everyMs: PRUNE_EVERY_MS,
      scope: 'database',
      work: prune,
    }),
  }
}
