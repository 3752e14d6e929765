/**
 * What follows from a change of a subaccount, by its state when the job runs, however often it changed before:
 *
 * - open: its held mail is released
 * - disabled, or without the right to send: its queued mail is held
 * - closed: its domains are deleted, then what every area holds of it. The rows of the account and of its audit log stay
 *
 * A note (`account_changes`) keeps the work over failures and restarts. It goes when all is done a second time after
 * SETTLE_MS: by then no process has the former state in a cache, and requests that began before have ended.
 */

import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountHolds } from '../../mail/deliver/claim/account-holds.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { AccountChangeRow } from '../../platform/store/schema.ts'
import { NotYet } from '../../sending/domains/deletion.ts'
import { accountOfRow, maySend } from '../accounts/account-directory.ts'

const LOOK_EVERY_MS = MINUTE_MS
/** Caches of accounts last 5 seconds, SMTP sessions and uploads of large requests some minutes at most. */
const SETTLE_MS = MINUTE_MS
const RETRY_MIN_MS = 10_000
const RETRY_MAX_MS = HOUR_MS
/** A delivery in progress ends within seconds. */
const NOT_YET_MS = 1_000
const BATCH = 20

export interface ChangesParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  holds: AccountHolds
  /** Released mail may be due. */
  wakeDelivery(): void
  /** Deletes all domains of an account. False while something of them is left. */
  removeDomains(accountId: string): Promise<boolean>
  /** Removes what all areas hold of an account. */
  removeAll(accountId: string, signal: AbortSignal): Promise<void>
}

export function createChangesJob(parts: ChangesParts): Job {
  const { store, clock, log } = parts

  async function work(signal: AbortSignal): Promise<{ againInMs: number }> {
    const due = await store.db
      .selectFrom('account_changes')
      .selectAll()
      .where('due_at', '<=', Math.floor(clock.now()))
      .orderBy('due_at')
      .limit(BATCH)
      .execute()
    for (const row of due) {
      if (!signal.aborted) await attempt(row, signal)
    }
    return { againInMs: await untilNext() }
  }

  async function untilNext(): Promise<number> {
    const next = await store.db
      .selectFrom('account_changes')
      .select((of) => of.fn.min('due_at').as('at'))
      .executeTakeFirst()
    return next?.at == null ? LOOK_EVERY_MS : Math.max(1, Number(next.at) - clock.now())
  }

  async function attempt(row: AccountChangeRow, signal: AbortSignal): Promise<void> {
    const { account_id: account, changed_at: changedAt, attempts } = row
    const settledAt = changedAt + SETTLE_MS
    const began = clock.now()
    try {
      await apply(account, signal)
      if (signal.aborted) return
      if (began >= settledAt) await end(row)
      else await postpone(row, settledAt, 0)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof NotYet))
        log.error({ err: error, account }, 'cannot complete a change of a subaccount')
      const waitMs =
        error instanceof NotYet ? NOT_YET_MS : Math.min(RETRY_MIN_MS * 2 ** attempts, RETRY_MAX_MS)
      await postpone(row, clock.now() + waitMs, error instanceof NotYet ? attempts : attempts + 1)
    }
  }

  async function apply(accountId: string, signal: AbortSignal): Promise<void> {
    // Not from the cache, which may be older than the note.
    const row = await store.db
      .selectFrom('accounts')
      .selectAll()
      .where('id', '=', accountId)
      .executeTakeFirstOrThrow()
    const account = accountOfRow(row)
    if (account.status === 'closed') return remove(accountId, signal)
    if (!maySend(account)) return parts.holds.hold(await domainIds(accountId), signal)
    await parts.holds.release(accountId, signal)
    parts.wakeDelivery()
  }

  async function remove(accountId: string, signal: AbortSignal): Promise<void> {
    if (!(await parts.removeDomains(accountId))) throw new NotYet('its domains are being deleted')
    await parts.removeAll(accountId, signal)
  }

  async function domainIds(accountId: string): Promise<Set<string>> {
    const rows = await store.db
      .selectFrom('domains')
      .select('id')
      .where('account_id', '=', accountId)
      .execute()
    return new Set(rows.map(({ id }) => id))
  }

  /** Unless it has changed again meanwhile: then it is due already. */
  async function postpone(row: AccountChangeRow, dueAt: number, attempts: number): Promise<void> {
    await store.db
      .updateTable('account_changes')
      .set({ due_at: Math.floor(dueAt), attempts })
      .where('account_id', '=', row.account_id)
      .where('changed_at', '=', row.changed_at)
      .execute()
  }

  async function end(row: AccountChangeRow): Promise<void> {
    await store.db
      .deleteFrom('account_changes')
      .where('account_id', '=', row.account_id)
      .where('changed_at', '=', row.changed_at)
      .execute()
    log.info({ account: row.account_id }, 'a change of a subaccount is complete')
  }

  return createJob({ name: 'subaccount-changes', everyMs: LOOK_EVERY_MS, scope: 'database', work })
}
