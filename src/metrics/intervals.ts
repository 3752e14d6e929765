/** Hours, days and months in UTC (tags-stats.md section 4). */
import { DAY_MS } from '../events/event-retention.ts'

export const UNITS = ['hour', 'day', 'month'] as const
export type Unit = (typeof UNITS)[number]

const LENGTH_MS = { hour: 3_600_000, day: DAY_MS } as const

/** The start of the interval that contains `time`; Unix milliseconds. */
export function startOf(unit: Unit, time: number): number {
  if (unit !== 'month') return Math.floor(time / LENGTH_MS[unit]) * LENGTH_MS[unit]
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** The start of the interval `count` after the one that begins at `start`. */
export function after(unit: Unit, start: number, count = 1): number {
  if (unit !== 'month') return start + count * LENGTH_MS[unit]
  const date = new Date(start)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + count, 1)
}

/** The number of intervals from the one that begins at `start` to the one that begins at `end`, both inclusive. */
export function intervalsBetween(unit: Unit, start: number, end: number): number {
  if (unit !== 'month') return (end - start) / LENGTH_MS[unit] + 1
  const [from, to] = [new Date(start), new Date(end)]
  return (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth() + 1
}

/** `count` hours, days or calendar months before `time`: a month before the 31st of March is the end of February. */
export function before(unit: Unit, time: number, count: number): number {
  if (unit !== 'month') return time - count * LENGTH_MS[unit]
  const date = new Date(time)
  const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - count, 1)
  const lastDay = new Date(after('month', month) - 1).getUTCDate()
  const day = Math.min(date.getUTCDate(), lastDay)
  return month + (day - 1) * DAY_MS + (time - startOf('day', time))
}
