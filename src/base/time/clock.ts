/** Time as the service sees it. Handed to every part that waits or records times, so that tests can set it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970 with a fraction (microseconds where the system has them). */
  now(): number
  /** Milliseconds from an arbitrary start that no clock step changes; for durations and time-outs. */
  monotonic(): number
  /** Calls `run` once after `delayMs` of monotonic time. */
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
    const arm = () => {
      const left = until - performance.now()
      handle = left > TIMEOUT_MAX_MS ? setTimeout(arm, TIMEOUT_MAX_MS) : setTimeout(run, Math.max(0, left))
    }
    arm()
    return { cancel: () => clearTimeout(handle) }
  },
}
