/**
 * Long work on many rows, done in steps that survive a crash. A task is a row of a table of its kind, with a cursor that
 * says what has been done.
 *
 * 1. A claim takes the task whose last step is longest ago, so a long task does not block short ones. Where several
 *    processes work on a kind, the claim is a lease: a step whose process died is tried again when it ends, one that failed
 *    after a minute at most.
 * 2. A step writes its rows and the new cursor in one commit (`commit`, or `saved` in a unit of its own). The row checks
 *    that it is as it was: of two processes that do the same step, one rolls back as a whole (`StaleWrite`).
 * 3. At shutdown the signal aborts; the step ends between two commits, and the lease is given back.
 *
 * Kinds without leases are worked on by one process at a time, under the lease of their job.
 */
import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import {
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
} from '../store/store.ts'
import { createJob, type Job, type JobSpec } from './job.ts'

/** For kinds whose steps take some seconds at most. */
export const LEASE_MS = 60_000

export interface TaskTable {
  name:
    | 'dynamic_pool_tasks'
    | 'exports'
    | 'ip_tasks'
    | 'list_expansions'
    | 'list_uploads'
    | 'person_tasks'
    | 'suppression_imports'
    | 'validation_jobs'
  key: 'id' | 'account_id'
  /** Which tasks have steps left; SQL on `task`. */
  open: string
  /** Time of the last step, in Unix milliseconds. Null: the oldest task is done first, whole. */
  turn: 'updated_at' | 'stepped_at' | null
  /** Tasks with the same value of this column are done in order, one after the other. */
  inOrderOf?: 'list_id'
  /** Null: the table has none. */
  lease: {
    ms: number
    /** Its value at the claim is what a step relies on: the cursor, or the token of the claim. */
    check: 'done' | 'position' | 'lease_token'
    /** Counts claims since the last commit. */
    tries: 'attempts' | 'tries' | null
  } | null
}

export interface TaskParts {
  store: Store
  clock: Clock
  /** Identifies this process. */
  owner: string
}

/** Claims the task whose turn it is; null if none is due. `now`: Unix milliseconds. */
export async function claimTask<Row>(
  store: Store,
  table: TaskTable,
  owner: string,
  now: number,
): Promise<Row | null> {
  const { name, key, open, turn, inOrderOf, lease } = table
  const times = store.leaseTimes
  const set: string[] = []
  const where = [open]
  const values: SqlValue[] = []
  if (turn) {
    set.push(`${turn} = ?`)
    values.push(Math.floor(now))
  }
  if (lease) {
    set.push('lease_owner = ?', `lease_until = ${times.sql}`)
    values.push(owner, times.value(now, lease.ms))
    if (lease.tries) set.push(`${lease.tries} = ${lease.tries} + 1`)
    if (lease.check === 'lease_token') {
      set.push('lease_token = ?')
      values.push(newId())
    }
    // On SQLite no other process can hold a lease, so those of an earlier run are void at once.
    const foreign = store.kind === 'sqlite' ? ' OR task.lease_owner <> ?' : ''
    where.push(`(task.lease_until <= ${times.sql}${foreign})`)
    values.push(times.value(now, 0), ...(foreign ? [owner] : []))
  }
  if (inOrderOf)
    where.push(`NOT EXISTS (SELECT 1 FROM ${name} earlier WHERE earlier.${inOrderOf} = task.${inOrderOf}
      AND earlier.${key} < task.${key} AND ${open.replaceAll('task.', 'earlier.')})`)
  const lock = store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const sql = `UPDATE ${name} SET ${set.join(', ')} WHERE ${key} = (SELECT task.${key} FROM ${name} task
      WHERE ${where.join(' AND ')} ORDER BY ${turn ? `task.${turn}, ` : ''}task.${key} LIMIT 1 ${lock}) RETURNING *`
  const [claimed] = await store.commit([{ sql, values }])
  return (claimed?.rows[0] as Row | undefined) ?? null
}

/** `continue`: the lease goes on for the next commit of the same claim. */
export type AfterCommit = 'continue' | 'release'

