/** Hours, days and months in UTC (tags-stats.md section 4), and weeks from Monday. */
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import { invalidFormat } from '../../base/values.ts'

export const UNITS = ['hour', 'day', 'month'] as const
export type Unit = (typeof UNITS)[number]
/** Units of rows of figures. Nobody asks for weeks; with them ranges of 30 days are read with fewer rows. */
export type RowUnit = Unit | 'week'

const LENGTH_MS = { hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS } as const
/** The first Monday of 1970. */
const FIRST_WEEK_MS = 4 * DAY_MS

/** The start of the interval that contains `time`; Unix milliseconds. */
export function startOf(unit: RowUnit, time: number): number {
  if (unit === 'week')
    return Math.floor((time - FIRST_WEEK_MS) / LENGTH_MS.week) * LENGTH_MS.week + FIRST_WEEK_MS
  if (unit !== 'month') return Math.floor(time / LENGTH_MS[unit]) * LENGTH_MS[unit]
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** The start of the interval `count` after the one that begins at `start`. */
export function after(unit: RowUnit, start: number, count = 1): number {
  if (unit !== 'month') return start + count * LENGTH_MS[unit]
  const date = new Date(start)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + count, 1)
}

/** The start of the first interval that begins at `time` or later. */
export function roundUp(unit: RowUnit, time: number): number {
  const start = startOf(unit, time)
  return start === time ? time : after(unit, start)
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

/** Dates in answers have four-digit years. */
export const TIME_END = Date.UTC(10_000, 0, 1)

const DURATION_UNITS = { h: 'hour', d: 'day', m: 'month' } as const

/** `24h`, `7d`, or calendar months as `1m`. @throws BadRequest naming `text` */
export function parseDuration(text: string): { count: number; unit: Unit } {
  const match = /^(\d{1,9})([hdm])$/.exec(text)
  if (!match) throw invalidFormat('duration', text)
  return { count: Number(match[1]), unit: DURATION_UNITS[match[2] as 'h'] }
}
