/**
 * A periodic job: work that an area repeats at an interval, one run at a time in a process.
 *
 * Most jobs are for the database as a whole, such as removing old rows. Those run in one process at a time, under a
 * lease (job-lease.ts), and the time of the next run survives restarts. Other jobs run in several: because they claim
 * the rows that they work on, or because they look after the memory of their process.
 *
 * The area makes the job and keeps it to wake it; the runner (job-runner.ts) starts and stops all of them.
 */
import type { Timer } from '../../base/time/clock.ts'
import type { JobContext, JobReport } from './job-context.ts'
import { createJobLease, type HeldLease, type JobLease } from './job-lease.ts'

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

  /** Of failures in a row with the same message only the first is logged. */
  #ended({ clock, log }: JobContext, error: unknown): void {
    const text = error === null ? null : String(error instanceof Error ? error.message : error)
    const known = this.#lastError
    this.#lastEndedAt = Math.floor(clock.now())
    this.#lastError = text?.slice(0, ERROR_LENGTH_MAX) ?? null
    if (error !== null && this.#lastError !== known) log.error({ err: error, job: this.name }, 'a job failed')
  }
}
