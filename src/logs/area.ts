/** Logs: the events of accounts over all their domains. */
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { DAY_MS } from '../events/event-retention.ts'
import type { MetricFacts } from '../events/metric-events.ts'
import { createLogReader } from './log-reader.ts'
import { logRoutes } from './routes.ts'

export function logsArea({ config, store, accounts, clock, sealer }: Core, facts: MetricFacts): Area {
  const retentionMs = config.eventRetentionDays * DAY_MS
  return {
    operations: logRoutes({ logs: createLogReader({ store, accounts, facts, retentionMs }), clock, sealer }),
  }
}
