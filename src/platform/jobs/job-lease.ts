/**
 * The lease of a job that one process at a time runs: a row of the table `jobs`, which also says when the next run is
 * due and how the last one ended. A process that dies holds its lease for a minute at most. Times are compared by the
 * clock of leases (docs/decisions/0056).
 */
import type { Timer } from '../../base/time/clock.ts'
import type { JobRow } from '../store/schema.ts'
import type { JobContext, JobReport } from './job-context.ts'

const LEASE_MS = 60_000
const RENEW_EVERY_MS = LEASE_MS / 3

export interface JobLease {
  /** `early`: also before the next run is due. */
  take(early: boolean): Promise<HeldLease | { taken: false; waitMs: number }>
  /** As the row has it; null before the first run. */
  lastRun(): Promise<Pick<JobReport, 'running' | 'lastStartedAt' | 'lastEndedAt' | 'lastError'> | null>
}

export interface HeldLease {
  taken: true
  /** Aborts when another process has taken the lease. */
  lost: AbortSignal
  /** Gives the lease back; the next run is due in `waitMs`. */
  end(waitMs: number, error: string | null): Promise<void>
}

interface LeaseSpec {
  name: string
  everyMs: number
  /** When a run that a crash ends is due again. */
  retryMs: number
}

export function createJobLease({ name, everyMs, retryMs }: LeaseSpec, context: JobContext): JobLease {
  const { store, clock, owner } = context
  const times = store.leaseTimes
  // One process has the database, so the lease of an earlier one is void.
  const isFree =
    store.kind === 'sqlite'
      ? `(jobs.lease_until <= ${times.sql} OR jobs.lease_owner <> excluded.lease_owner)`
      : `jobs.lease_until <= ${times.sql}`
  // Further ahead than the interval: a clock was wrong, or the interval was longer.
  const isDue = `(jobs.next_run_at <= ${times.sql} OR jobs.next_run_at > ${times.sql})`
  const takeSql = (condition: string) => `INSERT INTO jobs
      (name, lease_owner, lease_until, next_run_at, last_started_at, last_ended_at, last_error)
    VALUES (?, ?, ${times.sql}, ${times.sql}, ?, NULL, NULL)
    ON CONFLICT (name) DO UPDATE SET lease_owner = excluded.lease_owner, lease_until = excluded.lease_until,
      next_run_at = excluded.next_run_at, last_started_at = excluded.last_started_at
    WHERE ${condition} RETURNING name`
  const TAKE = { early: takeSql(isFree), due: takeSql(`${isFree} AND ${isDue}`) }
  const rowNow = () => store.db.selectFrom('jobs').selectAll().where('name', '=', name).executeTakeFirst()

  async function waitMs(): Promise<number> {
    const sql = `SELECT CAST(next_run_at - ${times.sql} AS BIGINT) AS wait_ms FROM jobs WHERE name = ?`
    const [row] = await store.read({ sql, values: [times.value(clock.now(), 0), name] })
    const left = Number((row as { wait_ms: number | bigint } | undefined)?.wait_ms ?? 0)
    // Due, but another process runs it: as soon as its lease can have ended.
    return left > 0 && left <= everyMs ? left : LEASE_MS
  }

  function hold(): HeldLease {
    const lost = new AbortController()
    let timer: Timer
    let ended = false
    const renew = async () => {
      const sql = `UPDATE jobs SET lease_until = ${times.sql} WHERE name = ? AND lease_owner = ?`
      const values = [times.value(clock.now(), LEASE_MS), name, owner]
      const [result] = await store.commit([{ sql, values }]).catch(() => [])
      if (ended) return
      // A database that does not answer says nothing about who holds the lease.
      if (result?.affected === 0) lost.abort(new Error(`another process has taken the job ${name}`))
      else arm()
    }
    const arm = () => {
      timer = clock.setTimer(RENEW_EVERY_MS, () => void renew())
    }
    arm()
    return {
      taken: true,
      lost: lost.signal,
      async end(dueInMs, error) {
        if (ended) return
        ended = true
        timer.cancel()
        const now = clock.now()
        // Without an owner: a renewal that is still on its way must not extend the lease.
        const sql = `UPDATE jobs SET lease_owner = '', lease_until = 0, next_run_at = ${times.sql}, last_ended_at = ?,
          last_error = ? WHERE name = ? AND lease_owner = ?`
        const at = [times.value(now, dueInMs), Math.floor(now)]
        await store.commit([{ sql, values: [...at, error, name, owner] }])
      },
    }
  }

  return {
    async take(early) {
      const now = clock.now()
      const at = (afterMs: number) => times.value(now, afterMs)
      const conditions = early ? [at(0)] : [at(0), at(0), at(everyMs)]
      const values = [name, owner, at(LEASE_MS), at(retryMs), Math.floor(now), ...conditions]
      const [result] = await store.commit([{ sql: early ? TAKE.early : TAKE.due, values }])
      return result && result.rows.length > 0 ? hold() : { taken: false, waitMs: await waitMs() }
    },
    async lastRun() {
      const row: JobRow | undefined = await rowNow()
      if (!row) return null
      const sql = `SELECT 1 AS held FROM jobs WHERE name = ? AND lease_until > ${times.sql}`
      const held = await store.read({ sql, values: [name, times.value(clock.now(), 0)] })
      return {
        running: held.length > 0,
        lastStartedAt: row.last_started_at,
        lastEndedAt: row.last_ended_at,
        lastError: row.last_error,
      }
    },
  }
}
