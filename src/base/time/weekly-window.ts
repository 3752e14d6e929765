/**
 * Hours of some days of the week in a time zone, as `Mon-Fri 09:00-17:00 Europe/Berlin`. Days and zone may be left out:
 * every day, in UTC. A window that ends before it begins lasts into the next day; one that ends when it begins, a whole
 * day. Days are those on which it begins.
 */
import { MINUTE_MS } from './durations.ts'

export interface WeeklyWindow {
  /** The first time at or after `time` within the window; Unix milliseconds. */
  next(time: number): number
}

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const DAY_MINUTES = 1440
const WINDOW = /^(?:([a-z,-]{3,40})\s+)?(\d\d):(\d\d)\s*-\s*(\d\d):(\d\d)(?:\s+([a-z0-9_+/-]{1,64}))?$/i
/** With the longest name of a zone and some days. */
const LENGTH_MAX = 120
/** No clock is set forward by more. */
const SKIPPED_MINUTES_MAX = 180
/** Windows that lie within skipped hours open a week later at the latest. */
const ROUNDS_MAX = 10

/** Formats of Intl take long to make, and some 10 KB each. */
const known = new Map<string, WeeklyWindow | null>()
const KNOWN_MAX = 100

/** Null: the text is no window. */
export function weeklyWindow(text: string): WeeklyWindow | null {
  if (text.length > LENGTH_MAX) return null
  const present = known.get(text)
  if (present !== undefined) return present
  if (known.size >= KNOWN_MAX) known.clear()
  const made = makeWindow(text)
  known.set(text, made)
  return made
}

function makeWindow(text: string): WeeklyWindow | null {
  const [, dayNames, ...rest] = WINDOW.exec(text.trim()) ?? []
  const [fromHour = 24, fromMinute = 60, untilHour = 25, untilMinute = 60] = rest.slice(0, 4).map(Number)
  const days = dayNames === undefined ? new Set(DAYS.keys()) : daysIn(dayNames)
  const local = localTimes(rest[4] ?? 'UTC')
  const from = fromHour * 60 + fromMinute
  const until = untilHour * 60 + untilMinute
  if (fromHour > 23 || fromMinute > 59 || untilMinute > 59 || until > DAY_MINUTES) return null
  if (days === null || local === null) return null
  const lengthMinutes = ((until - from + DAY_MINUTES - 1) % DAY_MINUTES) + 1

  const isOpen = (time: number): boolean => {
    const { day, minute } = local(time)
    const since = minute - from
    return since >= 0
      ? days.has(day) && since < lengthMinutes
      : days.has((day + 6) % 7) && since + DAY_MINUTES < lengthMinutes
  }
  /** Where no clock changes in between. */
  const nextOpening = (time: number): number => {
    const { day, minute } = local(time)
    const ahead = DAYS.concat(DAYS[0] as string).findIndex(
      (_, later) => days.has((day + later) % 7) && (later > 0 || minute < from),
    )
    const wanted = time + (ahead * DAY_MINUTES + from - minute) * MINUTE_MS
    const shown = local(wanted).minute
    const off = ((from - shown + DAY_MINUTES * 1.5) % DAY_MINUTES) - DAY_MINUTES / 2
    return wanted + off * MINUTE_MS
  }
  return {
    next(time) {
      let at = time
      for (let round = 0; round < ROUNDS_MAX; round++) {
        if (isOpen(at)) return at
        const minuteStart = Math.floor(at / MINUTE_MS) * MINUTE_MS
        at = Math.max(nextOpening(minuteStart), minuteStart + MINUTE_MS)
        // On a day whose clocks skip its beginning it opens after that.
        for (let minutes = 0; minutes < SKIPPED_MINUTES_MAX && !isOpen(at); minutes++) at += MINUTE_MS
      }
      return at
    },
  }
}

/** `Mon-Fri`, `Mon,Wed-Fri`, `Sat-Mon`; null: no such days. */
function daysIn(text: string): ReadonlySet<number> | null {
  const days = new Set<number>()
  for (const range of text.toLowerCase().split(',')) {
    const [first, last = first, ...more] = range.split('-').map((name) => DAYS.indexOf(name))
    if (first === undefined || last === undefined || first < 0 || last < 0 || more.length > 0) return null
    for (let day = first; ; day = (day + 1) % 7) {
      days.add(day)
      if (day === last) break
    }
  }
  return days
}

/** Day of the week (0: Sunday) and minute of the day of a time; null: there is no such zone. */
function localTimes(zone: string): ((time: number) => { day: number; minute: number }) | null {
  const format = formatOf(zone)
  if (format === null) return null
  return (time) => {
    const [, day = '', hour, minute] = /^(\w{3})\D+(\d\d):(\d\d)$/.exec(format.format(time)) ?? []
    return { day: DAYS.indexOf(day.toLowerCase()), minute: Number(hour) * 60 + Number(minute) }
  }
}

function formatOf(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en-US', {
      ...{ timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    })
  } catch {
    return null
  }
}
