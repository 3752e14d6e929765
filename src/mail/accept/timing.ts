/** Each recipient's own time of delivery (messages.md rules 44 to 46). */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { Habits } from '../../watching/events/habits.ts'
import type { MessageOptions } from '../record/options.ts'

/** Per address key when the copy is due; those missing are due at `start`. */
export async function bestTimes(
  habits: Habits,
  domain: Parameters<Habits['bestTimes']>[0],
  addresses: readonly string[],
  options: MessageOptions,
  start: number,
): Promise<ReadonlyMap<string, number>> {
  const { optimizeHours, localMinute: minute } = options
  const keys = addresses.map((address) => addressKey(address))
  if (optimizeHours !== null) {
    const window = { from: start, to: start + optimizeHours * HOUR_MS }
    return habits.bestTimes(domain, keys, window)
  }
  if (minute === null) return new Map()
  const zones = await habits.timeZones(domain, keys)
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
