/**
 * Schedules a store's single writer: waiting units are written together as one group, which is one transaction and one
 * sync; an interactive transaction has the writer to itself.
 */
import type { Statement, StatementResult } from './store.ts'

/** Units per sync, so that the first of a burst does not wait for the last. */
const GROUP_UNITS_MAX = 256

/**
 * Waiting units that are worth a second group with its own sync, which the writer starts as soon as the first is on the
 * disk: with 64 connections that only submit mail, 10 to 20 % more is accepted a second. Not while outcomes arrive as
 * well: then the processors are the bottleneck, and the smaller groups cost 0.07 ms of a message's 1.1 ms.
 */
const SECOND_GROUP_MIN = 16
/** After so many groups without an outcome the writer assumes that no mail is being delivered. */
const GROUPS_WITHOUT_OUTCOME = 10

/** A unit that waits for its results. */
export interface UnitJob {
  unit: readonly Statement[]
  resolve(results: StatementResult[]): void
  reject(error: Error): void
}

interface Transaction {
  begin(): void
}

type Job = UnitJob | Transaction

const isTransaction = (job: Job | undefined): job is Transaction => job !== undefined && 'begin' in job

export class WriterQueue {
  readonly #write: (group: readonly UnitJob[]) => Promise<() => void>
  readonly #jobs: Job[] = []
  /** Units that go before all jobs: outcomes. */
  readonly #priority: UnitJob[] = []
  /** Groups in flight; at most two. */
  #groups = 0
  /** Groups since the last one with priority units. */
  #sincePriority = 0
  /** The next group waits for the end of this turn of the event loop. */
  #gathering = false
  /** A transaction has the writer. */
  #taken = false
  /**
   * A group with priority units has gone before the waiting transaction; no second one may. Outcomes arrive continuously
   * while a backlog is delivered: if all of them went first, the transaction, and every unit queued after it, would wait
   * for the end of the backlog.
   */
  #overtaken = false

  /** @param write commits a group as one transaction; resolves to a function that settles each of its units */
  constructor(write: (group: readonly UnitJob[]) => Promise<() => void>) {
    this.#write = write
  }

  /** As `Store.commit`. */
  commit(unit: readonly Statement[], order?: 'first'): Promise<StatementResult[]> {
    return new Promise((resolve, reject) => {
      const job: UnitJob = { unit, resolve, reject }
      if (order === 'first') this.#priority.push(job)
      else this.#jobs.push(job)
      if (this.#groups > 0 || !this.#hasOutcomes()) this.#handOver()
      else this.#soon()
    })
  }

  /** Whether mail is being delivered: recent groups had outcomes. */
  #hasOutcomes(): boolean {
    return this.#priority.length > 0 || this.#sincePriority < GROUPS_WITHOUT_OUTCOME
  }

  /**
   * Starts a group at the end of this turn of the event loop. Outcomes arrive in bursts: without this, half of all
   * groups held only the first unit of a burst, and the others waited for its sync. While mail is only accepted it makes
   * no difference at best.
   */
  #soon(): void {
    if (this.#gathering) return
    this.#gathering = true
    setImmediate(() => {
      this.#gathering = false
      this.#handOver()
    })
  }

  /** Takes the writer for one transaction; resolves to the function that releases it. */
  acquire(): Promise<() => void> {
    return new Promise((resolve) => {
      const release = () => {
        this.#taken = false
        this.#handOver()
      }
      this.#jobs.push({ begin: () => resolve(release) })
      this.#handOver()
    })
  }

  #handOver(): void {
    while (!this.#taken) {
      const first = this.#jobs[0]
      if (isTransaction(first) && (this.#overtaken || this.#priority.length === 0)) {
        if (this.#groups > 0) return
        this.#jobs.shift()
        this.#overtaken = false
        this.#taken = true
        first.begin()
      } else {
        if (this.#priority.length + this.#jobs.length === 0) return
        if (this.#groups > 0 && !this.#maySecond()) return
        this.#overtaken = isTransaction(first)
        this.#sincePriority = this.#priority.length > 0 ? 0 : this.#sincePriority + 1
        void this.#commitGroup(this.#takeGroup())
      }
    }
  }

  #maySecond(): boolean {
    if (this.#groups > 1 || this.#hasOutcomes()) return false
    return this.#jobs.length >= SECOND_GROUP_MIN && !this.#jobs.some(isTransaction)
  }

  async #commitGroup(group: readonly UnitJob[]): Promise<void> {
    this.#groups++
    let settle: () => void
    try {
      settle = await this.#write(group)
    } catch (error) {
      settle = () => {
        for (const job of group) job.reject(error as Error)
      }
    }
    this.#groups--
    // Before the units settle: the writer has its next group while their callers answer requests.
    this.#handOver()
    settle()
  }

  #takeGroup(): UnitJob[] {
    const group = this.#priority.splice(0, GROUP_UNITS_MAX)
    const end = this.#jobs.findIndex(isTransaction)
    const room = GROUP_UNITS_MAX - group.length
    const count = Math.min(room, end < 0 ? this.#jobs.length : end)
    return [...group, ...(this.#jobs.splice(0, count) as UnitJob[])]
  }
}
