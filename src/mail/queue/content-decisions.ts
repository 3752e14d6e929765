/**
 * Carries out what was decided on held contents (content-check.md): releases or drops their deliveries, a portion at a time.
 * What is done is removed, so that a crash or another process repeats nothing, and nothing is looked at twice.
 */
import { MINUTE_MS } from '../../base/time/durations.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { type Decision, removeStatements } from '../../sending/content-check/holds.ts'
import { type ActionParts, type Candidate, change } from './actions.ts'

const EVERY_MS = MINUTE_MS
const MESSAGES = 100
const PORTION = 500
/** An attempt that had begun before the decision may hold its delivery this much later. */
const LATE_MS = 10 * MINUTE_MS

const DECIDED = `SELECT h.message_pk, h.holds, c.decision
  FROM content_decisions c JOIN content_holds h ON h.digest = c.digest WHERE c.decided_at >= ? LIMIT ${MESSAGES}`

const held = (marks: string) => `SELECT id, account_id, domain_id, recipient_domain, source_key, message_pk
  FROM deliveries WHERE message_pk IN (${marks}) AND reason = 'content-held' AND state IN ('scheduled', 'queued')
  LIMIT ${PORTION}`

interface Decided {
  message_pk: string
  holds: number
  decision: Decision
}

export function createContentDecisions(parts: ActionParts): Job {
  const { store, clock, delivery, totals } = parts
  /** Earlier decisions were carried out. */
  let doneBefore = 0
  return createJob({
    name: 'content-decisions',
    everyMs: EVERY_MS,
    // Each change is for a row that nobody has changed yet.
    scope: 'claims',
    async work() {
      const now = Math.floor(clock.now())
      const messages = (await store.read({ sql: DECIDED, values: [doneBefore] })) as unknown as Decided[]
      if (messages.length === 0) {
        doneBefore = now - LATE_MS
        return
      }
      const ids = messages.map(({ message_pk: id }) => id)
      const sql = held(ids.map(() => '?').join(', '))
      const rows = (await store.read({ sql, values: ids })) as unknown as Candidate[]
      const decisions = new Map(messages.map(({ message_pk: id, decision }) => [id, decision]))
      const decided = (decision: Decision) => rows.filter((row) => decisions.get(row.message_pk) === decision)
      await change(parts, { action: 'release' }, decided('released'))
      await change(parts, { action: 'drop' }, decided('dropped'))
      // A full portion may have left some of a message.
      if (rows.length < PORTION)
        await store.commit(
          removeStatements(messages.map(({ message_pk: messagePk, holds }) => ({ messagePk, holds }))),
        )
      totals.forget()
      delivery.wake()
      return 'more'
    },
  })
}
