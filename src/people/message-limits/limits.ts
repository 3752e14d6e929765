/**
 * The gate that accepted mail passes: it counts recipients against the limits of the account and of its parent.
 *
 * 1. Limits are cached for a few seconds, with the last count that this process has seen. Counts only grow, so a cached
 *    one that leaves no room refuses without the database.
 * 2. Otherwise one statement per limit joins the transaction that accepts the mail; it fails its unit if the limit would
 *    be passed. So no two requests pass a limit together, in whatever process, and a process that dies leaves nothing
 *    counted that was not accepted (decision 64).
 * 3. Accounts without a limit are not counted. Setting one counts what was accepted before (setting.ts).
 */
import { createCache, isPending, whenKnown } from '../../base/flow/cache.ts'
import { Forbidden } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { MessageLimitRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Statement, type StatementResult, type Store } from '../../platform/store/store.ts'
import { type LimitState, monthOf, roomOf } from './month.ts'
import { countStatement, limitsOver, stateOf } from './store.ts'

/** A change in another process takes effect after at most this time. */
export const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 10_000
const TOPIC = 'message-limits'
/** Each further try means that others were accepted in between. */
const TRIES_MAX = 10

/** Mail to count. */
export interface CountedMail {
  accountId: string
  /** For the text of a refusal. */
  domainName: string
  recipients: number
  /**
   * Members of mailing lists that get their copies later, and are counted then; asked only if there is a limit. `upTo`:
   * more are too many, so a number below it need not be exact.
   */
  later?: (upTo: number) => Promise<number>
}

type Commit = (unit: readonly Statement[]) => Promise<StatementResult[]>

export type MessageLimits = ReturnType<typeof createMessageLimits>

interface KnownLimit {
  accountId: string
  state: LimitState
}

export function createMessageLimits(parts: {
  store: Store
  clock: Clock
  /** A share was reached that mail is due about. */
  onReached(): void
}) {
  const { store, clock, onReached } = parts
  const known = createCache<readonly KnownLimit[]>({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    load: async (accountId) =>
      (await limitsOver(store, accountId)).map((row) => ({ accountId: row.account_id, state: stateOf(row) })),
  })
  // Not the cache itself: it also forgets on the way of each message that finds a limit full.
  store.changes.follow(TOPIC, () => known.forget())
  const month = () => monthOf(clock.now())
  const haveRoom = (limits: readonly KnownLimit[], count: number) =>
    limits.every(({ state }) => roomOf(state, month()) >= count)
  const countStatements = (limits: readonly KnownLimit[], count: number) =>
    // A stop without a limit leaves nothing to count, once it is over.
    limits.flatMap(({ accountId, state }) =>
      state.limit === null ? [] : countStatement(accountId, month(), count),
    )

  async function commitCounted(
    mail: CountedMail,
    unit: readonly Statement[],
    commit: Commit,
  ): Promise<StatementResult[]> {
    const { accountId, recipients } = mail
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const limits = await known.get(accountId)
      const room = Math.min(...limits.map(({ state }) => roomOf(state, month())))
      if (recipients > room) break
      const later = limits.length > 0 ? ((await mail.later?.(room - recipients)) ?? 0) : 0
      if (recipients + later > room) break
      const counting = countStatements(limits, recipients)
      try {
        const results = await commit([...unit, ...counting])
        noteRows(limits, results.slice(unit.length))
        return results
      } catch (error) {
        if (!(error instanceof StaleWrite && counting.includes(error.statement))) throw error
        known.forget(accountId)
      }
    }
    throw limitReached(mail.domainName)
  }

  /** Remembers what the database has counted. */
  function noteRows(limits: readonly KnownLimit[], results: readonly StatementResult[]): void {
    for (const { rows } of results) {
      const row = rows[0] as MessageLimitRow | undefined
      const limit = limits.find(({ accountId }) => accountId === row?.account_id)
      if (!row || !limit) continue
      const state = stateOf(row)
      const isCrossed = state.reachedPercent > Math.max(state.notifiedPercent, limit.state.reachedPercent)
      if (isCrossed) onReached()
      const isNewer = state.monthAt > limit.state.monthAt || state.used > limit.state.used
      if (isNewer) limit.state = state
    }
  }

  return {
    /** True: so many recipients would pass a limit, or sending is stopped. */
    refuses: (accountId: string, recipients: number) =>
      whenKnown(known.get(accountId), (limits) => !haveRoom(limits, recipients)),
    /** Commits the rows of accepted mail and counts it. @throws Forbidden over a limit, and as `commit` does */
    commit(mail: CountedMail, unit: readonly Statement[], commit: Commit): Promise<StatementResult[]> {
      const limits = known.get(mail.accountId)
      if (!isPending(limits) && limits.length === 0) return commit(unit)
      return commitCounted(mail, unit, commit)
    },
    /** The statements that count recipients, for a unit that is committed elsewhere; null: they would pass a limit. */
    statements: (accountId: string, recipients: number) =>
      whenKnown(known.get(accountId), (limits) =>
        haveRoom(limits, recipients) ? countStatements(limits, recipients) : null,
      ),
    /** Must be called after a change of any limit. */
    changed(): void {
      known.forget()
      void store.changes.announce(TOPIC, '')
    },
  }
}

export const limitReached = (domainName: string) =>
  new Forbidden(
    `Domain ${domainName} is not allowed to send: The custom message limit for this month has been reached.`,
  )
