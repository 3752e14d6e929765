/**
 * Formats and parses the contract's date forms. Every area has its own form; clients parse each
 * strictly, so the day of the month always has two digits and the zone is spelled as that area spells it.
 */

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

const two = (value: number) => String(value).padStart(2, '0')

/** `Mon, 01 Jun 2026 12:00:00 <zone>`, always in UTC whatever the zone is called. */
function dated(date: Date, zone: string): string {
  const day = `${WEEKDAYS[date.getUTCDay()]}, ${two(date.getUTCDate())} ${MONTHS[date.getUTCMonth()]}`
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
  return `${day} ${String(date.getUTCFullYear()).padStart(4, '0')} ${time} ${zone}`
}

/** RFC 1123 with zone GMT: domains, routes, subaccounts. */
export const formatGmt = (date: Date): string => dated(date, 'GMT')
/** RFC 1123 with zone UTC: templates, suppressions. */
export const formatUtc = (date: Date): string => dated(date, 'UTC')
/** RFC 2822 with zone +0000: metrics, tags and wherever the contract says Rfc2822. */
export const formatRfc2822 = (date: Date): string => dated(date, '+0000')
/** RFC 2822 with zone -0000: mailing lists. */
export const formatRfc2822Unknown = (date: Date): string => dated(date, '-0000')
/** RFC 3339 with milliseconds where there are any: `2026-06-01T12:00:00Z`, `2025-11-07T20:54:42.186Z`. */
export const formatRfc3339 = (date: Date): string => date.toISOString().replace('.000Z', 'Z')
/** UTC without a zone, whole seconds: API keys. */
export const formatIsoLocal = (date: Date): string => date.toISOString().slice(0, 19)

const RFC2822 =
  /^(?:(?:mon|tue|wed|thu|fri|sat|sun),?\s+)?(\d{1,2})\s+([a-z]{3})\s+(\d{4})\s+(\d{2}):(\d{2})(?::(\d{2}))?\s+(?:([+-])(\d{2})(\d{2})|gmt|utc)$/i
const MONTH_NUMBERS = new Map(MONTHS.map((name, number) => [name.toLowerCase(), number]))
const UNIX_SECONDS = /^\d{1,12}(?:\.\d{1,9})?$/
/** Longer than any date in these forms; keeps the patterns from long inputs. */
const DATE_LENGTH_MAX = 64
/** The last second that `Date` can hold, ECMA-262 §21.4.1.1. */
const UNIX_SECONDS_MAX = 8.64e12

/**
 * Reads RFC 2822 (weekday optional and not compared with the date; zone numeric, GMT or UTC) or Unix
 * seconds, whole or fractional. Undefined for everything else: other zone names, days that the month does
 * not have, two-digit years. Second 60 is read as the next minute (RFC 5322 §3.3).
 */
export function parseDate(text: string): Date | undefined {
  if (text.length > DATE_LENGTH_MAX) return undefined
  const trimmed = text.trim()
  if (UNIX_SECONDS.test(trimmed)) {
    const seconds = Number(trimmed)
    return seconds <= UNIX_SECONDS_MAX ? new Date(seconds * 1000) : undefined
  }
  const match = RFC2822.exec(trimmed)
  return match === null ? undefined : dateOf(match)
}

function dateOf(match: RegExpExecArray): Date | undefined {
  const [, day, monthName, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match
  const month = MONTH_NUMBERS.get((monthName as string).toLowerCase())
  if (month === undefined) return undefined
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second ?? 0) > 60) return undefined
  if (Number(zoneHours ?? 0) > 23 || Number(zoneMinutes ?? 0) > 59) return undefined
  const date = new Date(0)
  date.setUTCFullYear(Number(year), month, Number(day)) // not Date.UTC: it takes the years 0 to 99 for 19xx
  if (date.getUTCMonth() !== month || date.getUTCDate() !== Number(day)) return undefined
  date.setUTCHours(Number(hour), Number(minute), Number(second ?? 0))
  const offsetMinutes = Number(zoneHours ?? 0) * 60 + Number(zoneMinutes ?? 0)
  return new Date(date.getTime() - (sign === '-' ? -1 : 1) * offsetMinutes * 60_000)
}

const GO_ZERO_TIME_MS = Date.parse('0001-01-01T00:00:00Z')

/** True for what Go clients send for a date that was never set; the contract reads it as "not given". */
export function isGoZeroTime(date: Date): boolean {
  return date.getTime() === GO_ZERO_TIME_MS
}
