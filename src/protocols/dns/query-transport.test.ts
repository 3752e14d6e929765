import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OpenExchanges } from './query-transport.ts'

test('a query has two exchanges open at most: a third ends the oldest', () => {
  const open = new OpenExchanges()
  const ended: number[] = []
  for (const number of [1, 2, 3, 4]) {
    const abandon = () => {
      open.delete(abandon)
      ended.push(number)
    }
    open.add(abandon)
  }
  assert.deepEqual(ended, [1, 2])
  open.end()
  assert.deepEqual(ended, [1, 2, 3, 4])
})
