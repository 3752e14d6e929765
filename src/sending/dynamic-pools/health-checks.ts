/** The checks of enrolled domains on their schedule (dynamic-pools.md section 4). */

import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { DynamicPoolDomainRow } from '../../platform/store/schema.ts'
import type { Enrolments } from './enrolments.ts'

const LOOK_EVERY_MS = MINUTE_MS
/** In one step. */
const BATCH = 50
/** A check that failed is due again after this. */
const RETRY_MS = 5 * MINUTE_MS

interface HealthCheckParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  enrolments: Enrolments
}

export function createHealthChecks({ store, clock, log, enrolments }: HealthCheckParts): Job {
  const waiting = store.db.selectFrom('dynamic_pool_domains').where('is_pinned', '=', 0)

  async function work(signal: AbortSignal): Promise<'more' | { againInMs: number }> {
    const now = Math.floor(clock.now())
    const due = await waiting
      .selectAll()
      .where('next_check_at', '<=', now)
      .orderBy('next_check_at')
      .limit(BATCH)
      .execute()
    for (const row of due) {
      if (signal.aborted) break
      await check(row)
    }
    if (due.length === BATCH) return 'more'
    return { againInMs: await untilNext() }
  }

  /** One that cannot be checked holds up no other. */
  async function check(row: DynamicPoolDomainRow): Promise<void> {
    try {
      await enrolments.runCheck(row)
    } catch (error) {
      log.warn({ err: error, domain: row.name }, 'cannot check a domain in dynamic pools')
      await store.db
        .updateTable('dynamic_pool_domains')
        .set({ next_check_at: Math.floor(clock.now()) + RETRY_MS })
        .where('domain_id', '=', row.domain_id)
        .where('next_check_at', '=', row.next_check_at)
        .execute()
    }
  }

  async function untilNext(): Promise<number> {
    const next = await waiting.select((of) => of.fn.min('next_check_at').as('at')).executeTakeFirst()
    return next?.at == null ? LOOK_EVERY_MS : Math.max(1, Number(next.at) - clock.now())
  }

  return createJob({ name: 'dynamic-pool-checks', everyMs: LOOK_EVERY_MS, scope: 'database', work })
}
