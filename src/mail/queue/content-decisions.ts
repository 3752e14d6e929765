/**
 * Carries out what was decided on held contents (content-check.md): releases or drops their deliveries, a portion at a time.
 * The decisions are rows, so that none is forgotten by a crash.
 */
import { MINUTE_MS } from '../../base/time/durations.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { type ActionParts, type Candidate, change } from './actions.ts'

const EVERY_MS = MINUTE_MS
const PORTION = 500
/** An attempt that had begun before the decision may hold its delivery this much later. */
const LATE_MS = 10 * MINUTE_MS

const DECIDED = `SELECT d.id, d.account_id, d.domain_id, d.recipient_domain, d.source_key, d.message_pk, h.decision
  FROM content_holds h JOIN deliveries d ON d.message_pk = h.message_pk
  WHERE h.decided_at >= ? AND d.reason = 'content-held' AND d.state IN ('scheduled', 'queued')
  ORDER BY d.message_pk, d.id LIMIT ${PORTION}`

export function createContentDecisions(parts: ActionParts): Job {
  const { store, clock, delivery, totals } = parts
  /** Earlier decisions were carried out. */
  let doneBefore = 0
  return createJob({
    name: 'content-decisions',
    everyMs: EVERY_MS,
    scope: 'database',
    async work() {
      const now = Math.floor(clock.now())
      const rows = (await store.read({ sql: DECIDED, values: [doneBefore] })) as unknown as (Candidate & {
        decision: 'released' | 'dropped'
      })[]
      const of = (decision: string) => rows.filter((row) => row.decision === decision)
      await change(parts, { action: 'release' }, of('released'))
      await change(parts, { action: 'drop' }, of('dropped'))
      if (rows.length > 0) {
        totals.forget()
        delivery.wake()
      }
      if (rows.length === PORTION) return 'more'
      doneBefore = now - LATE_MS
    },
  })
}
