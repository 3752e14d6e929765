/**
 * Keeps memory flat over large batches. A batch of 1,000 makes objects that outlive the young generation and die a
 * second later; V8's own rule lets such garbage reach three times the live heap before a full collection, so memory
 * rises from batch to batch. While batches arrive, and for a while after the last, the heap may only grow by a fraction
 * of its live size. That costs CPU, which single messages, whose objects die young, are spared (docs/decisions: flat
 * memory). The flags that are set at the start stand in `bin/node-settings.sh`.
 */
import type { Clock, Timer } from '../../base/time/clock.ts'

/** In percent of the live heap. V8 reads it at each collection; 0 is V8's own rule. */
const GROWTH_WITH_BATCHES = 50
const GROWTH_ALONE = 0
/** A message with this many copies is a large batch; smaller ones leave little garbage. */
const LARGE_BATCH = 100
/** The last copies of a batch are in flight for some seconds, with a slow relay for minutes. */
const QUIET_MS = 60_000

interface HeapGrowth {
  /** A message with this many copies was accepted. */
  accepted(copies: number): void
  stop(): void
}

/** `setFlag`: `v8.setFlagsFromString`. */
export function createHeapGrowth(clock: Clock, setFlag: (flag: string) => void): HeapGrowth {
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
  return {
    accepted(copies) {
      if (copies < LARGE_BATCH) return
      quietAt = clock.monotonic() + QUIET_MS
      if (timer) return
      set(GROWTH_WITH_BATCHES)
      wait()
    },
    stop: () => timer?.cancel(),
  }
}
