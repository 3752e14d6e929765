/**
 * Keeps memory flat under load. What a message has in flight outlives the young generation and dies soon after; V8's own
 * rule lets such garbage reach three times the live heap before a full collection. Here a heap may grow to twice its live
 * size (decision 192). While batches arrive, and for a while after the last, it is less: each makes a thousand messages'
 * garbage at once, and memory would rise from batch to batch. That costs CPU, which single messages are spared (decision
 * 25). The flags that are set at the start stand in `bin/node-settings.sh`.
 */
import type { Clock, Timer } from '../../base/time/clock.ts'

/** In percent of the live heap, in every thread. V8 reads it at each collection. */
const GROWTH_WITH_BATCHES = 50
const GROWTH_ALONE = 100
/** A message with this many copies is a large batch; smaller ones leave little garbage. */
const LARGE_BATCH = 100
/** The last copies of a batch are in flight for some seconds, with a slow relay for minutes. */
const QUIET_MS = 60_000

/** `setFlag`: `v8.setFlagsFromString`. */
export function createHeapGrowth(clock: Clock, setFlag: (flag: string) => void) {
  let timer: Timer | null = null
  let quietAt = 0
  const set = (percent: number) => setFlag(`--heap-growing-percent=${percent}`)
  const wait = () => {
    const left = quietAt - clock.monotonic()
    if (left > 0) {
      timer = clock.setTimer(left, wait)
      return
    }
    timer = null
    set(GROWTH_ALONE)
  }
  set(GROWTH_ALONE)
  return {
    /** A message with this many copies was accepted. */
    accepted(copies: number): void {
      if (copies < LARGE_BATCH) return
      quietAt = clock.monotonic() + QUIET_MS
      if (timer) return
      set(GROWTH_WITH_BATCHES)
      wait()
    },
    stop: (): void => timer?.cancel(),
  }
}
