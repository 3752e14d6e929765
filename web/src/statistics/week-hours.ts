/** Sums by weekday and hour. Pure. */
import { figure, type MetricsItem } from '../shared/charts/metrics-api.ts'

export const WEEKDAYS: readonly string[] = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
export const HOURS = 24

/**
 * Sums of a count by weekday (Monday first) and hour of the day, in a time zone. `items`: by the hour. An hour of a zone that is half
 * an hour off UTC counts in the hour that it begins in.
 */
export function weekHours(items: readonly MetricsItem[], metric: string, timeZone: string): number[][] {
  const form = new Intl.DateTimeFormat('en', {
    weekday: 'short',
    hour: '2-digit',
    hourCycle: 'h23',
    timeZone,
  })
  const sums = WEEKDAYS.map(() => Array.from({ length: HOURS }, () => 0))
  for (const { dimensions, metrics } of items) {
    const at = Date.parse(dimensions.find(({ dimension }) => dimension === 'time')?.value ?? '')
    if (!Number.isFinite(at)) continue
    const parts = new Map(form.formatToParts(at).map(({ type, value }) => [type, value]))
    const row = sums[WEEKDAYS.indexOf(parts.get('weekday') ?? '')]
    const hour = Number(parts.get('hour'))
    if (row?.[hour] !== undefined) row[hour] += figure(metrics, metric)
  }
  return sums
}
