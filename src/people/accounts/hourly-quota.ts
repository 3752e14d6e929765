/** How often something may happen within an hour, for each key such as a client's address. In memory. */

import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS } from '../../base/time/durations.ts'

/** Keys that are remembered; beyond it the one with the oldest request is forgotten. */
const KEYS_MAX = 5_000

export class HourlyQuota {
  readonly #clock: Clock
  readonly #max: number
  readonly #timesMs = new Map<string, number[]>()

  constructor(clock: Clock, max: number) {
    this.#clock = clock
    this.#max = max
  }

  /** 0: taken. Else milliseconds until the next one is free. */
  take(key: string): number {
    const now = this.#clock.monotonic()
    const timesMs = (this.#timesMs.get(key) ?? []).filter((time) => time > now - HOUR_MS)
    const [first = now] = timesMs
    if (timesMs.length >= this.#max) return first + HOUR_MS - now
    timesMs.push(now)
    this.#timesMs.delete(key)
    if (this.#timesMs.size >= KEYS_MAX) this.#timesMs.delete(this.#timesMs.keys().next().value as string)
    this.#timesMs.set(key, timesMs)
    return 0
  }
}
