/** How validations count in usage (validation.md section 2 rule 8). */
import type { ValidationResult } from './shapes.ts'

/** What each is besides a validation. */
type Way = 'single' | 'bulk' | 'list' | 'public'

/** By name of metric. */
export function usageOf(results: readonly ValidationResult[], ways: readonly Way[]): Record<string, number> {
  const count = results.length
  return {
    email_validation_count: count,
    ...Object.fromEntries(ways.map((way) => [`email_validation_${way}_count`, count])),
    email_validation_valid_count: results.filter(({ result }) => result === 'deliverable').length,
  }
}
