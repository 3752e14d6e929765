/** A limit and its use in one calendar month of UTC (accounts.md section 5). Pure. */

/** One row of `message_limits`. */
export interface LimitState {
  /** Null: deleted, but the stop still holds. */
  limit: number | null
  /** Start of the month of all that follows, in Unix milliseconds. */
  monthAt: number
  /** Accepted recipients. */
  used: number
  /** Reached, and not lifted since. */
  stopped: boolean
  reachedPercent: number
  notifiedPercent: number
  /** When `used` has to be counted again, in Unix milliseconds; null: it is exact. */
  recountAt: number | null
}

/** Mail is sent about these. */
export const NOTICE_PERCENTS = [100, 90, 80] as const

/** Start of the month of a time, both in Unix milliseconds. */
export function monthOf(now: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

export function percentOf(used: number, limit: number | null): number {
  if (limit === null) return 0
  return NOTICE_PERCENTS.find((percent) => used * 100 >= limit * percent) ?? 0
}

/** How many more recipients may be accepted in a month. */
export function roomOf(
  { limit, used, stopped, ...state }: Pick<LimitState, 'limit' | 'monthAt' | 'used' | 'stopped'>,
  monthAt: number,
): number {
  const isOld = state.monthAt < monthAt
  if (!isOld && stopped) return 0
  return limit === null ? Number.POSITIVE_INFINITY : Math.max(0, limit - (isOld ? 0 : used))
}

/** The state in a month: a new month lifts the stop. */
export const inMonth = (state: LimitState, monthAt: number): LimitState =>
  state.monthAt >= monthAt
    ? state
    : { ...state, monthAt, used: 0, stopped: false, reachedPercent: 0, notifiedPercent: 0 }

/** With another count: a limit that is reached stops. */
export function withUsed(state: LimitState, used: number): LimitState {
  const stopped = state.stopped || (state.limit !== null && used >= state.limit)
  return { ...state, used, stopped, reachedPercent: percentOf(used, state.limit) }
}

/**
 * With a new limit. `counted`: recipients accepted so far; used if no limit was counting them before, and counted
 * again at `recountAt`.
 */
export function withLimit(
  before: LimitState | null,
  limit: number,
  monthAt: number,
  counted: number,
  recountAt: number,
): LimitState {
  const old = before && inMonth(before, monthAt)
  if (old && old.limit !== null) return withUsed({ ...old, limit }, old.used)
  const fresh = {
    limit,
    monthAt,
    used: 0,
    stopped: old?.stopped ?? false,
    reachedPercent: 0,
    notifiedPercent: old?.notifiedPercent ?? 0,
    recountAt,
  }
  return withUsed(fresh, counted)
}

/** Whether the stop may be lifted: the limit was raised, deleted, or is of an older month. */
export const canLift = (state: LimitState, monthAt: number): boolean =>
  roomOf({ ...state, stopped: false }, monthAt) > 0
