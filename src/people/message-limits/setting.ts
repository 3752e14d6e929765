/** Reading, setting and deleting limits, lifting the stop (accounts.md section 5), and counting again. */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Store } from '../../platform/store/store.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import { type MessageLimits, REMEMBER_MS } from './limits.ts'
import { canLift, inMonth, monthOf, withLimit, withUsed } from './month.ts'
import type { MessageLimit } from './shapes.ts'
import { changeLimit, dueRecounts, readLimit, removeOld } from './store.ts'

export type LimitSettings = ReturnType<typeof createLimitSettings>

/** By then all processes know of a new limit, and have committed what they had begun. */
const RECOUNT_AFTER_MS = 3 * REMEMBER_MS
/** Wait while the counters have a backlog. */
const BACKLOG_WAIT_MS = 2_000
const RECOUNTS_MAX = 100

export function createLimitSettings(parts: {
  store: Store
  clock: Clock
  accounts: AccountDirectory
  limits: Pick<MessageLimits, 'changed'>
}) {
  const { store, clock, accounts, limits } = parts
  const month = () => monthOf(clock.now())
  /** Counts again what was counted before all processes knew of the limit, and removes what is too old. */
  const job = createJob({
    name: 'message-limits',
    everyMs: RECOUNT_AFTER_MS,
    scope: 'database',
    work: (signal) => recount(signal),
  })

  async function recount(signal: AbortSignal) {
    await removeOld(store, month())
    const due = await dueRecounts(store, clock.now(), RECOUNTS_MAX)
    let backlog = false
    for (const accountId of due) {
      signal.throwIfAborted()
      await changeLimit(store, accountId, month(), async (before, counted) => {
        if (before === null || before.recountAt === null) return before
        const state = inMonth(before, month())
        const { accepted, complete } = await counted()
        backlog ||= !complete
        return complete ? { ...withUsed(state, accepted), recountAt: null } : before
      })
    }
    if (due.length > 0) limits.changed()
    if (backlog) return { againInMs: BACKLOG_WAIT_MS }
    return due.length === RECOUNTS_MAX ? ('more' as const) : undefined
  }

  return {
    job,
    /** @throws NotFound without a limit */
    async read(accountId: string): Promise<MessageLimit> {
      const state = await readLimit(store, accountId)
      if (state === null || state.limit === null) throw new NotFound('No threshold for account')
      return { limit: state.limit, current: inMonth(state, month()).used, period: '1m' }
    },
    async set(accountId: string, limit: number): Promise<void> {
      await changeLimit(store, accountId, month(), async (before, counted) => {
        const accepted = before !== null && before.limit !== null ? 0 : (await counted()).accepted
        const recountAt = Math.floor(clock.now() + RECOUNT_AFTER_MS)
        return withLimit(before, limit, month(), accepted, recountAt)
      })
      limits.changed()
    },
    /** @throws BadRequest without a limit */
    async remove(accountId: string): Promise<void> {
      await changeLimit(store, accountId, month(), async (before) => {
        if (before === null || before.limit === null)
          throw new BadRequest('Could not delete threshold for account')
        const state = inMonth(before, month())
        return state.stopped ? { ...state, limit: null, reachedPercent: 0, recountAt: null } : null
      })
      limits.changed()
    },
    /** @throws BadRequest while the limit is still reached, or the account is disabled */
    async lift(accountId: string): Promise<void> {
      const account = await accounts.byId(accountId)
      if (account?.status !== 'open') throw cannotLift()
      await changeLimit(store, accountId, month(), async (before) => {
        if (before === null) return null
        const state = inMonth(before, month())
        if (!state.stopped) return before
        if (!canLift(state, month())) throw cannotLift()
        return state.limit === null ? null : { ...state, stopped: false }
      })
      limits.changed()
    },
  }
}

const cannotLift = () => new BadRequest('Unable to re-enable account with current account disablement')
