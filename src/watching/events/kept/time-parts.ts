/**
 * Splits a search at the bounds of partitions (decision 151). PostgreSQL plans every partition that a statement may need,
 * which costs more than what it then reads; so a page first reads the partition that its walk begins in.
 */
import type { Store } from '../../../platform/store/store.ts'

/** Microseconds, both inclusive. */
export interface TimeRange {
  lowUs: number
  highUs: number
}

/** For joins of `event_keys` and `events`: on PostgreSQL an event is looked for in the partition of its time only. */
export const SAME_TIME = {
  sqlite: '',
  postgres: 'AND events.timestamp_us = event_keys.timestamp_us',
} as const

/** The second part has so many partitions, the third so many times as many: a page of rare events reads them all. */
const GROWTH = 8

/** Parts of the range, in the order of the walk. One, if there are no partitions. */
export async function timeParts(store: Store, range: TimeRange, up: boolean): Promise<TimeRange[]> {
  const bounds = (await store.eventBounds?.begun()) ?? []
  const spans = splitAt(bounds, await withoutFuture(store, range))
  if (!up) spans.reverse()
  const parts: TimeRange[] = []
  for (let count = 1; spans.length > 0; count *= GROWTH) {
    const part = spans.splice(0, count)
    parts.push({
      lowUs: Math.min(...part.map(({ lowUs }) => lowUs)),
      highUs: Math.max(...part.map(({ highUs }) => highUs)),
    })
  }
  return parts
}

/** Usually nothing is in the partitions of the future, which would be planned for every newest page. */
async function withoutFuture(store: Store, range: TimeRange): Promise<TimeRange> {
  // Lists that end in the past.
  if (range.highUs < Date.now() * 1000) return range
  const emptyFromUs = (await store.eventBounds?.emptyFrom()) ?? null
  if (emptyFromUs === null || emptyFromUs <= range.lowUs) return range
  return { ...range, highUs: Math.min(range.highUs, emptyFromUs - 1) }
}

/** The range within each of the partitions, in order of time. What is above the last bound is one. */
function splitAt(bounds: readonly number[], { lowUs, highUs }: TimeRange): TimeRange[] {
  const starts = [lowUs, ...bounds.filter((bound) => bound > lowUs && bound <= highUs)]
  return starts.map((start, at) => {
    const next = starts[at + 1]
    return { lowUs: start, highUs: next === undefined ? highUs : next - 1 }
  })
}
