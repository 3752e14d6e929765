/** Filters of figures, where the database does not apply them (metrics-logs.md section 2). */
import type { FilterEntry } from './figures.ts'

/** Without regard to case. */
export function matches({ comparator, values }: FilterEntry, value: string): boolean {
  const text = value.toLowerCase()
  const isPart = comparator === 'contains' || comparator === 'not contains'
  const found = values.some((one) => (isPart ? text.includes(one.toLowerCase()) : text === one.toLowerCase()))
  return comparator === '=' || comparator === 'contains' ? found : !found
}

/** A message with several values has one of them, or none. */
export function matchesAny(entry: FilterEntry, values: readonly string[]): boolean {
  const isDenied = entry.comparator === '!=' || entry.comparator === 'not contains'
  return isDenied
    ? values.every((value) => matches(entry, value))
    : values.some((value) => matches(entry, value))
}
