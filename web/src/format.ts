const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const dayAndMonth = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short' })
const dayMonthYear = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric' })
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'long' })
const dateAndTime = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const timeOfDay = new Intl.DateTimeFormat('en', { timeStyle: 'medium' })

/** "now", "5 min", "3 h", "2 d", then the date; a clock that runs ahead of ours counts as now. */
export function shortAge(thenMs: number, nowMs: number): string {
  const age = nowMs - thenMs
  if (age < MINUTE_MS) return 'now'
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)} min`
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)} h`
  if (age < 7 * DAY_MS) return `${Math.floor(age / DAY_MS)} d`
  const sameYear = new Date(thenMs).getFullYear() === new Date(nowMs).getFullYear()
  return (sameYear ? dayAndMonth : dayMonthYear).format(thenMs)
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

export const exactTime = (ms: number) => (Number.isFinite(ms) ? exact.format(ms) : 'unknown time')

export const shortDate = (ms: number) => (Number.isFinite(ms) ? dayMonthYear.format(ms) : 'unknown date')

export const shortDateTime = (ms: number) => (Number.isFinite(ms) ? dateAndTime.format(ms) : 'unknown time')

export const clockTime = (ms: number) => (Number.isFinite(ms) ? timeOfDay.format(ms) : '')

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
