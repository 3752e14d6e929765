/** Puts together what failed attempts mean: rules, their counting, what the operator is told. */
import { createJudge, failureStatements } from '../bounces/failures.ts'
import { createRefusalLog, recentRefusals } from '../bounces/refusals.ts'
import { removeFailuresOf, removeOldFailures } from '../bounces/retention.ts'
import { bounceRoutes } from '../bounces/routes.ts'
import { loadRules } from '../bounces/rules.ts'
import { createTicker } from '../domains/ticker.ts'
import type { EventRecord } from '../events/event.ts'
import { DAY_MS } from '../events/retention.ts'
import type { Closers, Core } from './core.ts'

const RETENTION_EVERY_MS = 3_600_000

/** @throws RuleFileError when the operator's file has faults */
export function startBounces({ config, store, domains, clock, log }: Core, open: Closers) {
  const rules = loadRules(config.bounceRulesFile)
  log.info({ version: rules.version, rules: rules.rules.length }, 'bounce classification rules')
  const tell = createRefusalLog(rules, clock, log)
  const keepMs = config.eventRetentionDays * DAY_MS
  const retention = createTicker({
    name: 'classified-failures',
    everyMs: RETENTION_EVERY_MS,
    clock,
    log,
    work: (signal) => removeOldFailures(store, clock.now() - keepMs, signal),
  })
  retention.start()
  open.push(() => retention.stop())
  return {
    rules,
    judge: createJudge(rules),
    /** The rows of failed events, for their transaction. */
    count(events: readonly EventRecord[]) {
      tell(events)
      return failureStatements(rules, events)
    },
    forgetDomain: (domain: { accountId: string; name: string }) => removeFailuresOf(store, domain),
    recentRefusals: () => recentRefusals(store, rules, clock.now()),
    routes: bounceRoutes({ store, domains, clock, rules, keepMs }),
  }
}

export type Bounces = ReturnType<typeof startBounces>
