/**
 * The log of attempts: what was posted where, the response, and when the next attempt follows. Old and surplus rows are
 * removed; pending posts are in another table and not affected by that.
 */

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
}

export type AttemptLog = ReturnType<typeof createAttemptLog>

/** own-operations.md section 5. */
const RESPONSE_SHOWN_BYTES = 1024
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
  event: { id: string; domainName: string; type: WebhookType },
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
  }
  return insert('webhook_attempts', row)
}

/** The beginning of the response as text; PostgreSQL's text cannot hold NUL. */
function shown(body: Buffer): string {
  return body.subarray(0, RESPONSE_SHOWN_BYTES).toString('utf8').replaceAll('\0', '\uFFFD')
}

const SIZED: SizedTable = {
  ...{ name: 'webhook_attempts', key: 'id', age: 'id' },
  ...{ texts: ['url', 'response', 'error'], rowBytes: 500 },
}

/** `bytesMax`: space that attempts may take; null: no limit but their number. */
export function createAttemptLog(
  store: Store,
  clock: Clock,
  bytesMax: number | null = null,
  attemptsMax = ATTEMPTS_MAX,
) {
  /** The oldest rows first, as long as all of a batch fulfil the condition. */
  const removeOldest = (condition: string, value: string | number, signal: AbortSignal | undefined) => {
    const sql = `DELETE FROM webhook_attempts WHERE ${condition} AND id IN
      (SELECT id FROM webhook_attempts ORDER BY id LIMIT ${PRUNE_ROWS})`
    return commitInChunks(store, { sql, values: [value] }, PRUNE_ROWS, signal)
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
    /** Newest first. */
    async list(
      accountId: string,
      filter: AttemptFilter,
      page: IdPage,
      limit: number,
    ): Promise<WebhookAttemptRow[]> {
      const ascending = page.kind === 'last' || page.kind === 'previous'
      let query = store.db.selectFrom('webhook_attempts').selectAll().where('account_id', '=', accountId)
      if (filter.domain !== undefined) query = query.where('domain_name', '=', filter.domain.toLowerCase())
      if (filter.url !== undefined) query = query.where('url', '=', filter.url)
      if (filter.event !== undefined) query = query.where('event_type', '=', filter.event)
      if (filter.status !== undefined) query = query.where('status', '=', filter.status)
      // Repeats the condition of the partial index of failures; neither database derives it from the line above.
      if (filter.status !== undefined && filter.status !== 'ok') query = query.where('status', '<>', 'ok')
      if (page.kind === 'next') query = query.where('id', '<', page.pivot)
      if (page.kind === 'previous') query = query.where('id', '>', page.pivot)
      const rows = await query
        .orderBy('id', ascending ? 'asc' : 'desc')
        .limit(limit)
        .execute()
      return ascending ? rows.reverse() : rows
    },
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
