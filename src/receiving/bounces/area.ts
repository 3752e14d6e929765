/** Bounces: what a refusal means, classified failures, and reports that come back as mail. */

import type { Area } from '../../area.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Judge } from '../../mail/deliver/attempt/outcome.ts'
import { returnPathMac } from '../../mail/deliver/attempt/return-path.ts'
import type { KnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { removeIndexedRows, removeRowsInPass } from '../../platform/store/account-rows.ts'
import { classify, type FailureText } from './classify.ts'
import { createJudge, failureStatements, removeFailuresOf, removeOldFailures } from './failures.ts'
import { explainedReasons, type ReasonQuery } from './reasons.ts'
import { createRefusalLog, recentRefusals, refusalsByProvider } from './refusals.ts'
import { createReports, type Reports, reportAddresses } from './reports.ts'
import { bounceRoutes } from './routes.ts'
import { loadRules } from './rules.ts'

export interface BouncesArea extends Area {
  judge: Judge
  reports: Reports
  /** Whether a rule stands for a limit of the receiver's rate. */
  isRateLimit(ruleId: string): boolean
  /** Whether a rule says that there is no such mailbox. */
  isUnknownUser(ruleId: string): boolean
  recentRefusals(): ReturnType<typeof recentRefusals>
  /** Since a time in Unix milliseconds. */
  refusalsByProvider(since: number): ReturnType<typeof refusalsByProvider>
  failureReasons(query: ReasonQuery): ReturnType<typeof explainedReasons>
}

interface BouncesUses {
  known: KnownDeliveries
  /** Whether mail to that host is for this service. */
  isOwnHost(host: string): Promise<boolean>
}

/** The rule of mailboxes that were there once. */
const CLOSED_MAILBOX = 'generic-disabled'
const RETENTION_EVERY_MS = HOUR_MS

/** @throws RuleFileError when the operator's file has faults */
export function bouncesArea(core: Core, { known, isOwnHost }: BouncesUses): BouncesArea {
  const { config, store, sealer, domains, clock, log, recorder } = core
  const rules = loadRules(config.bounceRulesFile)
  if (config.bounceRulesFile !== null)
    log.info({ version: rules.version, rules: rules.rules.length }, 'bounce classification rules read')
  const logRefusals = createRefusalLog(rules, clock, log)
  const keepMs = config.eventRetentionDays * DAY_MS
  const mac = returnPathMac(sealer)
  const reports = createReports({
    ...{ store, deliveries: known, mac, clock, recorder },
    classify: (failure: FailureText) => classify(rules, failure),
  })
  return {
    judge: createJudge(rules),
    reports,
    isRateLimit: (ruleId) => rules.byId.get(ruleId)?.category === 'RATELIMIT',
    isUnknownUser: (ruleId) => ruleId !== CLOSED_MAILBOX && rules.byId.get(ruleId)?.category === 'BOUNCE',
    recentRefusals: () => recentRefusals(store, rules, clock.now()),
    refusalsByProvider: (since) => refusalsByProvider(store, rules, since),
    failureReasons: (query) => explainedReasons(store, rules, query),
    operations: bounceRoutes({ store, domains, clock, rules, keepMs }),
    jobs: [
      createJob({
        name: 'classified-failure-retention',
        everyMs: RETENTION_EVERY_MS,
        scope: 'database',
        work: (signal) => removeOldFailures(store, clock.now() - keepMs, signal),
      }),
    ],
    withEvents: {
      of: ['failed'],
      rows(events) {
        logRefusals(events)
        return failureStatements(rules, events)
      },
    },
    addresses: reportAddresses({ reports, mac, isOwnHost, log }),
    domainDeleted: (domain) => removeFailuresOf(store, domain),
    async accountDeleted(accountId, signal) {
      await removeIndexedRows(core, 'classified_failures', ['id'], 'account_id', accountId, signal)
      await removeRowsInPass(core, 'delivery_reports', 'delivery_id', accountId, signal)
    },
  }
}
