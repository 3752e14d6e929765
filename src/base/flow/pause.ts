import type { Clock } from '../time/clock.ts'

/** Resolves after `ms`, or at once when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimer(ms, end)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
  })
}
