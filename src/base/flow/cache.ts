import type { Changes } from '../changes.ts'
import type { Clock } from '../time/clock.ts'

/** Values that are usually in memory: those are returned as they are, others as a promise. */

/** A plain value where it is known: a promise would cost hot paths a microtask and its memory. */
export type MaybePromise<T> = T | Promise<T>

/** Whether the value must be awaited: `isPending(value) ? await value : value`, where a needless `await` would cost. */
export const isPending = <T>(value: MaybePromise<T>): value is Promise<T> => value instanceof Promise

/**
 * `use(value)`: at once if the value is known, else when it is. The hot paths go through here instead of `await`
 * (decision 34). `use` and what calls this may throw at once where a promise would have been rejected.
 */
export function whenKnown<T, R>(value: MaybePromise<T>, use: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPending(value) ? value.then(use) : use(value)
}

/** The values in a list: at once if all are known, else when the last one is. Rejects with the first failure. */
export function allKnown<const T extends readonly unknown[]>(
  values: T,
): MaybePromise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  type Known = { -readonly [K in keyof T]: Awaited<T[K]> }
  return values.some(isPending)
    ? (Promise.all(values) as unknown as Promise<Known>)
    : (values as unknown as Known)
}

/**
 * A value that is loaded by the first call and kept, without its promise once it is known. A failed load is forgotten:
 * the next call tries again.
 */
export class Lazy<T> {
  readonly #load: () => MaybePromise<T>
  #value: MaybePromise<T> | undefined

  constructor(load: () => MaybePromise<T>) {
    this.#load = load
  }

  get(): MaybePromise<T> {
    if (this.#value !== undefined) return this.#value
    const value = this.#load()
    this.#value = value
    if (isPending(value)) {
      value.then(
        (known) => this.#keep(value, known),
        () => this.#keep(value, undefined),
      )
    }
    return value
  }

  /** Frees the memory; the next call loads it again. */
  forget(): void {
    this.#value = undefined
  }

  #keep(loading: Promise<T>, value: T | undefined): void {
    if (this.#value === loading) this.#value = value
  }
}

/**
 * Remembers what `load` returned for a key, for `ttlMs` and for at most `entriesMax` keys (the oldest is dropped first).
 * Concurrent calls for one key share one load; a failed load is not remembered.
 */
export interface Cache<V> {
  get(key: string): MaybePromise<V>
  /** Drops one key, or all; where the cache is `shared`, in the other processes too. */
  forget(key?: string): void
}

/** Connects the caches of a topic in all processes. */
export interface SharedCache {
  changes: Pick<Changes, 'announce' | 'follow'>
  topic: string
}

export function createCache<V>(options: {
  clock: Clock
  ttlMs: number
  entriesMax: number
  load(key: string): Promise<V>
  shared?: SharedCache
}): Cache<V> {
  const entries = new Map<string, { value: MaybePromise<V>; until: number }>()
  const { shared } = options
  const drop = (key: string) => void (key === ALL_KEYS ? entries.clear() : entries.delete(key))
  shared?.changes.follow(shared.topic, (key) => drop(key ?? ALL_KEYS))
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
    forget(key = ALL_KEYS) {
      drop(key)
      void shared?.changes.announce(shared.topic, key)
    },
  }
}

/** As the text of an announcement; no shared cache has an empty key. */
const ALL_KEYS = ''
