import type { Clock } from './clock.ts'

/**
 * Remembers what `load` gave for a key, for `ttlMs` and for at most `entriesMax` keys (the oldest goes first).
 * Look-ups of one key at the same time share one load; a failed load is not remembered.
 */
export interface Cache<V> {
  get(key: string): Promise<V>
  /** Drops one key, or all. */
  forget(key?: string): void
}

export function createCache<V>(options: {
  clock: Clock
  ttlMs: number
  entriesMax: number
  load(key: string): Promise<V>
}): Cache<V> {
  const entries = new Map<string, { value: Promise<V>; until: number }>()
  return {
    get(key) {
      const now = options.clock.monotonic()
      const known = entries.get(key)
      if (known && known.until > now) return known.value
      const value = options.load(key)
      const entry = { value, until: now + options.ttlMs }
      entries.delete(key)
      entries.set(key, entry)
      value.catch(() => {
        if (entries.get(key) === entry) entries.delete(key)
      })
      const oldest = entries.keys().next()
      if (entries.size > options.entriesMax && !oldest.done) entries.delete(oldest.value)
      return value
    },
    forget(key) {
      if (key === undefined) entries.clear()
      else entries.delete(key)
    },
  }
}
