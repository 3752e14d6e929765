import type { Clock } from './clock.ts'

/** A value that is at hand comes as such: waiting for it would cost hot paths a pause and its memory. */
export type MaybePromise<T> = T | Promise<T>

/**
 * Remembers what `load` gave for a key, for `ttlMs` and for at most `entriesMax` keys (the oldest goes first).
 * Look-ups of one key at the same time share one load; a failed load is not remembered.
 */
export interface Cache<V> {
  get(key: string): MaybePromise<V>
  /** Drops one key, or all. */
  forget(key?: string): void
}

export function createCache<V>(options: {
  clock: Clock
  ttlMs: number
  entriesMax: number
  load(key: string): Promise<V>
}): Cache<V> {
  const entries = new Map<string, { value: MaybePromise<V>; until: number }>()
  return {
    get(key) {
      const now = options.clock.monotonic()
      const known = entries.get(key)
      if (known && known.until > now) return known.value
      const loading = options.load(key)
      const entry: { value: MaybePromise<V>; until: number } = { value: loading, until: now + options.ttlMs }
      entries.delete(key)
      entries.set(key, entry)
      loading.then(
        (value) => {
          entry.value = value
        },
        () => {
          if (entries.get(key) === entry) entries.delete(key)
        },
      )
      const oldest = entries.keys().next()
      if (entries.size > options.entriesMax && !oldest.done) entries.delete(oldest.value)
      return loading
    },
    forget(key) {
      if (key === undefined) entries.clear()
      else entries.delete(key)
    },
  }
}
