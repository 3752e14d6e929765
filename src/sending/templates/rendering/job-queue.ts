/** Waiting rendering jobs per account: accounts are served in turn, a batch of jobs each. */

export interface WaitingJob {
  accountId: string
  /** Its batch ended for an unknown reason: next time the job is a batch of its own. */
  alone: boolean
}

export function createJobQueue<J extends WaitingJob>(batchMax: number) {
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
    add(job: J) {
      jobsOf(job).push(job)
      count++
    },
    /** To the front of its account's jobs. */
    putBack(job: J) {
      jobsOf(job).unshift(job)
      count++
    },
    /** Jobs of the next account, which then becomes the last. Only while jobs wait. */
    nextBatch() {
      const [accountId, jobs] = byAccount.entries().next().value as [string, J[]]
      const alone = jobs.findIndex((job) => job.alone)
      const batch = jobs.splice(0, alone < 0 ? batchMax : Math.min(Math.max(alone, 1), batchMax))
      byAccount.delete(accountId)
      if (jobs.length > 0) byAccount.set(accountId, jobs)
      count -= batch.length
      return batch
    },
    /** Removes and returns all jobs. */
    clear() {
      const jobs = [...byAccount.values()].flat()
      byAccount.clear()
      count = 0
      return jobs
    },
  }
}
