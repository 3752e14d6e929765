/** Reads the parameters of the statistics operations (tags-stats.md section 4). */
import { BadRequest } from '../../../base/process/errors.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { invalidChoice, invalidFormat } from '../../../base/values.ts'
import {
  choiceParam,
  dateParam,
  type InputOf,
  limitParam,
  parsedParam,
  skipParam,
  wordParam,
} from '../../../platform/http/request/inputs.ts'
import type { Params } from '../../../platform/http/request/params.ts'
import { before, intervalsBetween, parseDuration, startOf, TIME_END, UNITS, type Unit } from '../intervals.ts'

export const STATS_EVENTS = [
  'accepted',
  'delivered',
  'failed',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
  'stored',
] as const
export type StatsEvent = (typeof STATS_EVENTS)[number]

export interface StatsQuery {
  events: readonly StatsEvent[]
  unit: Unit
  /** Starts of the first and of the last interval; Unix milliseconds. */
  start: number
  end: number
}

const DEFAULT_DAYS = 7
/** Rule 4: two months by the hour. */
const INTERVALS_MAX = 1500

const EVENT = parsedParam('What to count; repeatable, or separated by commas', eventsOf, {
  required: true,
  missing: "'event' parameter is required",
  repeated: true,
  values: STATS_EVENTS,
})

export const INTERVAL_PARAMS = {
  timestamp: dateParam('A time in the interval', { required: true }),
  limit: limitParam(100, 1000),
  skip: skipParam(),
  event: EVENT,
  resolution: choiceParam('Length of the interval, in UTC', UNITS, { default: 'day' }),
}

export const STATS_PARAMS = {
  event: EVENT,
  duration: wordParam(
    'Hours, days or calendar months before end, such as 24h, 30d, 3m; replaces start',
    parseDuration,
  ),
  resolution: choiceParam('Length of the intervals, in UTC; default the unit of duration, else day', UNITS),
  end: parsedParam('Default now; the interval that contains it is included', timeOf, { type: 'date' }),
  start: parsedParam(`Default ${DEFAULT_DAYS} days before end`, timeOf, { type: 'date' }),
}

/** @throws BadRequest with the texts of section 4 */
export function statsQuery(given: InputOf<typeof STATS_PARAMS>, now: number): StatsQuery {
  const { event: events, duration, resolution } = given
  const unit = resolution ?? duration?.unit ?? 'day'
  const last = given.end ?? now
  const startParam = given.start ?? last - DEFAULT_DAYS * DAY_MS
  const first = duration ? before(duration.unit, last, duration.count) : startParam
  if (first > last) throw new BadRequest("'start' must be before 'end'")
  const [start, end] = [startOf(unit, first), startOf(unit, last)]
  // A start too far in the past for a date is NaN.
  if (!(intervalsBetween(unit, start, end) <= INTERVALS_MAX))
    throw new BadRequest(`The range has more than ${INTERVALS_MAX} intervals`)
  return { events, unit, start, end }
}

/** The interval that contains a time. @throws BadRequest naming `text` for a time that has none */
export function intervalQuery(
  { event: events, resolution: unit, timestamp }: InputOf<typeof INTERVAL_PARAMS>,
  text: string,
): StatsQuery {
  const at = timestamp.getTime()
  if (at >= TIME_END) throw invalidFormat('timestamp', text)
  return { events, unit, start: startOf(unit, at), end: startOf(unit, at) }
}

/** Distinct, in the order of STATS_EVENTS. Some clients join several events with commas. */
function eventsOf(params: Params): StatsEvent[] {
  const given = new Set(params.texts('event').flatMap((text) => text.split(',')))
  for (const event of given)
    if (!STATS_EVENTS.some((known) => known === event)) throw invalidChoice('event', event)
  return STATS_EVENTS.filter((event) => given.has(event))
}

/** Unix milliseconds. */
function timeOf(params: Params, name: string): number | undefined {
  const time = params.date(name)?.getTime()
  if (time !== undefined && time >= TIME_END) throw invalidFormat(name, params.text(name) ?? '')
  return time
}
