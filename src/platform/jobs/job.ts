/**
 * A periodic job: work that an area repeats at an interval, one run at a time in a process.
 *
 * Most jobs are for the database as a whole, such as removing old rows. Those run in one process at a time, under a
 * lease, and the time of the next run survives restarts. Other jobs run in several: because they claim
 * the rows that they work on, or because they look after the memory of their process.
 *
 * The area makes the job and keeps it to wake it; the runner starts and stops all of them.
 */

import type { Logger } from 'pino'
import type { Clock, Timer } from '../../base/time/clock.ts'
import type { JobRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'

export interface JobSpec {
  /** Unique among all jobs, in kebab-case. Operators see it. */
  name: string
  /** From the end of a run to the next one. */
  everyMs: number
  /**
   * `database`: one process at a time runs it. `claims`: several may at once, since each claims what it works on.
   * `process`: each process does, for itself. Those of the first two run only where the process has the role `jobs`.
   */
  scope: 'database' | 'claims' | 'process'
  /** Wait after a run that failed. Default: `everyMs`, at most a minute. */
  retryMs?: number
  /** Does the work of one run, or a step of it. `signal` aborts when the service stops or the lease is lost. */
  work(signal: AbortSignal): Promise<JobResult>
}

/**
 * Nothing: the run is complete. `more`: another step follows at once. `againInMs`: the next run is due after that
 * time, if that is earlier than the interval.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: work that returns nothing is complete
type JobResult = void | 'more' | { againInMs: number }

export interface Job {
  readonly name: string
  /** Runs now, or once more after the run in progress. Does nothing unless the job is started. */
  wake(): void
  readonly scope: JobSpec['scope']
  /** Runs as soon as it is due. */
  start(context: JobContext): void
  /** Other processes run it: `wake` calls this instead. */
  runElsewhere(wake: () => void): void
  /** Aborts the signal of the run in progress and waits for its end. */
  stop(): Promise<void>
  report(): Promise<JobReport>
}

const RETRY_MAX_MS = 60_000
/** Wait for a run in another process, before which a wake-up came. */
const WOKEN_WAIT_MS = 5_000
/** Later starts of jobs that several processes share, as a share of the interval. */
const JITTER = 0.05
const ERROR_LENGTH_MAX = 300

export function createJob(spec: JobSpec): Job {
  return new PeriodicJob(spec)
}

class PeriodicJob implements Job {
  readonly name: string
  readonly scope: JobSpec['scope']
  readonly #spec: JobSpec
  readonly #stopping = new AbortController()
  #context: JobContext | null = null
  #wakeElsewhere: (() => void) | null = null
  #lease: JobLease | null = null
  #timer: Timer | null = null
  #running: Promise<void> | null = null
  #woken = false
  /** A wake-up that found the job running in another process. */
  #wokenBefore = false
  /** When the next run is due, in monotonic milliseconds. */
  #dueAt = Number.POSITIVE_INFINITY
  #lastStartedAt: number | null = null
  #lastEndedAt: number | null = null
  #lastError: string | null = null

  constructor(spec: JobSpec) {
    this.name = spec.name
    this.scope = spec.scope
    this.#spec = spec
  }

  start(context: JobContext): void {
    this.#context = context
    const { everyMs, scope } = this.#spec
    if (scope === 'database')
      this.#lease = createJobLease({ name: this.name, everyMs, retryMs: this.#retryMs }, context)
    this.#begin(context)
  }

  runElsewhere(wake: () => void): void {
    this.#wakeElsewhere = wake
  }

  wake(): void {
    this.#wakeElsewhere?.()
    this.#woken = true
    if (this.#context) this.#begin(this.#context)
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error(`${this.name} is stopping`))
    this.#timer?.cancel()
    await this.#running
  }

