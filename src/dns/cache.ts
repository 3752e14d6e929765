import type { Clock } from '../base/clock.ts'

interface Entry<T> {
  value: T
  expiresAtMs: number
}

export interface TtlCache<T> {
  /** The value and the seconds it still has, or undefined when it is unknown or over its time. */
  get(key: string): { value: T; ttlSeconds: number } | undefined
  /** Keeps `value`; with `ttlSeconds` 0 it only forgets what was there. */
  set(key: string, value: T, ttlSeconds: number): void
}

/** Keeps values for their time, by the monotonic clock; past `entriesMax` the least recently used one goes. */
export function createTtlCache<T>(entriesMax: number, clock: Clock): TtlCache<T> {
  const entries = new Map<string, Entry<T>>() // a Map keeps insertion order: the first is the oldest
  return {
    get(key) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      entries.delete(key)
      const leftMs = entry.expiresAtMs - clock.monotonic()
      if (leftMs <= 0) return undefined
      entries.set(key, entry)
      return { value: entry.value, ttlSeconds: Math.ceil(leftMs / 1000) }
    },
    set(key, value, ttlSeconds) {
      entries.delete(key)
      if (ttlSeconds <= 0) return
      entries.set(key, { value, expiresAtMs: clock.monotonic() + ttlSeconds * 1000 })
      if (entries.size > entriesMax) entries.delete(entries.keys().next().value as string)
    },
  }
}
