/**
 * The last calls of each API key (decision 240). Calls are noted in memory and written every ten seconds by each process:
 * of a key up to ten that succeeded and twenty that failed in that time, so that a key that sends all day adds no statement
 * to its sends. Where many accounts call, each has an even share of what is noted. At most 1,000 of a key are kept, and for
 * some days.
 */
import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { IdPage } from '../../platform/http/request/paging.ts'
import type { RequestLog as CallNotes, NotedCall } from '../../platform/http/rights/request-log.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { commitInChunks } from '../../platform/store/commits.ts'
import type { KeyRequestRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'

export interface RequestLog extends CallNotes {
  /** Newest first; with what this process has not written yet. `failed`: only calls with an error. */
  list(
    key: { id: string; accountId: string },
    filter: { failed: boolean; limit: number },
    page: IdPage,
  ): Promise<KeyRequestRow[]>
  /** Writes what was noted, and begins the next ten seconds. */
  write(): Promise<void>
  removeOld(signal?: AbortSignal): Promise<void>
  jobs: readonly Job[]
}

const WRITE_EVERY_MS = 10_000
/** Calls of a key that are kept between two writes. */
const SUCCEEDED_MAX = 10
const FAILED_MAX = 20
/** Calls of an account that are kept between two writes: it may have a hundred keys. */
const ACCOUNT_MAX = 200
/** In all between two writes, beyond which an account has only its share; and rows in memory. */
const NOTED_MAX = 1_000
export const KEPT_OF_KEY = 1_000
/** Rows that a process adds to a key before it removes those that are too many. */
const TRIM_AFTER = 100
/** Keys whose added rows are counted; then the counting begins anew, and trims each once. */
const COUNTED_KEYS_MAX = 10_000
const REMOVE_ROWS = 500

/** @param days that calls are kept; 0: none are noted */
export function createRequestLog(store: Store, clock: Clock, days: number): RequestLog {
  let noted: KeyRequestRow[] = []
  let notedCount = 0
  const ofKey = new Map<string, { succeeded: number; failed: number }>()
  const ofAccount = new Map<string, number>()
  const sinceTrim = new Map<string, number>()

  async function write(): Promise<void> {
    ofKey.clear()
    ofAccount.clear()
    notedCount = 0
    await flush()
  }

  /** The counts stay: whoever reads the log all the time must not be noted without end. */
  async function flush(): Promise<void> {
    const rows = noted
    noted = []
    if (rows.length === 0) return
    try {
      await store.commit([...inserts(rows), ...trims(rows)])
    } catch (error) {
      // For the next write. What came meanwhile is newer, and gives way.
      noted = [...rows, ...noted].slice(0, NOTED_MAX)
      throw error
    }
  }

  /** It may have been committed although we were told that it failed. */
  const inserts = (rows: readonly KeyRequestRow[]): Statement[] =>
    insertMany('key_requests', rows).map(({ sql, values }) => ({
      sql: `${sql} ON CONFLICT (id) DO NOTHING`,
      values,
    }))

  /** For a call of an account with less than its share: the newest one of the account that has most. */
  function dropOne(): void {
    const groups = Map.groupBy(noted, ({ account_id: id }) => id)
    const largest = [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most))
    const dropped = largest.at(-1)
    noted = noted.filter((row) => row !== dropped)
  }

  function trims(rows: readonly KeyRequestRow[]): Statement[] {
    const due = new Set<string>()
    if (sinceTrim.size > COUNTED_KEYS_MAX) sinceTrim.clear()
    for (const { key_id } of rows) {
      const added = (sinceTrim.get(key_id) ?? TRIM_AFTER) + 1
      sinceTrim.set(key_id, added)
      if (added > TRIM_AFTER) due.add(key_id)
    }
    for (const id of due) sinceTrim.set(id, 0)
    const oldestKept = `SELECT id FROM key_requests WHERE key_id = ? ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_OF_KEY - 1}`
    const sql = `DELETE FROM key_requests WHERE key_id = ? AND id < (${oldestKept})`
    return [...due].map((id) => ({ sql, values: [id, id] }))
  }

  async function removeOld(signal?: AbortSignal): Promise<void> {
    const oldest = Math.floor(clock.now() - days * DAY_MS)
    const ids = `SELECT id FROM key_requests ORDER BY id LIMIT ${REMOVE_ROWS}`
    const sql = `DELETE FROM key_requests WHERE created_at < ? AND id IN (${ids})`
    await commitInChunks(store, { sql, values: [oldest] }, REMOVE_ROWS, signal)
  }

  return {
    wants({ kind, keyId, accountId }, isFailure) {
      if (days === 0) return false
      // Sessions, the public key and the command line are no keys of the list.
      if (kind !== 'user' && kind !== 'domain' && kind !== 'web') return false
      const counts = ofKey.get(keyId)
      if (
        counts !== undefined &&
        (isFailure ? counts.failed >= FAILED_MAX : counts.succeeded >= SUCCEEDED_MAX)
      )
        return false
      const own = ofAccount.get(accountId) ?? 0
      const accounts = ofAccount.size + Number(own === 0)
      return own < ACCOUNT_MAX && (notedCount < NOTED_MAX || own < Math.floor(NOTED_MAX / accounts))
    },
    note(call) {
      const { keyId, accountId } = call.holder
      const counts = ofKey.get(keyId) ?? { succeeded: 0, failed: 0 }
      if (call.status >= 400) counts.failed++
      else counts.succeeded++
      ofKey.set(keyId, counts)
      ofAccount.set(accountId, (ofAccount.get(accountId) ?? 0) + 1)
      notedCount++
      if (noted.length >= NOTED_MAX) dropOne()
      noted.push(rowOf(call, clock.now()))
    },
    async list({ id, accountId }, { failed, limit }, page) {
      // The job reports a failure; what is stored can be read all the same.
      await flush().catch(() => {})
      const isAscending = page.kind === 'last' || page.kind === 'previous'
      let rows = store.db
        .selectFrom('key_requests')
        .selectAll()
        .where('key_id', '=', id)
        .where('account_id', '=', accountId)
        .orderBy('id', isAscending ? 'asc' : 'desc')
        .limit(limit)
      if (failed) rows = rows.where('status', '>=', 400)
      if (page.kind === 'next') rows = rows.where('id', '<', page.pivot)
      if (page.kind === 'previous') rows = rows.where('id', '>', page.pivot)
      const found = await rows.execute()
      return isAscending ? found.reverse() : found
    },
    write,
    removeOld,
    jobs: [
      createJob({ name: 'request-log', everyMs: WRITE_EVERY_MS, scope: 'process', work: write }),
      createJob({
        name: 'request-log-retention',
        everyMs: HOUR_MS,
        scope: 'database',
        work: removeOld,
      }),
    ],
  }
}

const rowOf = (call: NotedCall, now: number): KeyRequestRow => ({
  id: newId(now),
  account_id: call.holder.accountId,
  key_id: call.holder.keyId,
  method: call.method,
  path: call.path,
  operation: call.operation,
  form: call.form,
  given_json: JSON.stringify(call.given),
  status: call.status,
  message: call.message,
  duration_ms: call.durationMs,
  remote_address: call.remoteAddress,
  request_id: call.requestId,
  acted_for: call.actedFor,
  created_at: Math.floor(now),
})
