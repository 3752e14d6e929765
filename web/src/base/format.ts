const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** How one reads dates; null: in English, in the browser's time zone. */
interface DateStyle {
  language: string | null
  time_zone: string | null
}

function formatters({ language, time_zone }: DateStyle) {
  const zone = time_zone === null ? {} : { timeZone: time_zone }
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(language ?? 'en', { ...options, ...zone })
  return {
    dayAndMonth: format({ day: 'numeric', month: 'short' }),
    dayMonthYear: format({ day: 'numeric', month: 'short', year: 'numeric' }),
    exact: format({ dateStyle: 'full', timeStyle: 'long' }),
    dateAndTime: format({ dateStyle: 'medium', timeStyle: 'short' }),
    timeOfDay: format({ timeStyle: 'medium' }),
    /** Date and time of the zone's clock, for arithmetic. */
    clock: new Intl.DateTimeFormat('en-US', {
      ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' },
      ...{ second: 'numeric', hourCycle: 'h23', era: 'short' },
      ...zone,
    }),
  }
}

let style: DateStyle = { language: null, time_zone: null }
let by = formatters(style)

/** From now on all dates are written so. What is shown already stays as it is. A browser that does not know one of both writes as before. */
export function writeDates({ language, time_zone }: DateStyle): void {
  if (language === style.language && time_zone === style.time_zone) return
  style = { language, time_zone }
  try {
    by = formatters(style)
  } catch {
    by = formatters({ language: null, time_zone: null })
  }
}

/** What is to be added to UTC for the clock of the reader's zone at that time, in milliseconds. */
function zoneOffsetMs(ms: number): number {
  const parts = Object.fromEntries(by.clock.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000
}

const asUtc = (ms: number) => new Date(ms + zoneOffsetMs(ms))

/** As an input of type datetime-local has it, in the reader's zone: `2026-12-24T18:00`. */
export const localInput = (ms: number): string => asUtc(ms).toISOString().slice(0, 16)

/** The time that such an input names, in Unix milliseconds; NaN for an empty one. */
export function localInputMs(text: string): number {
  const utcMs = Date.parse(`${text}Z`)
  if (Number.isNaN(utcMs)) return utcMs
  // The second step is for times near a change of the clock.
  return utcMs - zoneOffsetMs(utcMs - zoneOffsetMs(utcMs))
}

/** The beginning of the reader's day, `days` after the one of `ms`; a day may have 23 or 25 hours. */
export function startOfDay(ms: number, days = 0): number {
  const there = asUtc(ms)
  const midnight = Date.UTC(there.getUTCFullYear(), there.getUTCMonth(), there.getUTCDate() + days)
  return localInputMs(new Date(midnight).toISOString().slice(0, 16))
}

/** "now", "5 min", "3 h", "2 d", then the date; a clock that runs ahead of ours counts as now. */
export function shortAge(thenMs: number, nowMs: number): string {
  const age = nowMs - thenMs
  if (age < MINUTE_MS) return 'now'
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)} min`
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)} h`
  if (age < 7 * DAY_MS) return `${Math.floor(age / DAY_MS)} d`
  const sameYear = asUtc(thenMs).getUTCFullYear() === asUtc(nowMs).getUTCFullYear()
  return (sameYear ? by.dayAndMonth : by.dayMonthYear).format(thenMs)
}

/**
 * How long until then: "in a moment", "in 2 min" for 1:59, "in 90 min", "in 36 h", "in 2 d", then the date. The past is rounded
 * down, what is to come to the nearest, and to no unit so large that it says little.
 */
export function timeUntil(thenMs: number, nowMs: number): string {
  const ahead = thenMs - nowMs
  if (ahead < MINUTE_MS / 2) return 'in a moment'
  if (ahead < 90.5 * MINUTE_MS) return `in ${Math.round(ahead / MINUTE_MS)} min`
  if (ahead < 36.5 * HOUR_MS) return `in ${Math.round(ahead / HOUR_MS)} h`
  if (ahead < 7.5 * DAY_MS) return `in ${Math.round(ahead / DAY_MS)} d`
  return shortDate(thenMs)
}

export const exactTime = (ms: number) => (Number.isFinite(ms) ? by.exact.format(ms) : 'unknown time')

export const shortDate = (ms: number) => (Number.isFinite(ms) ? by.dayMonthYear.format(ms) : 'unknown date')

export const shortDateTime = (ms: number) =>
  Number.isFinite(ms) ? by.dateAndTime.format(ms) : 'unknown time'

export const clockTime = (ms: number) => (Number.isFinite(ms) ? by.timeOfDay.format(ms) : '')

/** Decimal units: "812 B", "4.2 kB", "1.3 MB". */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const units = ['kB', 'MB', 'GB']
  let value = bytes / 1000
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** The display name of a header mailbox, or its bare address: for showing, not for sending. */
export function displayName(mailbox: string): string {
  const named = /^\s*"?([^"<]*?)"?\s*<[^<>]*>\s*$/.exec(mailbox)
  return named?.[1] || mailbox.replace(/^\s*<|>\s*$/g, '').trim()
}

export const countOf = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`
