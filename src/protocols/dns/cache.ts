import type { Clock } from '../../base/time/clock.ts'

/** Caches values for their TTL, by the monotonic clock; over `entriesMax` the least recently used one is evicted. */
export function createTtlCache<T>(entriesMax: number, clock: Clock) {
  const entries = new Map<string, { value: T; expiresAtMs: number }>() // in order of use: the first is the oldest
  return {
    /** The value and its remaining seconds, or undefined when it is unknown or expired. */
    get(key: string): { value: T; ttlSeconds: number } | undefined {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      entries.delete(key)
      const remainingMs = entry.expiresAtMs - clock.monotonic()
      if (remainingMs <= 0) return undefined
      entries.set(key, entry)
      return { value: entry.value, ttlSeconds: Math.ceil(remainingMs / 1000) }
    },
    /** Caches `value`; with `ttlSeconds` 0 it only removes the present one. */
    set(key: string, value: T, ttlSeconds: number): void {
      entries.delete(key)
      if (ttlSeconds <= 0) return
      entries.set(key, { value, expiresAtMs: clock.monotonic() + ttlSeconds * 1000 })
      if (entries.size > entriesMax) entries.delete(entries.keys().next().value as string)
    },
  }
}
