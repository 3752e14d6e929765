/**
 * Keeps memory flat over large batches. A batch of 1,000 makes objects that outlive the young generation and die a
 * second later; V8's own rule lets such garbage reach three times what lives before the heap is collected whole, so
 * memory rises from batch to batch. While batches come, and for a while after the last, the heap may grow by a part of
 * what lives only. That costs processor time, which single messages, whose objects die young, need not pay
 * (docs/decisions: flat memory).
 */
import type { Clock, Timer } from '../base/clock.ts'

/** In percent of what lives. V8 reads it at each collection; 0 is V8's own rule. */
const GROWTH_WITH_BATCHES = 50
const GROWTH_ALONE = 0
/** From so many copies on, a message counts as a large batch; what fewer leave behind is little. */
const LARGE_BATCH = 100
/** The last copies of a batch are on their way for some seconds, on a slow relay for minutes. */
const QUIET_MS = 60_000

export interface HeapGrowth {
  /** A message with so many copies was accepted. */
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
