/** Which figures stop a sender, and what stopping means: the policies, and how they are stored. Pure but for their rows. */
import { DAY_MS } from '../../base/time/durations.ts'
import type { StandingPolicyRow } from '../../platform/store/schema.ts'

export const POLICIES = ['off', 'standard', 'strict', 'custom'] as const
export type PolicyName = (typeof POLICIES)[number]

/** Percentages are of what was sent in the window; 0: the figure is not judged. */
export interface StandingLimits {
  bounce_percent: number
  unknown_user_percent: number
  complaint_percent: number
  /** Share of the messages that the outbound check has judged. */
  bad_content_percent: number
  /** Messages delivered to spam traps in the window; 0: not judged. */
  spam_trap_hits: number
  window_hours: number
  /** A percentage of fewer messages is not judged. */
  min_messages: number
  /** What is left of the rate of a slowed sender. */
  slow_percent: number
  /** How long a sender stays slowed or held, unless it is released. */
  hold_hours: number
}

/**
 * Standard is where large receivers and other services draw the line: 5 % bounces, 0.3 % complaints. Three hundred messages,
 * so that chance alone stops hardly anybody: of a list with 2 % bounces about one sample in a thousand has 5 %.
 */
export const STANDARD: StandingLimits = {
  bounce_percent: 5,
  unknown_user_percent: 5,
  complaint_percent: 0.3,
  bad_content_percent: 10,
  spam_trap_hits: 3,
  window_hours: 24,
  min_messages: 300,
  slow_percent: 25,
  hold_hours: 24,
}

const STRICT: StandingLimits = {
  ...STANDARD,
  bounce_percent: 2.5,
  unknown_user_percent: 2.5,
  complaint_percent: 0.1,
  bad_content_percent: 5,
  spam_trap_hits: 1,
  min_messages: 100,
  slow_percent: 10,
}

export interface StandingPolicy {
  policy: PolicyName
  /** Null: senders are not judged. */
  limits: StandingLimits | null
}

/** The policy of all accounts without one of their own. */
export interface GeneralPolicy extends StandingPolicy {
  /** Messages on the first day of a new account; 0: it has no budget. */
  newAccountDaily: number
}

/** The longest window that a policy may have: a week. */
export const WINDOW_HOURS_MAX = 168

/** Where the operator has chosen nothing (decision 195). */
export const DEFAULT_POLICY: GeneralPolicy = { policy: 'standard', limits: STANDARD, newAccountDaily: 0 }

export function policyOf(policy: PolicyName, custom: StandingLimits | null): StandingPolicy {
  const limits = { off: null, standard: STANDARD, strict: STRICT, custom: custom ?? STANDARD }[policy]
  return { policy, limits }
}

export function policyOfRow(row: StandingPolicyRow): GeneralPolicy {
  const custom = row.limits_json === null ? null : (JSON.parse(row.limits_json) as StandingLimits)
  return {
    ...policyOf(row.policy as PolicyName, custom),
    newAccountDaily: Number(row.new_account_daily),
  }
}

/** A budget ends with the second week: it is 8,192 times that of the first day by then. */
export const BUDGET_DAYS = 14

/**
 * Messages that an account may send on this day (UTC): what it may on its first, doubled each day. Null: it has no budget any
 * more. Times in Unix milliseconds.
 */
export function dailyBudget(firstDay: number, createdAt: number, now: number): number | null {
  const age = Math.floor(now / DAY_MS) - Math.floor(createdAt / DAY_MS)
  return firstDay === 0 || age >= BUDGET_DAYS ? null : firstDay * 2 ** Math.max(0, age)
}
