import { clockTime, exactTime, shortAge, shortDate, shortDateTime, timeUntil } from '../base/format.ts'
import { useNow } from '../base/use-now.ts'

/**
 * A time in the reader's zone, with UTC on hover. `at`: RFC 3339, RFC 2822 or Unix milliseconds.
 * `as`: `age` ("5 min ago", the date after a week), `date`, `time` (with seconds) or `full` (date and time).
 */
export function Time({ at, as = 'full' }: { at: string | number; as?: 'age' | 'date' | 'time' | 'full' }) {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  const now = useNow()
  if (!Number.isFinite(ms)) return <span>–</span>
  const iso = new Date(ms).toISOString()
  const shown =
    as === 'age'
      ? ageWords(ms, Math.max(now, Date.now()))
      : as === 'date'
        ? shortDate(ms)
        : as === 'time'
          ? clockTime(ms)
          : shortDateTime(ms)
  return (
    <time dateTime={iso} title={`${exactTime(ms)}\n${iso.replace('T', ' ').replace(/\.\d+Z$/, '')} UTC`}>
      {shown}
    </time>
  )
}

/** The server's clock may run ahead of the browser's: its events are not to come. */
const CLOCK_DIFFERENCE_MS = 30_000

/** "just now", "5 min ago", "in 5 min", or the date. */
export function ageWords(thenMs: number, nowMs: number): string {
  if (thenMs > nowMs + CLOCK_DIFFERENCE_MS) return timeUntil(thenMs, nowMs)
  const age = shortAge(thenMs, nowMs)
  if (age === 'now') return 'just now'
  return /^\d+ (?:min|h|d)$/.test(age) ? `${age} ago` : shortDate(thenMs)
}
