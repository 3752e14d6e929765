/** The installation and its checks over HTTP (own-operations.md section 6). */

import { list, type Of, object } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { CheckResult } from './checks.ts'
import { CHECK, SYSTEM } from './shapes.ts'

/** The checks query other hosts: results are repeated for this long, with the `checked_at` of their run. */
const KEPT_MS = 30_000

interface SystemRouteParts {
  describe(caller: Pick<Caller, 'accountId' | 'role'>): Promise<Of<typeof SYSTEM>>
  /** Never rejects. Callers at the same time share one run. */
  check(): Promise<CheckResult[]>
  clock: Clock
}

export function systemRoutes({ describe, check, clock }: SystemRouteParts): Operation[] {
  let last: { at: number; results: Promise<CheckResult[]> } | null = null
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/system',
      id: 'readSystem',
      tag: 'System',
      summary: 'Version, mode, database, uptime, queue totals, periodic jobs',
      auth: { area: 'domains', access: 'read' },
      answers: { 200: SYSTEM },
      handler: ({ caller }) => describe(caller),
    }),
    operation({
      method: 'GET',
      path: '/sendwright/v1/system/checks',
      id: 'runChecks',
      tag: 'System',
      summary: 'Check whether this machine is fit to send mail',
      description: 'For the first account only: results name hosts of all accounts, and files.',
      auth: { area: 'domains', access: 'read', only: 'first' },
      answers: { 200: object('Results', { items: list('One per check', CHECK) }) },
      async handler() {
        const now = clock.monotonic()
        if (last === null || now - last.at > KEPT_MS) last = { at: now, results: check() }
        return { items: await last.results }
      },
    }),
  ]
}
