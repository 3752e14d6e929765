/** Points of time for curves: the intervals of a span, and the figures of each. Pure. */
import { figure, type MetricsItem } from './metrics-api.ts'

export type Resolution = 'hour' | 'day' | 'month'

const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** Start of the interval in UTC that contains the time; intervals of the API are in UTC. */
export function floorTo(ms: number, resolution: Resolution): number {
  if (resolution === 'hour') return Math.floor(ms / HOUR_MS) * HOUR_MS
  if (resolution === 'day') return Math.floor(ms / DAY_MS) * DAY_MS
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** Starts of all intervals from that of `startMs` to that of `endMs`. */
export function intervalsOf(startMs: number, endMs: number, resolution: Resolution): number[] {
  const starts: number[] = []
  for (let at = floorTo(startMs, resolution); at <= endMs; at = nextOf(at, resolution)) starts.push(at)
  return starts
}

function nextOf(ms: number, resolution: Resolution): number {
  if (resolution !== 'month') return ms + (resolution === 'hour' ? HOUR_MS : DAY_MS)
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}

/** Whether the interval that contains `endMs` has not ended. */
export const isRunningAt = (endMs: number, resolution: Resolution, nowMs: number) =>
  floorTo(endMs, resolution) === floorTo(nowMs, resolution)

/** One value per interval; the API leaves out intervals without data. A figure that is not known by this filter counts as 0. */
export function valuesAt(items: readonly MetricsItem[], metric: string, starts: readonly number[]): number[] {
  const found = new Map<number, number>()
  for (const { dimensions, metrics } of items) {
    const time = dimensions.find(({ dimension }) => dimension === 'time')
    const at = Date.parse(time?.value ?? '')
    if (Number.isFinite(at)) found.set(at, (found.get(at) ?? 0) + figure(metrics, metric))
  }
  return starts.map((start) => found.get(start) ?? 0)
}

export const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

const hourName = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const dayName = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' })
const monthName = new Intl.DateTimeFormat('en', { month: 'short', year: 'numeric', timeZone: 'UTC' })

/** Name of an interval: hours in the reader's zone, days and months as the API cuts them, in UTC. */
export const intervalName = (ms: number, resolution: Resolution) =>
  ({ hour: hourName, day: dayName, month: monthName })[resolution].format(ms)

/** "97.2%"; '–' without anything to divide by. */
export function percent(part: number, whole: number, digits = 1): string {
  if (whole === 0) return '–'
  return `${((part / whole) * 100).toFixed(digits)}%`
}

/** Change from one span to the next: "+12%", "−3%", "0%"; undefined if there was nothing before. */
export function changeOf(now: number, before: number): { text: string; direction: -1 | 0 | 1 } | undefined {
  if (before === 0) return undefined
  const change = Math.round(((now - before) / before) * 100)
  const direction = Math.sign(change) as -1 | 0 | 1
  return { text: `${direction === -1 ? '−' : direction === 1 ? '+' : ''}${Math.abs(change)}%`, direction }
}
