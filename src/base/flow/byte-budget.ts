/**
 * Memory for large bodies, counted in bytes and granted in the order of requests. A body larger than the whole budget gets
 * all of it, so that it is processed alone instead of never.
 */
import type { Clock, Timer } from '../time/clock.ts'
import { PassingSet } from './cache.ts'

/** Called once the bytes are no longer needed. */
export type Release = () => void

export type ByteBudget = ReturnType<typeof createByteBudget>

/** Each that waits holds a connection and its buffers. */
const WAITING_MAX = 100

interface Waiting {
  bytes: number
  admit(release: Release): void
}

export function createByteBudget(totalBytes: number, clock: Clock) {
  const waiting = new PassingSet<Waiting>()
  let freeBytes = totalBytes

  function grant(bytes: number): Release {
    freeBytes -= bytes
    let held = true
    return () => {
      if (!held) return
      held = false
      freeBytes += bytes
      admitNext()
    }
  }

  function admitNext(): void {
    for (const next of waiting) {
      if (next.bytes > freeBytes) return
      waiting.delete(next)
      next.admit(grant(next.bytes))
    }
  }

  return {
    /**
     * Resolves when the bytes are granted. Null: not within `waitMs`, or too many wait already.
     * @param waitMs default: without a limit, also of those that wait
     */
    take(wantedBytes: number, waitMs?: number): Promise<Release | null> {
      const bytes = Math.min(wantedBytes, totalBytes)
      if (waiting.size === 0 && bytes <= freeBytes) return Promise.resolve(grant(bytes))
      if (waitMs !== undefined && waiting.size >= WAITING_MAX) return Promise.resolve(null)
      return new Promise((resolve) => {
        let timer: Timer | undefined
        const request: Waiting = {
          bytes,
          admit(release) {
            timer?.cancel()
            resolve(release)
          },
        }
        waiting.add(request)
        if (waitMs === undefined) return
        timer = clock.setTimer(waitMs, () => {
          waiting.delete(request)
          resolve(null)
          // A later, smaller one may fit.
          admitNext()
        })
      })
    },
  }
}
