/**
 * Background tasks of lists: rows in a table, processed step by step. A step is claimed under a lease and ends in
 * one transaction that checks the position it started from, so each step commits exactly once, even if a process
 * dies or two run the same step. The task whose last step is longest ago is next, so a post to a large list does
 * not block small ones.
 */
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { ListExpansionRow, ListUploadRow } from '../../platform/store/schema.ts'
import { type SqlValue, StaleWrite, type Store } from '../../platform/store/store.ts'

/** A step takes well under a second; a task whose step failed, or whose process died, waits this long. */
export const LEASE_MS = 60_000
/** How often to look for tasks of dead processes and for expired leases. */
const IDLE_MS = 15_000
/** Wait after a database error. */
const FAULT_WAIT_MS = 1_000

export interface TaskTable {
  name: 'list_uploads' | 'list_expansions'
  /** Tasks of one list run in order. */
  inOrder: boolean
}

/** Claims the task that waited longest; null if none is due. `owner` identifies this process. */
export async function claimTask<Row extends ListUploadRow | ListExpansionRow>(
  store: Store,
  table: TaskTable,
  owner: string,
  now: number,
): Promise<Row | null> {
  // On SQLite no other process can hold a lease, so those of an earlier run are void at once.
  const foreign = store.kind === 'sqlite' ? ' OR task.lease_owner <> ?' : ''
  const order = table.inOrder
    ? ` AND NOT EXISTS (SELECT 1 FROM ${table.name} earlier
        WHERE earlier.list_id = task.list_id AND earlier.state = 'running' AND earlier.id < task.id)`
    : ''
  const times = store.leaseTimes
  const values: SqlValue[] = [owner, times.value(now, LEASE_MS), times.value(now, 0)]
  if (foreign) values.push(owner)
  const [claimed] = await store.commit([
    {
      sql: `UPDATE ${table.name} SET lease_owner = ?, lease_until = ${times.sql} WHERE id = (
        SELECT task.id FROM ${table.name} task
        WHERE task.state = 'running' AND (task.lease_until < ${times.sql}${foreign})${order}
        ORDER BY task.updated_at, task.id LIMIT 1${store.kind === 'postgres' ? ' FOR UPDATE SKIP LOCKED' : ''})
      RETURNING *`,
      values,
    },
  ])
  return (claimed?.rows[0] as Row | undefined) ?? null
}

/** A job that does the steps of tasks. `runOne` claims and does one; it resolves false when no task waits. */
export const taskJob = (name: string, runOne: () => Promise<boolean>): Job =>
  createJob({
    name,
    everyMs: IDLE_MS,
    retryMs: FAULT_WAIT_MS,
    // Each process claims tasks of its own.
    scope: 'claims',
    async work() {
      try {
        return (await runOne()) ? 'more' : undefined
      } catch (error) {
        // Another process has done this step.
        if (error instanceof StaleWrite) return 'more'
        throw error
      }
    },
  })
