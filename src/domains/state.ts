/** When a domain counts as verified, and when its records are looked at again (domains.md rules 9-13). Pure. */
import type { StoredCheck } from './records.ts'

/** What one look-up says: the record is right, it is not, or DNS did not say. */
export type Verdict = 'valid' | 'wrong' | 'unanswered'

export function verdictOf(check: Pick<StoredCheck, 'valid' | 'answered'>): Verdict {
  if (!check.answered) return 'unanswered'
  return check.valid ? 'valid' : 'wrong'
}

/**
 * Whether a domain is verified after a look at the records that decide. Only firm answers change anything: a
 * look-up that failed neither verifies a domain nor takes it back, and a background check takes nothing back.
 */
export function isVerifiedAfter(
  before: boolean,
  verdicts: readonly Verdict[],
  asked: 'by-caller' | 'in-background',
): boolean {
  if (verdicts.length > 0 && verdicts.every((verdict) => verdict === 'valid')) return true
  return verdicts.includes('wrong') && asked === 'by-caller' ? false : before
}

export interface KeyVerdict {
  active: boolean
  verdict: Verdict
}

/**
 * The verdicts of the keys that decide: those that sign; while none signs, the best one alone, since a key that
 * was made for later must not hold the domain up.
 */
export function decidingVerdicts(keys: readonly KeyVerdict[]): Verdict[] {
  const active = keys.filter((key) => key.active)
  if (active.length > 0) return active.map((key) => key.verdict)
  const best = (['valid', 'unanswered', 'wrong'] as const).find((verdict) =>
    keys.some((key) => key.verdict === verdict),
  )
  return [best ?? 'wrong']
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/**
 * When the background check comes back. Unverified: every 10 minutes for the first day, then hourly for a week,
 * then daily. Verified: daily, to show what DNS has; it changes no state then.
 */
export function nextCheckAt(verified: boolean, since: number, now: number): number {
  const age = now - since
  if (verified || age >= 8 * DAY_MS) return now + DAY_MS
  return now + (age < DAY_MS ? 10 : 60) * MINUTE_MS
}
