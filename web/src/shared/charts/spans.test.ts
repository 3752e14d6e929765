import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricsItem } from '../../api-types.ts'
import { changeOf, intervalsOf, percent, valuesAt } from './spans.ts'

const item = (time: string, value: number): MetricsItem => ({
  dimensions: [{ dimension: 'time', value: time, display_value: time }],
  metrics: { delivered_count: value },
})

test('intervals without data are zeros, and those of a span are all there', () => {
  const starts = intervalsOf(Date.UTC(2026, 0, 30, 7), Date.UTC(2026, 1, 2, 9), 'day')
  assert.equal(starts.length, 4)
  const values = valuesAt([item('Sat, 31 Jan 2026 00:00:00 +0000', 3)], 'delivered_count', starts)
  assert.deepEqual(values, [0, 3, 0, 0])
  assert.equal(intervalsOf(Date.UTC(2025, 10, 9), Date.UTC(2026, 1, 1), 'month').length, 4)
  assert.equal(intervalsOf(0, 3_600_000, 'hour').length, 2)
})

test('changes have a sign, and none without anything before', () => {
  assert.deepEqual(changeOf(112, 100), { text: '+12%', direction: 1 })
  assert.deepEqual(changeOf(1, 2), { text: '−50%', direction: -1 })
  assert.deepEqual(changeOf(5, 5), { text: '0%', direction: 0 })
  assert.equal(changeOf(5, 0), undefined)
  assert.equal(percent(1, 3), '33.3%')
  assert.equal(percent(0, 0), '–')
})
