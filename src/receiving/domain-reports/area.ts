/** What receivers report about domains by mail: DMARC, TLS and complaints, kept for a year. */
import type { Area } from '../../area.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { createMailCheck } from '../routes/mail-check.ts'
import { reportAddresses } from './addresses.ts'
import { dmarcRoutes } from './dmarc/routes.ts'
import { postedReportRoute } from './posted.ts'
import { reportRoutes } from './routes.ts'
import { complaintStatements, removeOldReports, removeReportsBeyond, removeReportsOf } from './store.ts'

export const KEPT_MS = 366 * DAY_MS

export function domainReportsArea(core: Core): Area {
  const { config, store, clock, domains } = core
  const hostname = config.hostname.toLowerCase()
  const check = createMailCheck({ ...core, hostname: config.hostname })
  return {
    operations: [
      ...reportRoutes({ store, domains, clock, baseUrl: config.publicUrl }),
      postedReportRoute({ store, domains, clock }),
      ...dmarcRoutes({ store, domains, clock, resolver: core.resolver, baseUrl: config.publicUrl }),
    ],
    jobs: [
      createJob({
        name: 'domain-report-retention',
        everyMs: 3_600_000,
        scope: 'database',
        async work(signal) {
          await removeOldReports(store, clock.now() - KEPT_MS, signal)
          await removeReportsBeyond(store, config.reportRetentionBytes, signal)
        },
      }),
    ],
    withEvents: {
      of: ['complained'],
      rows: (events) =>
        events.flatMap(({ id, domainName, timestampUs, payload }) =>
          complaintStatements(
            id,
            domainName,
            String(payload['recipient-provider']),
            Math.floor(timestampUs / 1000),
          ),
        ),
    },
    addresses: reportAddresses({ ...core, check, hostname }),
    domainDeleted: ({ id }) => removeReportsOf(store, id),
  }
}
