/** Starts and stops the periodic jobs of all areas, and reports how they do. */
import type { Job, JobContext, JobReport } from './job.ts'

export interface JobRunner {
  /** @throws Error when another job has that name */
  add(jobs: readonly Job[]): void
  /** Starts all jobs; those added later start when they are added. */
  start(): void
  /** Aborts what runs and waits for its end. */
  stop(): Promise<void>
  /** By name. */
  report(): Promise<JobReport[]>
}

export function createJobRunner(context: JobContext): JobRunner {
  const jobs = new Map<string, Job>()
  let isStarted = false
  return {
    add(more) {
      for (const job of more) {
        if (jobs.has(job.name)) throw new Error(`there are two jobs named "${job.name}"`)
        jobs.set(job.name, job)
        if (isStarted) job.start(context)
      }
    },
    start() {
      isStarted = true
      for (const job of jobs.values()) job.start(context)
    },
    async stop() {
      await Promise.all([...jobs.values()].map((job) => job.stop()))
    },
    async report() {
      const reports = await Promise.all([...jobs.values()].map((job) => job.report()))
      return reports.sort((a, b) => (a.name < b.name ? -1 : 1))
    },
  }
}
