/**
 * Counts of few counters: pairs of a counter's place in COUNTERS and its count, which is not 0. An object with all counters
 * would be most of the memory that counting needs.
 */
import { COUNTERS, type Counter } from '../counters.ts'

export type CounterCounts = number[]

/** Packs name counters by these: the list of counters may only grow at its end. */
export const COUNTER_PLACES = Object.fromEntries(COUNTERS.map((name, at) => [name, at])) as Readonly<
  Record<Counter, number>
>

export function addCount(counts: CounterCounts, place: number, count: number): void {
  for (let at = 0; at < counts.length; at += 2)
    if (counts[at] === place) {
      counts[at + 1] = (counts[at + 1] as number) + count
      return
    }
  counts.push(place, count)
}

/** Null: it is 0. */
export function countAt(counts: CounterCounts, place: number): number | null {
  for (let at = 0; at < counts.length; at += 2) if (counts[at] === place) return counts[at + 1] as number
  return null
}
