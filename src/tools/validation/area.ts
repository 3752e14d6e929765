/** Validation of addresses: single ones while the caller waits, lists of them in the background. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Judge } from '../../mail/deliver/attempt/outcome.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { taskJob } from '../../platform/jobs/stepped-task.ts'
import type { ValidationJobRow } from '../../platform/store/schema.ts'
import type { ListStore } from '../../sending/lists/store.ts'
import type { EventNotices } from '../../watching/alerts/notices.ts'
import { createJobSteps } from './bulk/job-steps.ts'
import { createJobs } from './bulk/jobs.ts'
import { removeJobs, removeJobsOf } from './bulk/removal.ts'
import { bulkRoutes } from './bulk/routes.ts'
import { createDomainMailLookup } from './domain-mail.ts'
import { createOwnData } from './own-data.ts'
import { singleRoutes } from './routes.ts'
import type { Counts } from './shapes.ts'
import { createSmtpProbe, removeOldProbes } from './smtp-probe.ts'
import { createValidator } from './validator.ts'

interface ValidationUses {
  lists: ListStore
  judge: Judge
  events: EventNotices
}

const REMOVE_EVERY_MS = 600_000
/** Lookups of an account at once (auth-limits.md section 6). */
const LOOKUPS_MAX = 50

export function validationArea(core: Core, { lists, judge, events }: ValidationUses): Area {
  const { config, store, clock, resolver } = core
  const probe = config.validationSmtpProbe
    ? createSmtpProbe({ ...core, judge, hostname: config.hostname, port: config.mxPort })
    : null
  const validator = createValidator({
    ownData: createOwnData(store, clock),
    domainMail: createDomainMailLookup(resolver, clock),
    probe,
  })
  const steps = createJobSteps({
    ...{ ...core, validator, owner: core.leaseOwner },
    finished: (job) => events.statements({ accountId: job.account_id, ...noticeOf(job) }),
    finishedCommitted: events.written,
  })
  const work = taskJob('validation-jobs', steps.runOne, 'process')
  const removal = createJob({
    name: 'validation-removal',
    everyMs: REMOVE_EVERY_MS,
    scope: 'database',
    async work(signal) {
      await removeJobs(core, signal)
      await removeOldProbes(store, clock.now(), signal)
    },
  })
  const jobs = createJobs({ ...core, wake: () => work.wake(), wakeRemoval: () => removal.wake() })
  return {
    operations: [
      ...singleRoutes({ ...core, validator, lookupsMax: config.rateLimit === null ? null : LOOKUPS_MAX }),
      ...bulkRoutes({ ...core, jobs, lists, baseUrl: config.publicUrl }),
    ],
    jobs: [work, removal],
    accountDeleted: (accountId, signal) => removeJobsOf(core, accountId, signal),
  }
}

/** validation.md section 3 rule 11. */
function noticeOf(job: ValidationJobRow) {
  const { result } = JSON.parse(job.counts_json) as Counts
  const isPreview = job.kind === 'preview'
  const what = isPreview ? 'preview' : 'job'
  const counts = Object.entries(result).map(([name, count]) => `${name}: ${count}`)
  return {
    type: isPreview ? 'validation_preview' : 'validation_job',
    subject: `Validation ${what} "${job.list_id}" is complete`,
    text: `The validation ${what} "${job.list_id}" is complete: ${job.done} addresses.\n\n${counts.join('\n')}\n`,
    details: {
      [what]: { id: job.list_id, quantity: job.quantity, records_processed: job.done, summary: { result } },
    },
  } as const
}
