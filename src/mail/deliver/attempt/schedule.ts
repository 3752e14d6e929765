/** When a deferred delivery is tried again (messages.md rules 42 and 43). Pure. */
import { HOUR_MS } from '../../../base/time/durations.ts'
import { REASON_EXPIRE_ASKED } from './outcome.ts'

/** After this long from its due time a message that never got through is too old. */
export const LIFETIME_MS = 8 * HOUR_MS

/** Spreads retries, so that a provider that failed many at once does not get them all back at once. Waits become
 *  shorter, never longer: seven attempts of the default schedule fill the eight hours except for 5 minutes. */
const JITTER = 0.05
/** A wait that would end just after the window is cut to its last second, so that slow attempts cost none. */
const CUT_MAX = 0.1
const BEFORE_END_MS = 1_000

type NextStep =
  | { kind: 'retry'; at: number }
  /** No further attempt fits; the delivery fails when its window ends. */
  | { kind: 'wait-for-end'; at: number }
  | { kind: 'give-up' }

/**
 * The next step after a deferral; times in Unix milliseconds. `attempts` counts those made (at least 1); the wait starts
 * now and is shortened by up to 5 % (`random` in 0..1). After the last attempt of the schedule, or when the window has
 * ended, the delivery is given up at once; a window that the sender set is always kept to its end.
 */
export function nextStep(
  now: number,
  attempts: number,
  expiresAt: number,
  scheduleMs: readonly number[],
  random: number,
  windowIsSenders = false,
): NextStep {
  if (now >= expiresAt) return { kind: 'give-up' }
  const wait = scheduleMs[attempts - 1]
  if (wait === undefined)
    return windowIsSenders ? { kind: 'wait-for-end', at: expiresAt } : { kind: 'give-up' }
  const at = Math.round(now + wait * (1 - JITTER * random))
  if (at < expiresAt) return { kind: 'retry', at }
  const lastChance = expiresAt - BEFORE_END_MS
  if (lastChance - now >= wait * (1 - CUT_MAX)) return { kind: 'retry', at: lastChance }
  return { kind: 'wait-for-end', at: expiresAt }
}

/**
 * Whether the window has ended before an attempt. A message that waited its whole default lifetime without
 * any attempt (the service was down) gets one all the same, unless it was asked to expire; a window that the sender set is
 * kept.
 */
export function isOver(
  delivery: { attempts: number; created_at: number; expires_at: number; reason?: string },
  now: number,
): boolean {
  if (now < delivery.expires_at) return false
  const senderSetIt = delivery.expires_at - delivery.created_at < LIFETIME_MS
  return delivery.attempts > 0 || senderSetIt || delivery.reason === REASON_EXPIRE_ASKED
}
