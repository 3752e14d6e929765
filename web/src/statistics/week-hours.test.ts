import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricsItem } from '../api-types.ts'
import { weekHours } from './week-hours.ts'

const item = (time: string, value: number | null): MetricsItem => ({
  dimensions: [{ dimension: 'time', value: time, display_value: time }],
  metrics: { unique_opened_count: value },
})

test("an hour counts at the weekday and hour of the reader's zone, also across midnight and summer time", () => {
  const items = [
    item('Sun, 01 Mar 2026 23:00:00 +0000', 2),
    item('Sun, 08 Mar 2026 23:00:00 +0000', 3),
    item('Sun, 05 Apr 2026 22:00:00 +0000', 4),
    item('Mon, 02 Mar 2026 12:00:00 +0000', null),
  ]
  const of = (zone: string) => {
    const sums = weekHours(items, 'unique_opened_count', zone)
    return sums.flatMap((row, day) => row.flatMap((sum, hour) => (sum === 0 ? [] : [[day, hour, sum]])))
  }
  assert.deepEqual(of('UTC'), [
    [6, 22, 4],
    [6, 23, 5],
  ])
  assert.deepEqual(of('Europe/Berlin'), [[0, 0, 9]])
  assert.deepEqual(of('Asia/Kolkata'), [
    [0, 3, 4],
    [0, 4, 5],
  ])
})
