/** Filters of figures, in SQL and here (metrics-logs.md section 2). Texts are compared without regard to case. */
import type { Store } from '../../platform/store/store.ts'

export const COMPARATORS = ['=', '!=', 'contains', 'not contains'] as const
type Comparator = (typeof COMPARATORS)[number]

export interface Condition<Name extends string> {
  attribute: Name
  comparator: Comparator
  /** In any letter case, at least one. `=`: any of them is equal; `contains`: any is a part; the others: none is. */
  values: readonly string[]
}

type Test = (text: string) => boolean

/** A query tests each of its conditions for up to hundred thousands of values. */
const tests = new WeakMap<Condition<string>, Test>()

export function matches(condition: Condition<string>, value: string): boolean {
  let test = tests.get(condition)
  if (!test) {
    test = testOf(condition)
    tests.set(condition, test)
  }
  return test(value.toLowerCase())
}

export const isDenied = ({ comparator }: Condition<string>) =>
  comparator === '!=' || comparator === 'not contains'
export const isPart = ({ comparator }: Condition<string>) =>
  comparator === 'contains' || comparator === 'not contains'

function testOf(condition: Condition<string>): Test {
  const all = new Set(condition.values.map((value) => value.toLowerCase()))
  const parts = [...all]
  const holds: Test = isPart(condition)
    ? (text) => parts.some((part) => text.includes(part))
    : (text) => all.has(text)
  return isDenied(condition) ? (text) => !holds(text) : holds
}

/** A message with several values has one of them, or none. */
export const matchesAny = (condition: Condition<string>, values: readonly string[]): boolean =>
  isDenied(condition)
    ? values.every((value) => matches(condition, value))
    : values.some((value) => matches(condition, value))

/** The condition on a column, which has its texts in lower case and no null. */
export function conditionSql(
  column: string,
  condition: Condition<string>,
  kind: Store['kind'],
): { sql: string; values: string[] } {
  const { values } = condition
  const find = kind === 'sqlite' ? 'instr' : 'strpos'
  const sql = isPart(condition)
    ? `(${values.map(() => `${find}(${column}, ?) > 0`).join(' OR ')})`
    : `${column} IN (${values.map(() => '?')})`
  return {
    sql: isDenied(condition) ? `NOT ${sql}` : sql,
    values: values.map((value) => value.toLowerCase()),
  }
}
