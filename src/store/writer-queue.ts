/**
 * Who writes when, for a store with one writer: waiting units together as one group, which is one transaction and one
 * sync; a transaction alone.
 */
import type { Statement, StatementResult } from './store.ts'

/** Units in one sync at the most, so that the first of a burst does not wait for the last. */
const GROUP_UNITS_MAX = 256

/**
 * Units that make a second group worth a sync of its own, which the writer begins as soon as the first is on the disk:
 * 64 connections that only hand in mail get 10 to 20 % more of it accepted a second. Not while outcomes come in as
 * well: then processors are what is short, and the smaller groups cost 0.07 ms of a message's 1.1 ms.
 */
const SECOND_GROUP_MIN = 16
/** Groups without an outcome among their units after which none is being delivered, as far as the writer can see. */
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
  /** Units that go ahead of all jobs. */
  readonly #ahead: UnitJob[] = []
  /** Handed over and not answered; two at the most. */
  #groups = 0
  /** Groups handed over since one had units that go ahead. */
  #sinceAhead = 0
  /** The turn has not ended in which the first of the next group came. */
  #gathering = false
  /** A transaction has the writer. */
  #taken = false
  /**
   * One group goes ahead of a transaction. Outcomes come without a pause while a backlog is delivered: let all of
   * them go ahead, and it would wait for the end of the backlog, and all that is accepted would wait behind it.
   */
  #overtaken = false

  /** @param write commits a group as one transaction; resolves what tells each of its units */
  constructor(write: (group: readonly UnitJob[]) => Promise<() => void>) {
    this.#write = write
  }

  /** As `Store.commit`. */
  commit(unit: readonly Statement[], order?: 'first'): Promise<StatementResult[]> {
    return new Promise((resolve, reject) => {
      const job: UnitJob = { unit, resolve, reject }
      if (order === 'first') this.#ahead.push(job)
      else this.#jobs.push(job)
      if (this.#groups > 0 || !this.#hasOutcomes()) this.#handOver()
      else this.#soon()
    })
  }

  /** Among the last groups; they come as long as mail is delivered. */
  #hasOutcomes(): boolean {
    return this.#ahead.length > 0 || this.#sinceAhead < GROUPS_WITHOUT_OUTCOME
  }

  /**
   * What is asked for in the same turn of the event loop goes together. Outcomes come in bursts: half of all groups
   * used to be the first of a burst alone, with a sync for which the others waited. Where mail is only accepted, it
   * makes no difference at best.
   */
  #soon(): void {
    if (this.#gathering) return
    this.#gathering = true
    setImmediate(() => {
      this.#gathering = false
      this.#handOver()
    })
  }

  /** Takes the writer for one transaction; what it resolves gives it back. */
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
      if (isTransaction(first) && (this.#overtaken || this.#ahead.length === 0)) {
        if (this.#groups > 0) return
        this.#jobs.shift()
        this.#overtaken = false
        this.#taken = true
        first.begin()
      } else {
        if (this.#ahead.length + this.#jobs.length === 0) return
        if (this.#groups > 0 && !this.#maySecond()) return
        this.#overtaken = isTransaction(first)
        this.#sinceAhead = this.#ahead.length > 0 ? 0 : this.#sinceAhead + 1
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
    let tell: () => void
    try {
      tell = await this.#write(group)
    } catch (error) {
      tell = () => {
        for (const job of group) job.reject(error as Error)
      }
    }
    this.#groups--
    // Before anybody is told: the writer has its next group while they answer their requests.
    this.#handOver()
    tell()
  }

  #takeGroup(): UnitJob[] {
    const group = this.#ahead.splice(0, GROUP_UNITS_MAX)
    const end = this.#jobs.findIndex(isTransaction)
    const room = GROUP_UNITS_MAX - group.length
    const count = Math.min(room, end < 0 ? this.#jobs.length : end)
    return [...group, ...(this.#jobs.splice(0, count) as UnitJob[])]
  }
}
