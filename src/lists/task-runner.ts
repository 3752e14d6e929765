/**
 * Background tasks of lists: rows in a table, worked off step by step. A step is claimed under a lease and
 * ends in one transaction that names the place it started from, so that each is done exactly once however
 * often a process dies or two do the same. The task that waited longest since its last step is next: a post
 * to a large list does not hold up the small ones.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import type { ListTaskRow } from '../store/schema.ts'
import { type SqlValue, StaleWrite, type Store } from '../store/store.ts'

/** A step takes well under a second; a task whose step failed, or whose process died, waits this long. */
export const LEASE_MS = 60_000
/** Look for tasks of other processes that died, and for leases that ran out. */
const IDLE_MS = 15_000
/** After a fault of the database itself. */
const FAULT_WAIT_MS = 1_000

export interface TaskTable {
  name: 'list_uploads' | 'list_expansions'
  /** Tasks of one list keep their order. */
  inOrder: boolean
}

/** Takes the task that waited longest; null if none waits. `owner` names this process. */
export async function claimTask<Row extends ListTaskRow>(
  store: Store,
  table: TaskTable,
  owner: string,
  now: number,
): Promise<Row | null> {
  // On SQLite nobody else can hold a lease, so an earlier run's are void at once.
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

export interface TaskRunner {
  start(): void
  /** To be called once a task was committed. */
  wake(): void
  /** Ends after the step that runs. */
  stop(): Promise<void>
}

/** `runOne` claims and does one step; it resolves false when there is nothing to do. */
export function createTaskRunner(parts: {
  clock: Clock
  log: Logger
  runOne(): Promise<boolean>
}): TaskRunner {
  const { clock, log } = parts
  let running: Promise<void> | null = null
  let stopped = true
  let woken = false
  let timer: Timer | null = null

  async function run(): Promise<void> {
    let waitMs = IDLE_MS
    while (!stopped) {
      woken = false
      try {
        if (await parts.runOne()) continue
      } catch (error) {
        if (error instanceof StaleWrite) continue
        log.error({ err: error }, 'a task of a list failed')
        waitMs = FAULT_WAIT_MS
        break
      }
      if (!woken) break
    }
    running = null
    if (!stopped) timer = clock.setTimer(waitMs, begin)
  }
  function begin(): void {
    timer?.cancel()
    running ??= run()
  }
  return {
    start() {
      stopped = false
      begin()
    },
    wake() {
      woken = true
      if (!stopped) begin()
    },
    async stop() {
      stopped = true
      timer?.cancel()
      await running
    },
  }
}
