/** Time as the service sees it. Handed to every part that waits or records times, so that tests can set it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970 with a fraction (microseconds where the system has them). */
  now(): number
  /** Milliseconds from an arbitrary start that no clock step changes; for durations and time-outs. */
  monotonic(): number
  /**
   * Calls `run` once after `delayMs` of monotonic time. What has arrived by then is handled first, and may cancel it: a
   * process that stood still finds the answer and the end of its patience at once.
   */
  setTimer(delayMs: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** `setTimeout` counts in a signed 32-bit integer; a longer wait is cut and re-armed. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  // performance.timeOrigin is fixed at start and misses steps of the clock: Date gives the wall clock, the
  // monotonic clock only the fraction of a millisecond.
  now: () => Date.now() + (performance.now() % 1),
  monotonic: () => performance.now(),
  setTimer(delayMs, run) {
    const until = performance.now() + delayMs
    let handle: NodeJS.Timeout
    let due: NodeJS.Immediate | undefined
    // The event loop runs timers, then what sockets and threads have brought, then immediates.
    const end = () => {
      due = setImmediate(run)
    }
    const arm = () => {
      const left = until - performance.now()
      handle = left > TIMEOUT_MAX_MS ? setTimeout(arm, TIMEOUT_MAX_MS) : setTimeout(end, Math.max(0, left))
    }
    arm()
    return {
      cancel() {
        clearTimeout(handle)
        clearImmediate(due)
      },
    }
  },
}

/** Uptime and monotonic clock differ by rounding; beyond this the machine slept. */
const SLEPT_MIN_MS = 2_000
const LOOK_EVERY_MS = 1_000
/** A difference worth reporting. */
const STEP_MIN_MS = 5_000

/**
 * A wall clock that does not jump. It starts at the system's time and continues with the monotonic clock, so that a step
 * of the system clock (NTP, an operator, a corrected time zone) makes no message early, late or too old. The system's time
 * is adopted at the next start.
 *
 * Time during which the machine slept counts: the monotonic clock stops then, the uptime does not.
 *
 * @param uptimeMs time since the machine was started, its sleep included
 * @param onStep called once per step with the milliseconds that the system clock is ahead of this one
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
