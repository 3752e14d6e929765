/** A clock that a test advances by hand; timers fire in order when they are due. */
import { join } from 'node:path'
import { type Clock, systemClock, type Timer } from '../../src/base/time/clock.ts'

export interface TestClock extends Clock {
  /** Lets time pass: wall clock and monotonic clock together. Awaits the microtasks that each timer starts. */
  advance(ms: number): Promise<void>
  /** Lets hours or days pass at once: timers that became due meanwhile fire once, at the next `advance`. */
  leap(ms: number): void
  /** Steps only the wall clock, as an operator or NTP would. */
  stepWall(ms: number): void
}

export function createTestClock(startMs = Date.UTC(2026, 5, 1, 12)): TestClock {
  let monotonic = 1_000
  let offset = startMs - monotonic
  let timers: { at: number; run: () => void }[] = []
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    now: () => monotonic + offset,
    monotonic: () => monotonic,
    setTimer(delayMs, run): Timer {
      const timer = { at: monotonic + Math.max(0, delayMs), run }
      timers.push(timer)
      return {
        cancel() {
          timers = timers.filter((other) => other !== timer)
        },
      }
    },
    async advance(ms) {
      const end = monotonic + ms
      for (;;) {
        await settled()
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        timers = timers.filter((other) => other !== next)
        monotonic = Math.max(monotonic, next.at)
        next.run()
      }
      // A leap may have come meanwhile.
      monotonic = Math.max(monotonic, end)
      await settled()
    },
    leap(ms) {
      monotonic += ms
    },
    stepWall(ms) {
      offset += ms
    },
  }
}

/** A clock that runs like that of the system, from noon in the middle of a month on: no hour, day or month ends during a test. */
export interface NoonClock extends Clock {
  /** How far it is ahead of that of the system. */
  aheadMs: number
}

export function createNoonClock(): NoonClock {
  const aheadMs = Date.UTC(2026, 5, 17, 12) - Date.now()
  return { ...systemClock, aheadMs, now: () => systemClock.now() + aheadMs }
}

/** Environment of a process whose wall clock is ahead of that of the system. */
export const clockAhead = (aheadMs: number) => ({
  NODE_OPTIONS: `--import ${join(import.meta.dirname, 'skewed-clock.ts')}`,
  TEST_CLOCK_AHEAD_MS: String(aheadMs),
})
