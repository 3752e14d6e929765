/**
 * A wall clock that does not jump. It starts at the system's time and goes on with the monotonic clock, so
 * that a stepped system clock (NTP, an operator, a wrong time zone set right) makes no message early, late or
 * too old. What the system says is taken over at the next start.
 *
 * Time during which the machine slept does count: the monotonic clock stands still then, the uptime goes on.
 */
import type { Clock } from './clock.ts'

/** Uptime and monotonic clock differ by rounding; beyond this the machine slept. */
const SLEPT_MIN_MS = 2_000
const LOOK_EVERY_MS = 1_000
/** A difference worth telling the operator. */
const STEP_MIN_MS = 5_000

/**
 * @param uptimeMs time since the machine was started, its sleep included
 * @param onStep told once per step: how far the system clock is ahead of this one, in milliseconds
 */
export function createSteadyClock(
  system: Clock,
  uptimeMs: () => number,
  onStep: (aheadMs: number) => void,
): Clock {
  let offset = system.now() - system.monotonic()
  let sleepOffset = uptimeMs() - system.monotonic()
  let told = 0
  let lookAt = system.monotonic() + LOOK_EVERY_MS

  function look(monotonic: number): void {
    lookAt = monotonic + LOOK_EVERY_MS
    const slept = uptimeMs() - monotonic - sleepOffset
    if (slept > SLEPT_MIN_MS) {
      sleepOffset += slept
      offset += slept
    }
    const ahead = system.now() - (monotonic + offset)
    if (Math.abs(ahead - told) < STEP_MIN_MS) return
    told = ahead
    onStep(ahead)
  }

  return {
    now() {
      const monotonic = system.monotonic()
      if (monotonic >= lookAt) look(monotonic)
      return monotonic + offset
    },
    monotonic: () => system.monotonic(),
    setTimer: (delayMs, run) => system.setTimer(delayMs, run),
  }
}
