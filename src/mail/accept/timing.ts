/** When a message is due: delivery time, its end, and each recipient's own best time (messages.md rules 40 to 46). */

import { addressKey } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { LIFETIME_MS } from '../deliver/attempt/schedule.ts'
import type { MessageOptions } from '../request/options.ts'
import type { RecipientHabits, SendingDomain } from './collaborators.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MINUTE_MS = 60_000
const SCHEDULE_DAYS_MAX = 7

/** How far ahead a delivery time may lie (rule 41). */
export const scheduleMaxMs = (domain: Domain) =>
  domain.messageTtlSeconds > 0 ? domain.messageTtlSeconds * 1000 : SCHEDULE_DAYS_MAX * DAY_MS

export interface DueTime {
  dueAt: number
  expiresAt: number
}

/** Due and end of one delivery; whole milliseconds. */
export function dueTime(dueAt: number, options: MessageOptions): DueTime {
  return { dueAt: Math.floor(dueAt), expiresAt: Math.floor(dueAt + (options.deliverWithinMs ?? LIFETIME_MS)) }
}

/** Each recipient has a time of their own (messages.md rules 44, 45). */
export const hasOwnTimes = ({ optimizeHours, localMinute }: MessageOptions): boolean =>
  optimizeHours !== null || localMinute !== null

/** Per address key when the copy is due; those missing are due at `start`. */
export async function bestTimes(
  habits: RecipientHabits,
  domain: SendingDomain,
  addresses: readonly string[],
  options: MessageOptions,
  start: number,
): Promise<ReadonlyMap<string, number>> {
  if (!hasOwnTimes(options)) return new Map()
  const keys = addresses.map((address) => addressKey(address))
  if (options.optimizeHours !== null) {
    const window = { from: start, to: start + options.optimizeHours * HOUR_MS }
    return habits.bestTimes(domain, keys, window)
  }
  const zones = await habits.timeZones(domain, keys)
  const minute = options.localMinute as number
  return new Map([...zones].map(([key, zone]) => [key, nextLocalTime(start, minute, zone)]))
}

/**
 * The first time at or after `start` at which clocks in `zone` show `minute` after midnight; on a day whose
 * clocks skip that time, the first minute after it. Unknown zones give `start`.
 */
export function nextLocalTime(start: number, minute: number, zone: string): number {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    })
  } catch {
    return start
  }
  const localMinute = (time: number) => {
    const [hour = '0', minutes = '0'] = format.format(time).split(':')
    return Number(hour) * 60 + Number(minutes)
  }
  const first = Math.ceil(start / MINUTE_MS) * MINUTE_MS
  const guess = first + ((minute - localMinute(first) + 1440) % 1440) * MINUTE_MS
  const off = ((((minute - localMinute(guess) + 720) % 1440) + 1440) % 1440) - 720
  // The clocks change in between: corrected once, never to before the start.
  const corrected = guess + off * MINUTE_MS
  return corrected >= start ? corrected : corrected + DAY_MS
}
