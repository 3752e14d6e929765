import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insert as insertTyped, joinInserts } from './store.ts'

const insert = (table: string, row: object) => insertTyped(table as never, row as never)

test('inserts of one shape become one statement, others keep their position', () => {
  const update = { sql: 'UPDATE t SET a = ?', values: [9], expectRows: 1 }
  const joined = joinInserts([
    insert('t', { a: 1, b: 'x' }),
    insert('u', { a: 5 }),
    insert('t', { a: 2, b: 'y' }),
    update,
  ])
  assert.deepEqual(joined, [
    { sql: 'INSERT INTO t (a, b) VALUES (?, ?), (?, ?)', values: [1, 'x', 2, 'y'] },
    insert('u', { a: 5 }),
    update,
  ])
})

test('a statement takes at most 100 rows, and one with expectRows is left as it is', () => {
  const rows = Array.from({ length: 250 }, (_, a) => insert('t', { a }))
  const joined = joinInserts(rows)
  assert.deepEqual(
    joined.map(({ values }) => values.length),
    [100, 100, 50],
  )
  assert.deepEqual(
    joined.flatMap(({ values }) => values),
    rows.flatMap(({ values }) => values),
  )
  const expecting = { ...insert('t', { a: 1 }), expectRows: 1 }
  assert.deepEqual(joinInserts([expecting, expecting]), [expecting, expecting])
})
