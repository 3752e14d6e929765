/**
 * What DNS says of the operator's own records: looked up every ten minutes and when somebody has a domain checked, and kept
 * in memory, since every node that answers can ask for itself.
 */

import { hostAddresses } from '../../../base/net/host-addresses.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { untilStopped } from './lookups.ts'
import { checkOwnRecords, type OwnRecordCheck } from './own-records.ts'

const LOOK_EVERY_MS = 10 * MINUTE_MS
/** Name servers that do not answer must not hold up the check of a domain. */
const WAIT_MAX_MS = 5_000

export type OwnRecordLooks = ReturnType<typeof createOwnRecordLooks>

export function createOwnRecordLooks(core: Pick<Core, 'config' | 'resolver' | 'clock' | 'log'>) {
  const { config, resolver, clock, log } = core
  let checks: readonly OwnRecordCheck[] = []
  let running: Promise<void> | null = null

  async function lookWith(asked: typeof resolver): Promise<void> {
    const parts = { resolver: asked, config, hostAddresses: hostAddresses(), fresh: true }
    checks = await checkOwnRecords(parts)
  }

  return {
    /** Results of the last look; empty before the first. */
    last: () => checks,
    /** Looks again; resolves when that is done, or after a few seconds. Never rejects. */
    async look(): Promise<void> {
      // Callers share the look in progress: a dozen queries, as for a domain.
      running ??= lookWith(resolver)
        .catch((err: unknown) => log.error({ err }, "cannot look up the service's own records"))
        .finally(() => {
          running = null
        })
      const deadline = Promise.withResolvers<void>()
      const timer = clock.setTimer(WAIT_MAX_MS, deadline.resolve)
      await Promise.race([running, deadline.promise]).finally(() => timer.cancel())
    },
    job: createJob({
      name: 'own-records',
      everyMs: LOOK_EVERY_MS,
      scope: 'process',
      work: (signal) => lookWith(untilStopped(resolver, signal)),
    }),
  }
}
