import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'

/** Counts per key and minute, for at most `keysMax` keys (the oldest is evicted first). */
export function createMinuteCounts(clock: Clock, perMinute: number, keysMax: number) {
  const counts = new Map<string, number>()
  let minute = -1
  return {
    /** Counts one more for the key; false once it is over this minute's limit. */
    take(key: string): boolean {
      const now = Math.floor(clock.monotonic() / MINUTE_MS)
      if (now !== minute) {
        counts.clear()
        minute = now
      }
      const count = (counts.get(key) ?? 0) + 1
      if (count > perMinute) return false
      const oldest = counts.keys().next()
      if (count === 1 && counts.size >= keysMax && !oldest.done) counts.delete(oldest.value)
      counts.set(key, count)
      return true
    },
  }
}
