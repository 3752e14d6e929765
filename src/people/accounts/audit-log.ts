/**
 * The audit log: who changed what, when and from where, one row per change (decision 51).
 *
 * 1. The HTTP layer opens a row before a changing operation runs, and closes it with the status of the response. A
 *    row without a status belongs to a process that ended in between: the change may have been made.
 * 2. Operations that can put their row into the transaction of the change do that instead.
 * 3. Failed sign-ins are counted and written once a minute (failed-sign-ins.ts).
 *
 * Rows past the retention are removed, oldest first; those beyond the space that they may take too, unless they are of the last 30 days.
 */

import { newId } from '../../base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AuditEntry, AuditLog as CallLog } from '../../platform/http/rights/audit.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { removeBeyond, type SizedTable } from '../../platform/store/kept-size.ts'
import type { AuditRow } from '../../platform/store/schema.ts'
import { insert, type Statement } from '../../platform/store/store.ts'

/** Who makes a change and from where; every handler has all of this. */
export interface Actor {
  caller: Pick<Caller, 'accountId' | 'keyId' | 'parentAccountId' | 'userId'>
  remoteAddress: string
  requestId: string
}

/** `action`: `<noun>.<verb>`, such as `bounces.add`; `subject`: what was changed, such as the domain. */
interface Change {
  action: string
  subject: string
  /** Stored as JSON; the caller limits its size and omits secrets. */
  detail: unknown
  /** Status of the response; null: not known yet. Default 200. */
  status?: number | null
}

export interface AuditLog extends CallLog {
  /** Commits the row of a change that has no transaction of its own. */
  record(actor: Actor, change: Change): Promise<void>
  /** Removes rows past the retention, in steps. */
  removeOld(signal?: AbortSignal): Promise<void>
  retention: Job
}

/** The row of one change, for the transaction that makes it. `now`: Unix milliseconds. */
export function auditStatement(actor: Actor, change: Change, now: number): Statement {
  return insert('audit', auditRow(actor, change, now))
}

/** The same as a row. */
export function auditRow({ caller, remoteAddress, requestId }: Actor, change: Change, now: number): AuditRow {
  return {
    id: newId(now),
    account_id: caller.accountId,
    key_id: caller.keyId,
    remote_address: remoteAddress,
    action: change.action,
    subject: change.subject,
    detail_json: JSON.stringify(change.detail),
    created_at: Math.floor(now),
    request_id: requestId || null,
    parent_account_id: caller.parentAccountId ?? null,
    status: change.status === undefined ? 200 : change.status,
    user_id: caller.userId ?? null,
  }
}

const REMOVE_EVERY_MS = HOUR_MS
/** Rows removed at a time, so that other writes are not delayed long. */
const REMOVE_ROWS = 500

interface AuditLogParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  retentionDays: number
  /** Space that rows may take; null or absent: no limit. */
  bytesMax?: number | null
}

const SIZED: SizedTable = {
  ...{ name: 'audit', key: 'id', age: 'id' },
  ...{ texts: ['detail_json', 'subject', 'action'], rowBytes: 600 },
}
/** However little space is allowed: whoever wants a change forgotten could else make it, and then enough others. */
const RETENTION_DAYS_MIN = 30

export function createAuditLog(parts: AuditLogParts): AuditLog {
  const { store, clock, log, retentionDays, bytesMax = null } = parts

  async function open(entry: AuditEntry): ReturnType<CallLog['open']> {
    const { action, subject, given } = entry
    const row = auditRow(entry, { action, subject, detail: { given }, status: null }, clock.now())
    await store.commit([insert('audit', row)])
    return async ({ status, made }) => {
      const name = Object.values(made).find((value) => typeof value === 'string')
      const detail = Object.keys(made).length > 0 ? { given, made } : { given }
      const sql = 'UPDATE audit SET status = ?, subject = ?, detail_json = ? WHERE id = ?'
      // A created object without a name is named by its id.
      const values = [status, subject || (name ?? ''), JSON.stringify(detail), row.id]
      await store.commit([{ sql, values }]).catch((error: unknown) => {
        log.error({ err: error, audit: row.id }, 'cannot note the outcome of a change in the audit log')
      })
    }
  }

  async function removeOld(signal?: AbortSignal): Promise<void> {
    const sql = `DELETE FROM audit WHERE created_at < ? AND id IN (SELECT id FROM audit ORDER BY id LIMIT ${REMOVE_ROWS})`
    for (;;) {
      const oldest = Math.floor(clock.now() - retentionDays * DAY_MS)
      const [result] = await store.commit([{ sql, values: [oldest] }])
      if (signal?.aborted || (result?.affected ?? 0) < REMOVE_ROWS) break
    }
    const value = Math.floor(clock.now() - RETENTION_DAYS_MIN * DAY_MS)
    await removeBeyond(store, SIZED, bytesMax, signal, { sql: 'created_at < ?', value })
  }

  return {
    open,
    record: async (actor, change) => void (await store.commit([auditStatement(actor, change, clock.now())])),
    removeOld,
    retention: createJob({
      name: 'audit-retention',
      everyMs: REMOVE_EVERY_MS,
      scope: 'database',
      work: removeOld,
    }),
  }
}
