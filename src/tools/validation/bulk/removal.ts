/** Removes the addresses and files of jobs that were canceled or deleted, that failed, or that are 30 days old. */
import { DAY_MS } from '../../../base/time/durations.ts'
import type { RowParts } from '../../../platform/store/account-rows.ts'
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import { removeAddresses } from './job-store.ts'

type RemovalParts = RowParts & { blobs: BlobStore }

/** validation.md section 3 rule 9. */
export const KEPT_MS = 30 * DAY_MS
const JOBS_AT_A_TIME = 100

/** Ends early when `signal` aborts; the next run continues. */
export async function removeJobs(parts: RemovalParts, signal: AbortSignal): Promise<void> {
  const { store, clock } = parts
  const expired = `UPDATE validation_jobs SET status = 'deleted', list_id = '@' || id, dropping = 1
    WHERE ended_at <= ? AND status <> 'deleted'`
  await store.commit([{ sql: expired, values: [Math.floor(clock.now() - KEPT_MS)] }])
  while (!signal.aborted) {
    const rows = await store.db
      .selectFrom('validation_jobs')
      .selectAll()
      .where('dropping', '=', 1)
      .orderBy('id')
      .limit(JOBS_AT_A_TIME)
      .execute()
    for (const row of rows) {
      if (signal.aborted) return
      await removeJob(parts, row, signal)
    }
    if (rows.length < JOBS_AT_A_TIME) return
  }
}

/** The row of a deleted job goes too; that of any other stays to be read. */
async function removeJob(parts: RemovalParts, row: ValidationJobRow, signal: AbortSignal): Promise<void> {
  await removeAddresses(parts, row.id, signal)
  const remove = "DELETE FROM validation_jobs WHERE id = ? AND status = 'deleted'"
  const keep = "UPDATE validation_jobs SET dropping = 0, blob = NULL WHERE id = ? AND status <> 'deleted'"
  await parts.store.commit([
    { sql: remove, values: [row.id] },
    { sql: keep, values: [row.id] },
  ])
  if (row.blob !== null) await parts.blobs.remove(row.blob)
}

/** Everything of a closed account. May be called again. */
export async function removeJobsOf(
  parts: RemovalParts,
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const { store } = parts
  const mark = `UPDATE validation_jobs SET status = 'deleted', list_id = '@' || id, dropping = 1, lease_token = NULL
    WHERE account_id = ? AND status <> 'deleted'`
  await store.commit([{ sql: mark, values: [accountId] }])
  for (;;) {
    signal.throwIfAborted()
    const rows = await store.db
      .selectFrom('validation_jobs')
      .selectAll()
      .where('account_id', '=', accountId)
      .limit(JOBS_AT_A_TIME)
      .execute()
    for (const row of rows) await removeJob(parts, row, signal)
    if (rows.length < JOBS_AT_A_TIME) return
  }
}
