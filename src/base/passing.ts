/**
 * Maps and sets for what comes and soon goes again, such as requests under way, in an owner that stays.
 *
 * V8's own, used for long, keep garbage alive. When one has no room left it moves to a new table, and the table that it
 * leaves points to the new one (for iterators that stand in it) and still to what it held. A table that has survived
 * two collections of the young generation lies among the old, where only a collection of the whole heap finds it dead;
 * until then it keeps its successor, which keeps the next, with all that was ever in them when they were left. Here a
 * new map begins before the old one has seen much: between two maps there is no such link
 * (docs/decisions: what keeps the young alive).
 */

/** Entries that have gone after which a new map begins; more, where more are in it. */
const GONE_MIN = 32

export class PassingMap<K, V> {
  #map = new Map<K, V>()
  #gone = 0

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

  /** Whether it was there. Not while somebody iterates: the rest of that may show entries that have gone since. */
  delete(key: K): boolean {
    if (!this.#map.delete(key)) return false
    if (++this.#gone >= GONE_MIN && this.#gone >= this.#map.size) {
      this.#map = new Map(this.#map)
      this.#gone = 0
    }
    return true
  }

  clear(): void {
    this.#map = new Map()
    this.#gone = 0
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
