/** Values that are kept in memory: returned as they are where they are known, else as a promise; bounded maps. */
import type { Changes } from '../changes.ts'
import type { Clock } from '../time/clock.ts'

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

/** Removed entries after which a new map is made; more, where it holds more. */
const REMOVED_MIN = 32

/**
 * Maps and sets for short-lived entries, such as requests in flight, in a long-lived owner (decision 40).
 *
 * A long-used `Map` keeps garbage alive. When its table is full V8 moves it to a new one; the old table points to the new
 * one (for iterators in progress) and still to its entries. A table that has survived two collections of the young
 * generation is in the old generation, where only a full collection frees it; until then it keeps its successor alive,
 * which keeps the next, with the entries that each had when it was replaced. Here a new map replaces the old one early:
 * between two maps there is no such link.
 */
export class PassingMap<K, V> {
  #map = new Map<K, V>()
  #removed = 0

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  set(key: K, value: V): this {
    this.#map.set(key, value)
    return this
  }

  /** Whether it was present. Not during an iteration: its rest might show removed entries. */
  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false
    if (++this.#removed >= REMOVED_MIN && this.#removed >= this.#map.size) {
      this.#map = new Map(this.#map)
      this.#removed = 0
    }
    return true
  }

  clear(): void {
    this.#map = new Map()
    this.#removed = 0
  }

  keys(): MapIterator<K> {
    return this.#map.keys()
  }

  values(): MapIterator<V> {
    return this.#map.values()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#map[Symbol.iterator]()
  }
}

export class PassingSet<T> {
  readonly #members = new PassingMap<T, true>()

  get size(): number {
    return this.#members.size
  }

  has(member: T): boolean {
    return this.#members.has(member)
  }

  add(member: T): this {
    this.#members.set(member, true)
    return this
  }

  /** As `PassingMap.delete`. */
  delete(member: T): boolean {
    return this.#members.delete(member)
  }

  [Symbol.iterator](): MapIterator<T> {
    return this.#members.keys()
  }
}

/** Sets an entry. A map with `max` entries is cleared first: those in use are soon back, at the cost of one lookup each. */
export function remember<K, V>(map: Map<K, V>, max: number, key: K, value: V): V {
  if (map.size >= max) map.clear()
  map.set(key, value)
  return value
}

/** The text in memory of its own: a slice keeps the whole text that it was cut from alive, maybe a request of megabytes. */
export const ownText = (text: string): string => Buffer.from(text).toString()
