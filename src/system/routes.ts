/** The checks of `doctor` over HTTP (own-operations.md section 6). */
import type { Clock } from '../base/clock.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { CheckResult } from './checks.ts'

/** The checks ask other hosts: results are given again for this long, `checked_at` saying so. */
const KEPT_MS = 30_000

/** `run` never rejects. Callers at the same time share one run. */
export function systemRoutes(run: () => Promise<CheckResult[]>, clock: Clock): Operation[] {
  let last: { at: number; results: Promise<CheckResult[]> } | null = null
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/system/checks',
      id: 'runChecks',
      tag: 'System',
      summary: 'Check whether this machine is fit to send mail',
      auth: { area: 'domains', access: 'read' },
      params: [],
      responses: { 200: { description: 'One result per check' } },
      async handler() {
        const now = clock.monotonic()
        if (last === null || now - last.at > KEPT_MS) last = { at: now, results: run() }
        return { items: await last.results }
      },
    }),
  ]
}
