/**
 * What a check changes about the hits of one source: an alert, or a check of the service itself. Pure.
 *
 * A condition that becomes true makes a hit. While it lasts the hit is updated. After two checks in a row for which it
 * was false the hit ends (alerts.md rules 5 and 6).
 */
import type { AlertHitRow } from '../../platform/store/schema.ts'

/** A dimension value for which the condition is true. */
export interface Finding {
  /** Of the dimension; empty: the check has only one. */
  value: string
  /** Decimal text. */
  figure: string
  /** Unix milliseconds since when it has been true; undefined: this check was the first to see it. */
  since?: number
  /** What is wrong and what to do. */
  advice?: string
}

export interface HitChanges {
  opened: Finding[]
  continued: { hit: AlertHitRow; finding: Finding }[]
  /** False for the first time: the hit stays. */
  missed: AlertHitRow[]
  ended: AlertHitRow[]
  /** True values without a hit, as there are too many. */
  skipped: number
}

const MISSES_TO_END = 2
/** Open hits of one source: each is a notice on every channel. */
const OPEN_HITS_MAX = 100

/** `open`: the hits of the source that are triggered. The largest figures come first in `found`. */
export function judge(open: readonly AlertHitRow[], found: readonly Finding[]): HitChanges {
  const byValue = new Map(found.map((finding) => [finding.value, finding]))
  const changes: HitChanges = { opened: [], continued: [], missed: [], ended: [], skipped: 0 }
  for (const hit of open) {
    const finding = byValue.get(hit.dimension_value)
    if (finding) changes.continued.push({ hit, finding })
    else if (hit.misses + 1 < MISSES_TO_END) changes.missed.push(hit)
    else changes.ended.push(hit)
  }
  const known = new Set(open.map((hit) => hit.dimension_value))
  const fresh = [...byValue.values()].filter(({ value }) => !known.has(value))
  changes.opened = fresh.slice(0, Math.max(0, OPEN_HITS_MAX - open.length))
  changes.skipped = fresh.length - changes.opened.length
  return changes
}
