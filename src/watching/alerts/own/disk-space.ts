/** When the space for new mail will be used up, by the trend of the last hours. */
import { HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import { trendPerMs } from '../../../base/time/trend.ts'
import type { FreeSpace } from '../../../platform/store/blobs/free-space.ts'
import type { OwnCheck } from './own-check.ts'

interface SpaceSample {
  /** Unix milliseconds. */
  at: number
  freeBytes: number
}

const EVERY_MS = 5 * MINUTE_MS
/** Long enough for the database's log to grow and shrink a few times, short enough to follow a change. */
const WINDOW_MS = 6 * HOUR_MS
/** Before that a trend says nothing. */
const SPAN_MIN_MS = 2 * HOUR_MS
const LIMIT_HOURS = 24
const MEGABYTE = 1024 * 1024

/**
 * Hours until the floor is reached, by the line through the samples. 0: it is reached; null: the space does not shrink, or there
 * are too few samples.
 */
function hoursLeft(samples: readonly SpaceSample[], floorBytes: number): number | null {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last) return null
  if (last.freeBytes <= floorBytes) return 0
  if (last.at - first.at < SPAN_MIN_MS) return null
  const slope = trendPerMs(samples.map(({ at, freeBytes }) => ({ at, value: freeBytes })))
  if (slope === null || slope >= 0) return null
  return (last.freeBytes - floorBytes) / -slope / HOUR_MS
}

/** `node`: the name of this host. */
export function diskSpaceCheck(
  space: Pick<FreeSpace, 'freeBytes'>,
  floorBytes: number,
  node: string,
): OwnCheck {
  let samples: SpaceSample[] = []
  return {
    name: 'disk-space',
    description: 'The space for new mail is used up soon.',
    metric: 'disk_hours_left',
    comparator: '<',
    limit: String(LIMIT_HOURS),
    dimension: 'node',
    everyMs: EVERY_MS,
    node,
    async read(now) {
      samples = [...samples.filter(({ at }) => at > now - WINDOW_MS), { at: now, freeBytes: space.freeBytes }]
      const hours = hoursLeft(samples, floorBytes)
      if (hours === null || hours >= LIMIT_HOURS) return []
      const [free, floor] = [space.freeBytes, floorBytes].map((bytes) => Math.floor(bytes / MEGABYTE))
      const when =
        hours === 0
          ? `That is below ${floor} MB: new mail is refused.`
          : `By the trend of the last hours ${floor} MB are reached in ${Math.ceil(hours)} hours; then new mail is refused.`
      return [
        {
          value: node,
          figure: hours.toFixed(1),
          since: now,
          advice: `${free} MB are free on ${node}. ${when} Make room, or shorten the retention of events and messages.`,
        },
      ]
    },
  }
}
