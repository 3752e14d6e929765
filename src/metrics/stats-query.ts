/** Reads the parameters of the statistics operations (tags-stats.md section 4). */
import { BadRequest } from '../base/errors.ts'
import { invalidChoice, invalidFormat } from '../base/values.ts'
import { DAY_MS } from '../events/event-retention.ts'
import type { ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { before, intervalsBetween, startOf, UNITS, type Unit } from './intervals.ts'

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
/** The response's date format has four-digit years only. */
const TIME_END = Date.UTC(10_000, 0, 1)

export const STATS_PARAMS: readonly ParamDoc[] = [
  {
    name: 'event',
    type: 'string',
    description: 'What to count',
    required: true,
    repeated: true,
    values: STATS_EVENTS,
  },
  { name: 'start', type: 'date', description: `Default ${DEFAULT_DAYS} days before end` },
  { name: 'end', type: 'date', description: 'Default now; the interval that contains it is included' },
  {
    name: 'resolution',
    type: 'string',
    description: 'Length of the intervals, in UTC; default the unit of duration, else day',
    values: UNITS,
  },
  {
    name: 'duration',
    type: 'string',
    description: 'Hours, days or calendar months before end, such as 24h, 30d, 3m; replaces start',
  },
]

/**
 * @param at for one interval only: a time in it
 * @param asked a resolution that replaces that of the parameters
 * @throws BadRequest with the texts of section 4
 */
export function readStatsQuery(
  params: Params,
  now: number,
  at: number | null = null,
  asked?: Unit,
): StatsQuery {
  const events = eventsOf(params)
  if (at !== null) return oneInterval(params, events, at)
  const duration = durationOf(params)
  const unit = asked ?? params.oneOf('resolution', UNITS) ?? duration?.unit ?? 'day'
  const last = timeOf(params, 'end') ?? now
  const startParam = timeOf(params, 'start') ?? last - DEFAULT_DAYS * DAY_MS
  const first = duration ? before(duration.unit, last, duration.count) : startParam
  if (first > last) throw new BadRequest("'start' must be before 'end'")
  const [start, end] = [startOf(unit, first), startOf(unit, last)]
  // A start too far in the past for a date is NaN.
  if (!(intervalsBetween(unit, start, end) <= INTERVALS_MAX))
    throw new BadRequest(`The range has more than ${INTERVALS_MAX} intervals`)
  return { events, unit, start, end }
}

function oneInterval(params: Params, events: StatsEvent[], at: number): StatsQuery {
  if (at >= TIME_END) throw invalidFormat('timestamp', params.text('timestamp') ?? '')
  const unit = params.oneOf('resolution', UNITS) ?? 'day'
  return { events, unit, start: startOf(unit, at), end: startOf(unit, at) }
}

/** Distinct, in the order of STATS_EVENTS. Some clients join several events with commas. */
function eventsOf(params: Params): StatsEvent[] {
  const given = new Set(params.texts('event').flatMap((text) => text.split(',')))
  if (given.size === 0) throw new BadRequest("'event' parameter is required")
  for (const event of given)
    if (!STATS_EVENTS.some((known) => known === event)) throw invalidChoice('event', event)
  return STATS_EVENTS.filter((event) => given.has(event))
}

function timeOf(params: Params, name: 'start' | 'end'): number | undefined {
  const time = params.date(name)?.getTime()
  if (time !== undefined && time >= TIME_END) throw invalidFormat(name, params.text(name) ?? '')
  return time
}

function durationOf(params: Params): { count: number; unit: Unit } | null {
  const text = params.text('duration')
  if (text === undefined) return null
  const match = /^(\d{1,9})([hdm])$/.exec(text)
  if (!match) throw invalidFormat('duration', text)
  return { count: Number(match[1]), unit: { h: 'hour', d: 'day', m: 'month' }[match[2] as 'h'] as Unit }
}
