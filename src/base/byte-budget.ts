/**
 * Memory for large bodies, counted in bytes and handed out in the order of asking. One that is larger than the whole
 * budget gets all of it, so that it goes alone and not never.
 */
import type { Clock, Timer } from './clock.ts'
import { PassingSet } from './passing.ts'

/** To be called once, when the bytes are done with. */
export type Release = () => void

export interface ByteBudget {
  /**
   * Resolves when the bytes are free. Null: they were not within `waitMs`, or too many wait already.
   * @param waitMs default: as long as it takes, behind however many
   */
  take(bytes: number, waitMs?: number): Promise<Release | null>
}

/** Those that wait hold a connection each, and what its buffers hold. */
const WAITING_MAX = 100

interface Waiting {
  bytes: number
  admit(release: Release): void
}

export function createByteBudget(totalBytes: number, clock: Clock): ByteBudget {
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
    take(wantedBytes, waitMs) {
      const bytes = Math.min(wantedBytes, totalBytes)
      if (waiting.size === 0 && bytes <= freeBytes) return Promise.resolve(grant(bytes))
      if (waitMs !== undefined && waiting.size >= WAITING_MAX) return Promise.resolve(null)
      return new Promise((resolve) => {
        let timer: Timer | undefined
        const place: Waiting = {
          bytes,
          admit(release) {
            timer?.cancel()
            resolve(release)
          },
        }
        waiting.add(place)
        if (waitMs === undefined) return
        timer = clock.setTimer(waitMs, () => {
          waiting.delete(place)
          resolve(null)
          // A smaller one behind it may fit.
          admitNext()
        })
      })
    },
  }
}
