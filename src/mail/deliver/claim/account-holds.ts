/**
 * Holds the queued mail of accounts that may not send, and releases it (accounts.md section 3 rule 4).
 *
 * What is due is put aside here, a portion at a time: it leaves the engine's view until its window ends. What falls due
 * later is put aside by the attempt that finds the account so (attempting.ts). Either way the row has the reason
 * REASON_ACCOUNT_HELD, under which an index finds it again. Mail that has a place in neither costs nothing.
 */
import type { Clock } from '../../../base/time/clock.ts'
import type { Store } from '../../../platform/store/store.ts'
import { REASON_ACCOUNT_HELD } from '../attempt/outcome.ts'
import { type DueGroup, type Queue, STATE_OF_ID, WAITS, WINDOW_IS_SENDERS } from './queue.ts'

/** Rows in one transaction. */
const PORTION = 500
/** Groups of all senders that are read at a time. */
const GROUPS = 1_000

/** Their time has come, so they count as queued from now on. Those whose window is over end by an attempt. */
const HOLD = `UPDATE deliveries
  SET state = 'queued', paused_due_at = due_at, due_at = expires_at, reason = '${REASON_ACCOUNT_HELD}', updated_at = ?
  WHERE id IN (SELECT id FROM deliveries
    WHERE ${WAITS} AND recipient_domain = ? AND domain_id = ? AND source_key = ? AND due_at <= ?
      AND expires_at > ? AND reason <> 'paused'
    ORDER BY due_at, id LIMIT ${PORTION}) AND ${STATE_OF_ID} IN ('scheduled', 'queued')`

/** Windows that were moved to make up for a wait (attempting.ts) are shorter by the part of it that is left. */
const RELEASE = `UPDATE deliveries
  SET due_at = COALESCE(paused_due_at, ?), paused_due_at = NULL, reason = 'resumed', updated_at = ?,
    expires_at = CASE WHEN due_at < expires_at AND due_at > ? AND NOT ${WINDOW_IS_SENDERS}
      THEN expires_at - (due_at - ?) ELSE expires_at END
  WHERE id IN (SELECT id FROM deliveries
    WHERE account_id = ? AND reason = '${REASON_ACCOUNT_HELD}' AND ${WAITS} ORDER BY id LIMIT ${PORTION})
  AND ${STATE_OF_ID} IN ('scheduled', 'queued')`

export type AccountHolds = ReturnType<typeof createAccountHolds>

export function createAccountHolds(store: Store, queue: Pick<Queue, 'dueGroups'>, clock: Clock) {
  async function portion(sql: string, values: readonly (string | number)[]): Promise<boolean> {
    const [result] = await store.commit([{ sql, values }])
    return (result?.affected ?? 0) === PORTION
  }

  async function holdGroup(group: DueGroup, signal: AbortSignal): Promise<void> {
    const { recipient_domain, domain_id, source_key = '' } = group
    for (let more = true; more && !signal.aborted; ) {
      const now = Math.floor(clock.now())
      more = await portion(HOLD, [now, recipient_domain, domain_id, source_key, now, now])
    }
  }

  return {
    /** Puts aside what is due of these domains. */
    async hold(domainIds: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
      let after: DueGroup | null = null
      while (!signal.aborted) {
        const groups = await queue.dueGroups(GROUPS, clock.now(), after)
        for (const group of groups) if (domainIds.has(group.domain_id)) await holdGroup(group, signal)
        if (groups.length < GROUPS) return
        after = groups.at(-1) ?? null
      }
    },
    /** Makes everything held of the account due again, at its own time. */
    async release(accountId: string, signal: AbortSignal): Promise<void> {
      for (let more = true; more && !signal.aborted; ) {
        const now = Math.floor(clock.now())
        more = await portion(RELEASE, [now, now, now, now, accountId])
      }
    },
  }
}
