import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replayTimes } from './replay-times.ts'

test('spans of a replay in the local zone; yesterday ends where today begins, also over a month', () => {
  const now = new Date(2026, 2, 1, 9, 30, 15)
  const cases = [
    ['hour', '2026-03-01T08:30', '2026-03-01T09:31'],
    ['day', '2026-02-28T09:30', '2026-03-01T09:31'],
    ['today', '2026-03-01T00:00', '2026-03-01T09:31'],
    ['yesterday', '2026-02-28T00:00', '2026-03-01T00:00'],
  ] as const
  for (const [span, from, to] of cases) assert.deepEqual(replayTimes(span, now), { from, to }, span)
})
