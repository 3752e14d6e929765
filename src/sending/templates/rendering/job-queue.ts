/** Waiting rendering jobs per account: accounts are served in turn, a batch of jobs each. */

export interface WaitingJob {
  accountId: string
  /** Its batch ended for an unknown reason: next time the job is a batch of its own. */
  alone: boolean
}

interface JobQueue<J extends WaitingJob> {
  readonly count: number
  add(job: J): void
  /** To the front of its account's jobs. */
  putBack(job: J): void
  /** Jobs of the next account, which then becomes the last. Only while jobs wait. */
  nextBatch(): J[]
  /** Removes and returns all jobs. */
  clear(): J[]
}

export function createJobQueue<J extends WaitingJob>(batchMax: number): JobQueue<J> {
  const byAccount = new Map<string, J[]>()
  let count = 0

  function jobsOf({ accountId }: J): J[] {
    const jobs = byAccount.get(accountId) ?? []
    byAccount.set(accountId, jobs)
    return jobs
  }

  return {
    get count() {
      return count
    },
    add(job) {
      jobsOf(job).push(job)
      count++
    },
    putBack(job) {
      jobsOf(job).unshift(job)
      count++
    },
    nextBatch() {
      const [accountId, jobs] = byAccount.entries().next().value as [string, J[]]
      const alone = jobs.findIndex((job) => job.alone)
      const batch = jobs.splice(0, alone < 0 ? batchMax : Math.min(Math.max(alone, 1), batchMax))
      byAccount.delete(accountId)
      if (jobs.length > 0) byAccount.set(accountId, jobs)
      count -= batch.length
      return batch
    },
    clear() {
      const jobs = [...byAccount.values()].flat()
      byAccount.clear()
      count = 0
      return jobs
    },
  }
}
