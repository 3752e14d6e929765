/**
 * What was worked out of an object, to be found again as long as the object lives. Like a `WeakMap`, but kept in a
 * hidden property of the object itself, which neither copies nor JSON nor comparisons see: a `WeakMap` whose values lead
 * back to their keys keeps each of them until a collection of the whole heap, as the young generation's collector takes
 * its values for alive (docs/decisions: what keeps the young alive).
 */
export class Beside<T extends object, V> {
  readonly #name = Symbol()

  get(object: T): V | undefined {
    return (object as { [name: symbol]: V | undefined })[this.#name]
  }

  set(object: T, value: V): V {
    Object.defineProperty(object, this.#name, { value, writable: true, configurable: true })
    return value
  }
}
