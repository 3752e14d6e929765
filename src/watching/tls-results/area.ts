/** TLS reports about the mail that this service sends, daily, to the domains that ask for them (RFC 8460). */
import type { Area } from '../../area.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { ReportMail } from '../../mail/messages/system-mail.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { createReportProgress, removeOldReports } from '../../receiving/report-sending/daily-reports.ts'
import type { WebhooksArea } from '../webhooks/area.ts'
import { POST_KIND, reportPosts, sendReports } from './reports.ts'

const EVERY_MS = 10 * MINUTE_MS

export function tlsReportsArea(
  core: Core,
  { sendMime, posts }: { sendMime: ReportMail; posts: WebhooksArea['posts'] },
): Area {
  const { config, store, clock } = core
  const hostname = config.hostname.toLowerCase()
  // Also with reports switched off: some may wait from before.
  posts.addKind(POST_KIND, reportPosts({ store, hostname }, config.webhookScheduleMs))
  const parts = { ...core, sendMime, posts, hostname, progress: createReportProgress() }
  return {
    jobs: [
      createJob({
        name: 'tls-reports',
        everyMs: EVERY_MS,
        scope: 'database',
        async work(signal) {
          await removeOldReports(store, 'tls_reports', clock.now())
          if (config.tlsReports && (await sendReports(parts, signal))) return 'more'
          return undefined
        },
      }),
    ],
  }
}