export interface TaskSteps<Row> {
  /** Claims a task and does its step; false: none is due. @throws StaleWrite when another process has done it */
  runOne(signal?: AbortSignal): Promise<boolean>
  /** Writes what a step changes in the task, its cursor above all; touches no row if the task is not as it was. */
  saved(task: Row, change: Partial<Row>, after: AfterCommit): Statement
  /** Commits that with the rows of the step, whose results it returns, and changes `task` likewise. @throws StaleWrite */
  commit(
    task: Row,
    change: Partial<Row>,
    rows: readonly Statement[],
    after: AfterCommit,
  ): Promise<StatementResult[]>
}

/**
 * @param step does one step of a claimed task, or several until `signal` aborts
 * @param gaveUp decides after a failure: true when the task has been ended; else the error is the job's, and the step is
 *   tried again
 */
export function createTaskSteps<Row extends object>(
  { store, clock, owner }: TaskParts,
  table: TaskTable,
  step: (task: Row, signal: AbortSignal) => Promise<void>,
  gaveUp: (task: Row, error: unknown) => Promise<boolean> = async () => false,
): TaskSteps<Row> {
  const { name, key, open, turn, lease } = table
  const column = (task: Row, name: string) => (task as Record<string, SqlValue>)[name] as SqlValue

  function saved(task: Row, change: Partial<Row>, after: AfterCommit): Statement {
    const times = store.leaseTimes
    const columns: [string, SqlValue, mark?: string][] = Object.entries<SqlValue>(
      change as Record<string, SqlValue>,
    )
    if (turn) columns.push([turn, Math.floor(clock.now())])
    const checks: [string, SqlValue][] = [[key, column(task, key)]]
    if (lease) {
      const left = after === 'continue' ? lease.ms : 0
      columns.push(['lease_until', times.value(clock.now(), left), times.sql])
      if (lease.tries) columns.push([lease.tries, 0])
      checks.push([lease.check, column(task, lease.check)])
    }
    const set = columns.map(([name, , mark = '?']) => `${name} = ${mark}`).join(', ')
    return {
      sql: `UPDATE ${name} AS task SET ${set} WHERE ${checks.map(([name]) => `${name} = ? AND `).join('')}${open}`,
      values: [...columns, ...checks].map(([, value]) => value),
      expectRows: 1,
    }
  }

  /** Nobody need wait for the end of the lease of this claim. */
  async function release(task: Row, afterMs: number): Promise<void> {
    if (lease === null) return
    const times = store.leaseTimes
    const sql = `UPDATE ${name} SET lease_until = ${times.sql} WHERE ${key} = ? AND ${lease.check} = ? AND lease_owner = ?`
    const claim = [column(task, key), column(task, lease.check), owner]
    await store.commit([{ sql, values: [times.value(clock.now(), afterMs), ...claim] }])
  }

  return {
    saved,
    async runOne(signal = new AbortController().signal) {
      const task = await claimTask<Row>(store, table, owner, clock.now())
      if (task === null) return false
      try {
        await step(task, signal)
      } catch (error) {
        if (error instanceof StaleWrite) throw error
        if (!(await gaveUp(task, error))) {
          await release(task, signal.aborted ? 0 : Math.min(lease?.ms ?? 0, LEASE_MS))
          throw error
        }
      }
      if (signal.aborted) await release(task, 0)
      return true
    },
    async commit(task, change, rows, after) {
      const [, ...results] = await store.commit([saved(task, change, after), ...rows])
      Object.assign(task, change, lease?.tries && { [lease.tries]: 0 })
      return results
    },
  }
}

/** How often to look for tasks of dead processes and for expired leases. */
const LOOK_EVERY_MS = 15_000
const RETRY_MS = 1_000

/** The job that does steps until no task is due. */
export const taskJob = (
  name: string,
  runOne: (signal: AbortSignal) => Promise<boolean>,
  scope: JobSpec['scope'] = 'claims',
): Job =>
  createJob({
    name,
    everyMs: LOOK_EVERY_MS,
    retryMs: RETRY_MS,
    scope,
    async work(signal) {
      try {
        return (await runOne(signal)) ? 'more' : undefined
      } catch (error) {
        // Another process has done this step, or the task was removed.
        if (error instanceof StaleWrite) return 'more'
        throw error
      }
    },
  })