  async report(): Promise<JobReport> {
    const { name } = this
    const { everyMs } = this.#spec
    const running = this.#running !== null
    const stored = await this.#lease?.lastRun()
    if (stored) return { name, everyMs, ...stored, running: running || stored.running }
    const [lastStartedAt, lastEndedAt, lastError] = [this.#lastStartedAt, this.#lastEndedAt, this.#lastError]
    return { name, everyMs, running, lastStartedAt, lastEndedAt, lastError }
  }

  #begin(context: JobContext): void {
    if (this.#running || this.#stopping.signal.aborted) return
    this.#timer?.cancel()
    this.#running = this.#run(context)
  }

  get #retryMs(): number {
    const { everyMs, retryMs = Math.min(everyMs, RETRY_MAX_MS) } = this.#spec
    return retryMs
  }

  async #run(context: JobContext): Promise<void> {
    const { clock, random } = context
    do {
      const isWoken = this.#woken || this.#wokenBefore
      this.#woken = false
      this.#wokenBefore = false
      // A wake-up does not put off a run that was due earlier.
      const dueBefore = this.#dueAt > clock.monotonic() ? this.#dueAt : Number.POSITIVE_INFINITY
      const waitMs = await this.#runOnce(context, isWoken)
      this.#dueAt = Math.min(dueBefore, clock.monotonic() + waitMs)
    } while (this.#woken && !this.#stopping.signal.aborted)
    this.#running = null
    if (this.#stopping.signal.aborted) return
    const jitterMs = this.#lease ? random() * JITTER * this.#spec.everyMs : 0
    const waitMs = Math.max(0, this.#dueAt - clock.monotonic())
    this.#timer = clock.setTimer(waitMs + jitterMs, () => this.#begin(context))
  }

  /** Resolves the wait until the next run, in milliseconds. */
  async #runOnce(context: JobContext, isWoken: boolean): Promise<number> {
    const { everyMs } = this.#spec
    let held: HeldLease | null = null
    try {
      const lease = this.#lease && (await this.#lease.take(isWoken))
      if (lease && !lease.taken) {
        this.#wokenBefore = isWoken
        return Math.min(lease.waitMs, isWoken ? WOKEN_WAIT_MS : everyMs)
      }
      held = lease
      this.#lastStartedAt = Math.floor(context.clock.now())
      const signals = [this.#stopping.signal, ...(held ? [held.lost] : [])]
      const waitMs = await this.#steps(AbortSignal.any(signals))
      this.#ended(context, null)
      // A run that a stop has cut short is due again at once.
      await held?.end(this.#stopping.signal.aborted ? 0 : waitMs, null)
      return waitMs
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        await held?.end(0, null).catch(() => {})
        return everyMs
      }
      this.#ended(context, error)
      await held?.end(this.#retryMs, this.#lastError).catch(() => {})
      return this.#retryMs
    }
  }

  async #steps(signal: AbortSignal): Promise<number> {
    const { everyMs, work } = this.#spec
    for (;;) {
      signal.throwIfAborted()
      const result = await work(signal)
      if (result === 'more' && !signal.aborted) continue
      return typeof result === 'object' ? Math.min(everyMs, Math.max(0, result.againInMs)) : everyMs
    }
  }

  /** Logs only the first of several failures in a row with the same message. */
  #ended({ clock, log }: JobContext, error: unknown): void {
    const text = error === null ? null : String(error instanceof Error ? error.message : error)
    const known = this.#lastError
    this.#lastEndedAt = Math.floor(clock.now())
    this.#lastError = text?.slice(0, ERROR_LENGTH_MAX) ?? null
    if (error !== null && this.#lastError !== known) log.error({ err: error, job: this.name }, 'a job failed')
  }
}

export interface JobContext {
  store: Store
  clock: Clock
  log: Logger
  random: () => number
  /** Names this process in leases. */
  owner: string
}

/** Times are Unix milliseconds. */
export interface JobReport {
  name: string
  everyMs: number
  running: boolean
  /** Null: not yet, by the process that reports, or for jobs of the database by any. */
  lastStartedAt: number | null
  lastEndedAt: number | null
  /** Why the last run failed; null: it did not. */
  lastError: string | null
}

const WOKEN = 'job-woken'

/**
 * Starts and stops the periodic jobs of all areas, and reports how they do.
 * `runsJobs` false: jobs that other processes can do as well are left to them. `resting`: names of jobs that are never
 * started.
 */
export function createJobRunner(context: JobContext, runsJobs = true, resting: readonly string[] = []) {
  const jobs = new Map<string, Job>()
  let isStarted = false
  const start = (job: Job) => {
    if (resting.includes(job.name)) return
    if (runsJobs || job.scope === 'process') job.start(context)
    else job.runElsewhere(() => context.store.changes.hint(WOKEN, job.name))
  }
  return {
    /** @throws Error when another job has that name */
    add(more: readonly Job[]): void {
      for (const job of more) {
        if (jobs.has(job.name)) throw new Error(`there are two jobs named "${job.name}"`)
        jobs.set(job.name, job)
        if (isStarted) start(job)
      }
    },
    /** Starts all jobs; those added later start when they are added. */
    start(): void {
      isStarted = true
      if (runsJobs) context.store.changes.follow(WOKEN, (name) => jobs.get(name ?? '')?.wake())
      for (const job of jobs.values()) start(job)
    },
    /** The leases of a dead process have been returned: jobs that claim what they work on look for it at once. */
    leasesReturned(): void {
      // Without the role, the nodes that have it hear of the return themselves.
      if (runsJobs) for (const job of jobs.values()) if (job.scope === 'claims') job.wake()
    },
    /** Aborts what runs and waits for its end. */
    async stop(): Promise<void> {
      await Promise.all([...jobs.values()].map((job) => job.stop()))
    },
    /** By name. */
    async report(): Promise<JobReport[]> {
      const reports = await Promise.all([...jobs.values()].map((job) => job.report()))
      return reports.sort((a, b) => (a.name < b.name ? -1 : 1))
    },
  }
}

const LEASE_MS = 60_000
const RENEW_EVERY_MS = LEASE_MS / 3

export type JobLease = ReturnType<typeof createJobLease>

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

/**
 * The lease of a job that one process at a time runs: a row of the table `jobs`, which also says when the next run is
 * due and how the last one ended. A process that dies holds its lease for a minute at most. Times are compared by the
 * clock of leases (docs/decisions/0056).
 */
export function createJobLease({ name, everyMs, retryMs }: LeaseSpec, context: JobContext) {
  const { store, clock, owner } = context
  const times = store.leaseTimes
  // Of what is inserted: Citus calls no functions where rows are in conflict.
  const taken = `excluded.lease_until - ${LEASE_MS}`
  // One process has the database, so the lease of an earlier one is void.
  const isFree =
    store.kind === 'sqlite'
      ? `(jobs.lease_until <= ${taken} OR jobs.lease_owner <> excluded.lease_owner)`
      : `jobs.lease_until <= ${taken}`
  // Further ahead than the interval: a clock was wrong, or the interval was longer.
  const isDue = `(jobs.next_run_at <= ${taken} OR jobs.next_run_at > ${taken} + ?)`
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
    /** `early`: also before the next run is due. */
    async take(early: boolean): Promise<HeldLease | { taken: false; waitMs: number }> {
      const now = clock.now()
      const at = (afterMs: number) => times.value(now, afterMs)
      const values = [name, owner, at(LEASE_MS), at(retryMs), Math.floor(now)]
      if (!early) values.push(Math.round(everyMs))
      const [result] = await store.commit([{ sql: early ? TAKE.early : TAKE.due, values }])
      return result && result.rows.length > 0 ? hold() : { taken: false, waitMs: await waitMs() }
    },
    /** As the row has it; null before the first run. */
    async lastRun(): Promise<Pick<
      JobReport,
      'running' | 'lastStartedAt' | 'lastEndedAt' | 'lastError'
    > | null> {
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
