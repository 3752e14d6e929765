/**
 * Collects the buffers of streamed bytes (decision 203). V8 does not count them as garbage before they have 64 MB in a thread, and
 * then runs a full collection. They are all in the young generation, which alone is collected in 2 to 4 ms.
 */

/** Counted where bytes enter or leave a thread. On their way between they are copied up to three times. */
const SPENT_MAX_BYTES = 8 * 1_048_576

/** Returns a function that counts bytes of buffers which are used once, and calls `collect` when there are many. */
export function createSpentBuffers(collect: () => void): (bytes: number) => void {
  let spentBytes = 0
  return (bytes) => {
    spentBytes += bytes
    if (spentBytes < SPENT_MAX_BYTES) return
    spentBytes = 0
    collect()
  }
}

/** Counts the buffers of this thread. Without Node's `--expose-gc` nothing is collected. */
export const noteSpent = createSpentBuffers(() => void globalThis.gc?.({ type: 'minor' }))
