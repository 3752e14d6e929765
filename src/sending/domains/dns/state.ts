/** Decides when a domain counts as verified, and when its records are checked again (domains.md rules 9-13). Pure. */
import { DAY_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { StoredCheck } from './dns-records.ts'

/** The result of one lookup: the record is valid, it is wrong, or DNS gave no answer. */
export type Verdict = 'valid' | 'wrong' | 'unanswered'

export function verdictOf(check: Pick<StoredCheck, 'valid' | 'answered'>): Verdict {
  if (!check.answered) return 'unanswered'
  return check.valid ? 'valid' : 'wrong'
}

/**
 * Whether a domain is verified after a check of the records that decide. Only definite answers change anything: a
 * failed lookup neither verifies a domain nor revokes it, and a background check revokes nothing.
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
 * The verdicts of the keys that decide: those of the keys that sign; while none signs, only the best verdict,
 * because a key created for later must not block the domain.
 */
export function decidingVerdicts(keys: readonly KeyVerdict[]): Verdict[] {
  const active = keys.filter((key) => key.active)
  if (active.length > 0) return active.map((key) => key.verdict)
  const best = (['valid', 'unanswered', 'wrong'] as const).find((verdict) =>
    keys.some((key) => key.verdict === verdict),
  )
  return [best ?? 'wrong']
}

/**
 * When the next background check is due. Unverified: every 10 minutes for the first day, then hourly for a week,
 * then daily. Verified: daily, to show what DNS has; it changes no state then.
 */
export function nextCheckAt(verified: boolean, since: number, now: number): number {
  const age = now - since
  if (verified || age >= 8 * DAY_MS) return now + DAY_MS
  return now + (age < DAY_MS ? 10 : 60) * MINUTE_MS
}
