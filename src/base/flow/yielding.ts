/** Background work that leaves the process to others as far as others want it. */
import type { Clock } from '../time/clock.ts'
import { pause } from './pause.ts'

export type Yielding = ReturnType<typeof createYielding>

/** Shorter pauses are put together: a timer is not more exact, and less is measured by it. */
const PAUSE_MIN_MS = 5
/** A share of the time that was worked: nobody else is there, or everybody is. */
const SHARE_MIN = 0.1
const SHARE_MAX = 2
/** How much each pause says about the load; the rest is what earlier ones said. */
const WEIGHT = 0.2

/** Cumulative, in milliseconds. */
type BusyTimes = () => { active: number; idle: number }

/**
 * Pauses are measured by what others do in them, so the own work is not counted: with the main thread busy for a share `u` of
 * them, work gets `1 - u` of the time and the pauses `u`. Before the first pause half of the time counts as busy.
 * @param times of the main thread
 */
export function createYielding(clock: Clock, times: BusyTimes = () => performance.eventLoopUtilization()) {
  let busy = 0.5
  let owedMs = 0
  return {
    /** To be called after each piece of work, which took `ms`: waits when enough has been worked. */
    async after(ms: number, signal: AbortSignal): Promise<void> {
      owedMs += ms * pauseShare(busy)
      if (owedMs < PAUSE_MIN_MS) return
      const before = times()
      await pause(clock, owedMs, signal)
      owedMs = 0
      const after = times()
      const [active, idle] = [after.active - before.active, after.idle - before.idle]
      if (active + idle > 0) busy += WEIGHT * (active / (active + idle) - busy)
    },
  }
}

/** Pause for each millisecond of work while others are busy for the share `busy` of the time. */
export const pauseShare = (busy: number): number =>
  Math.min(SHARE_MAX, Math.max(SHARE_MIN, busy / Math.max(1 - busy, 0.01)))
