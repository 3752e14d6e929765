/** Filters of figures, where the database does not apply them (metrics-logs.md section 2). */
import type { FilterEntry } from './figures.ts'

type Test = (text: string) => boolean

/** A query tests each of its entries for up to hundred thousands of values. */
const tests = new WeakMap<FilterEntry, Test>()

/** Without regard to case. */
export function matches(entry: FilterEntry, value: string): boolean {
  let test = tests.get(entry)
  if (!test) {
    test = testOf(entry)
    tests.set(entry, test)
  }
  return test(value.toLowerCase())
}

function testOf({ comparator, values }: FilterEntry): Test {
  const all = new Set(values.map((value) => value.toLowerCase()))
  if (comparator === '=') return (text) => all.has(text)
  if (comparator === '!=') return (text) => !all.has(text)
  const parts = [...all]
  const contains: Test = (text) => parts.some((part) => text.includes(part))
  return comparator === 'contains' ? contains : (text) => !contains(text)
}

/** A message with several values has one of them, or none. */
export function matchesAny(entry: FilterEntry, values: readonly string[]): boolean {
  const isDenied = entry.comparator === '!=' || entry.comparator === 'not contains'
  return isDenied
    ? values.every((value) => matches(entry, value))
    : values.some((value) => matches(entry, value))
}
