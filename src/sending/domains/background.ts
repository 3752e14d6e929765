/**
 * Background DNS checks: looks up the records of domains whose next check is due, a few domains at a time. A check
 * is claimed by moving its due time, so only one node runs it, and a node that crashes costs one interval.
 */

import type { Logger } from 'pino'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { Store } from '../../platform/store/store.ts'
import { untilStopped } from './dns/lookups.ts'
import { type VerificationParts, verifyDomain } from './dns/verification.ts'

const LOOK_EVERY_MS = MINUTE_MS
/** Read per query; the next batch is read when these are done. */
const BATCH = 100
/** Domains checked at once: about eight queries each, next to those of delivery. */
const CONCURRENT = 4
/** A claimed check that never finished is due again after this. */
const CLAIM_MS = 10 * MINUTE_MS

export function createDnsChecks(parts: VerificationParts & { log: Logger }): Job {
  const { store, clock, log, domains } = parts
  return createJob({
    name: 'dns-checks',
    everyMs: LOOK_EVERY_MS,
    // Each process claims rows of its own.
    scope: 'claims',
    async work(signal) {
      for (let more = true; more && !signal.aborted; ) {
        const due = await dueDomains(store, clock.now())
        more = due.length === BATCH
        const queue = [...due]
        const worker = async () => {
          for (let next = queue.shift(); next && !signal.aborted; next = queue.shift())
            await check(next, signal)
        }
        await Promise.all(Array.from({ length: CONCURRENT }, worker))
      }
    },
  })

  async function check(due: { domain_id: string; next_check_at: number }, signal: AbortSignal) {
    const claimed = await store.db
      .updateTable('domain_dns')
      .set({ next_check_at: Math.floor(clock.now()) + CLAIM_MS })
      .where('domain_id', '=', due.domain_id)
      .where('next_check_at', '=', due.next_check_at)
      .executeTakeFirst()
    if (Number(claimed.numUpdatedRows) === 0) return
    const domain = await domains.byId(due.domain_id)
    if (!domain) return
    const resolver = untilStopped(parts.resolver, signal)
    const after = await verifyDomain({ ...parts, resolver }, domain, 'in-background')
    if (after && after.state !== domain.state)
      log.info({ domain: domain.name, from: domain.state, to: after.state }, 'domain state changed')
  }
}

function dueDomains(store: Store, now: number) {
  return store.db
    .selectFrom('domain_dns')
    .select(['domain_id', 'next_check_at'])
    .where('next_check_at', '<=', Math.floor(now))
    .orderBy('next_check_at')
    .limit(BATCH)
    .execute()
}
