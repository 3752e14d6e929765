/** DMARC reports about received mail, daily, to the domains of its authors that ask for them (RFC 9990). */
import type { Area } from '../../area.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { ReportMail } from '../../mail/messages/system-mail.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { FindingObserver } from '../routes/mail-check.ts'
import { createReportProgress, dayText, removeOldReports, sendDailyReports } from './daily-reports.ts'
import { dmarcReportKind } from './dmarc-reports.ts'
import { observedMail } from './observed.ts'
import { createDmarcResults, removeOldResults } from './results.ts'

export interface ReportSendingArea extends Area {
  /** Undefined: no reports are sent, so nothing is counted. */
  observe: FindingObserver | undefined
}

const EVERY_MS = 10 * MINUTE_MS
/** Longer than reports are late. */
const KEPT_DAYS = 9

export function reportSendingArea(core: Core, { sendMime }: { sendMime: ReportMail }): ReportSendingArea {
  const { config, store, clock } = core
  const sender = config.dmarcReports
  const results = sender === null ? null : createDmarcResults(core)
  const parts = { ...core, sendMime, progress: createReportProgress() }
  return {
    observe:
      results === null
        ? undefined
        : (mail, found) => {
            const observed = observedMail(mail, found)
            if (observed) results.record(observed)
          },
    jobs: [
      createJob({
        name: 'dmarc-reports',
        everyMs: EVERY_MS,
        scope: 'database',
        async work(signal) {
          await removeOldReports(store, 'dmarc_reports', clock.now())
          await removeOldResults(store, dayText(clock.now() - KEPT_DAYS * DAY_MS))
          if (sender === null) return undefined
          const goesOn = await sendDailyReports(parts, dmarcReportKind({ ...parts, sender }), signal)
          return goesOn ? 'more' : undefined
        },
      }),
    ],
    stop: () => results?.close(),
  }
}
