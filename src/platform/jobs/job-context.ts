/** What a job runs with, and what it reports. */
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import type { Store } from '../store/store.ts'

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
  /** Of the last run, if it failed. */
  lastError: string | null
}
