/** The limits per provider that are in force in this process (own-operations.md section 3). */
import { Forbidden } from '../../base/process/errors.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Overrides } from '../deliver/overrides/overrides.ts'
import type { Shaping } from '../deliver/shaping/shaping.ts'
import { backOffOf, type LaneLimits } from '../deliver/shaping/shaping-table.ts'
import { overrideView } from './override-routes.ts'
import { SHAPING, type ShapingView } from './shapes.ts'

export interface ShapingRouteParts {
  shaping: Shaping
  overrides: Pick<Overrides, 'list'>
  firstAccountId: string
}

export function shapingRoutes({ shaping, overrides, firstAccountId }: ShapingRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/shaping',
      id: 'readShaping',
      tag: 'Queue',
      summary: 'The limits per provider in force, and the faults of a file that is not',
      description: 'For the first account only.',
      auth: { area: 'account', access: 'read', only: 'first' },
      answers: { 200: SHAPING },
      async handler({ caller }) {
        if (caller.accountId !== firstAccountId) throw new Forbidden()
        return { ...shapingView(shaping), overrides: overrides.list().map(overrideView) }
      },
    }),
  ]
}

function shapingView(shaping: Shaping): Omit<ShapingView, 'overrides'> {
  const table = shaping.current()
  const { file, loadedAt, faults } = shaping.state()
  return {
    version: table.version,
    file,
    loaded_at: new Date(loadedAt).toISOString(),
    faults,
    default: siteView(table.default),
    providers: table.sites.map(({ site, mx, limits }) => ({ site, mx, ...siteView(limits) })),
  }
}

export const limitsView = ({ connections, messagesPerConnection, messagesPerSecond }: LaneLimits) => ({
  connections,
  messages_per_connection: messagesPerConnection,
  messages_per_second: messagesPerSecond,
})

function siteView(limits: LaneLimits) {
  const { recoveryMs, blockedPauseMs, blockedPauseMaxMs, replies } = backOffOf(limits)
  return {
    ...limitsView(limits),
    recovery_seconds: recoveryMs / 1_000,
    blocked_pause_seconds: blockedPauseMs / 1_000,
    blocked_pause_max_seconds: blockedPauseMaxMs / 1_000,
    replies: replies.map(({ code, patterns, action }) => ({
      code,
      patterns: patterns.map(({ source }) => source),
      action,
    })),
  }
}
