import assert from 'node:assert/strict'
import { test } from 'node:test'
import { niceTop, ticks } from './chart-scale.ts'

test('the scale ends at a round number that is not below the largest value', () => {
  const tops = [0, 1, 2, 3, 7, 88, 100, 101, 4_300].map(niceTop)
  assert.deepEqual(tops, [2, 1, 2, 5, 10, 100, 100, 200, 5_000])
})

test('labels are evenly apart, and the last point has one', () => {
  assert.deepEqual(ticks(5, 1_000), [0, 1, 2, 3, 4])
  assert.deepEqual(ticks(30, 360), [5, 13, 21, 29])
  assert.deepEqual(ticks(1, 360), [0])
  assert.deepEqual(ticks(0, 360), [])
})
