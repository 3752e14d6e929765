/** Starts and stops the periodic jobs of all areas, and reports how they do. */
import type { Job } from './job.ts'
import type { JobContext, JobReport } from './job-context.ts'

interface JobRunner {
  /** @throws Error when another job has that name */
  add(jobs: readonly Job[]): void
  /** Starts all jobs; those added later start when they are added. */
  start(): void
  /** Aborts what runs and waits for its end. */
  stop(): Promise<void>
  /** By name. */
  report(): Promise<JobReport[]>
}

const WOKEN = 'job-woken'

/** `runsJobs` false: jobs that other processes can do as well are left to them. */
export function createJobRunner(context: JobContext, runsJobs = true): JobRunner {
  const jobs = new Map<string, Job>()
  let isStarted = false
  const start = (job: Job) => {
    if (runsJobs || job.scope === 'process') job.start(context)
    else job.runElsewhere(() => context.store.changes.hint(WOKEN, job.name))
  }
  return {
    add(more) {
      for (const job of more) {
        if (jobs.has(job.name)) throw new Error(`there are two jobs named "${job.name}"`)
        jobs.set(job.name, job)
        if (isStarted) start(job)
      }
    },
    start() {
      isStarted = true
      if (runsJobs) context.store.changes.follow(WOKEN, (name) => jobs.get(name ?? '')?.wake())
      for (const job of jobs.values()) start(job)
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
