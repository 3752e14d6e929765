/**
 * Maps and sets for short-lived entries, such as requests in flight, in a long-lived owner (decision 40).
 *
 * A long-used `Map` keeps garbage alive. When its table is full V8 moves it to a new one; the old table points to the new
 * one (for iterators in progress) and still to its entries. A table that has survived two collections of the young
 * generation is in the old generation, where only a full collection frees it; until then it keeps its successor alive,
 * which keeps the next, with the entries that each had when it was replaced. Here a new map replaces the old one early:
 * between two maps there is no such link.
 */

/** Removed entries after which a new map is made; more, where it holds more. */
const REMOVED_MIN = 32

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
