/** Logs: the events of accounts over all their domains, and why rates are what they are. */
import type { Area } from '../../area.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createLogReader } from './log-reader.ts'
import type { MetricFacts } from './metric-events.ts'
import { type ReasonRouteParts, reasonRoutes } from './reason-routes.ts'
import { logRoutes } from './routes.ts'

type LogsUses = MetricFacts & Pick<ReasonRouteParts, 'figures' | 'failureReasons'>

export function logsArea(core: Core, uses: LogsUses): Area {
  const { config, store, accounts, domains, clock, sealer } = core
  const retentionMs = config.eventRetentionDays * DAY_MS
  return {
    operations: [
      ...logRoutes({ logs: createLogReader({ store, accounts, facts: uses, retentionMs }), clock, sealer }),
      ...reasonRoutes({ ...uses, domains, clock }),
    ],
  }
}
