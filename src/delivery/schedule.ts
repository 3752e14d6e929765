/** When a deferred delivery is tried again (messages.md rule 43). Pure. */

/** After this long from its due time a message that never got through is too old. */
export const LIFETIME_MS = 8 * 3_600_000

/** Spreads retries so that a provider that failed many at once does not get them all back at once. */
const JITTER = 0.05

/**
 * Time of the next attempt in Unix milliseconds, or 'give-up'. `attempts` counts those made (at least 1);
 * the wait is counted from now, lengthened by up to 5 % (`random` in 0..1).
 */
export function nextAttemptAt(
  now: number,
  attempts: number,
  expiresAt: number,
  scheduleMs: readonly number[],
  random: number,
): number | 'give-up' {
  const wait = scheduleMs[attempts - 1]
  if (wait === undefined) return 'give-up'
  const at = Math.round(now + wait * (1 + JITTER * random))
  return at <= expiresAt ? at : 'give-up'
}
