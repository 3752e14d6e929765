import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  canLift,
  inMonth,
  type LimitState,
  monthOf,
  percentOf,
  roomOf,
  withLimit,
  withUsed,
} from './month.ts'

const JUNE = Date.UTC(2026, 5)
const JULY = Date.UTC(2026, 6)

const state = (changes: Partial<LimitState> = {}): LimitState => ({
  limit: 1000,
  monthAt: JUNE,
  used: 400,
  stopped: false,
  reachedPercent: 0,
  notifiedPercent: 0,
  recountAt: null,
  ...changes,
})

test('a month begins at midnight in UTC', () => {
  assert.equal(monthOf(JULY - 1), JUNE)
  assert.equal(monthOf(JULY), JULY)
  assert.equal(monthOf(Date.UTC(2026, 11, 31, 23, 59, 59, 999)), Date.UTC(2026, 11))
})

const ROOM: [Partial<LimitState>, monthAt: number, room: number][] = [
  [{}, JUNE, 600],
  [{ used: 1000, stopped: true }, JUNE, 0],
  // A recount may find more than the limit.
  [{ used: 1200 }, JUNE, 0],
  // Raised, but the stop was not lifted.
  [{ limit: 2000, stopped: true }, JUNE, 0],
  [{ limit: null, stopped: true }, JUNE, 0],
  // A new month lifts it.
  [{ used: 1000, stopped: true }, JULY, 1000],
  [{ limit: null, stopped: true }, JULY, Number.POSITIVE_INFINITY],
]
for (const [changes, monthAt, room] of ROOM) {
  test(`${JSON.stringify(changes)} leaves ${room} in ${new Date(monthAt).toISOString().slice(0, 7)}`, () => {
    assert.equal(roomOf(state(changes), monthAt), room)
  })
}

test('shares are rounded down', () => {
  const cases = [
    [799, 0],
    [800, 80],
    [899, 80],
    [900, 90],
    [999, 90],
    [1000, 100],
    [1500, 100],
  ] as const
  for (const [used, percent] of cases) assert.equal(percentOf(used, 1000), percent, String(used))
  assert.equal(percentOf(2, 3), 0)
  assert.equal(percentOf(5000, null), 0)
})

test('a first limit takes the counted recipients, a change of one keeps its own count', () => {
  assert.deepEqual(
    withLimit(null, 1000, JUNE, 850, 17),
    state({ used: 850, reachedPercent: 80, recountAt: 17 }),
  )
  assert.deepEqual(
    withLimit(state({ used: 950 }), 1000, JUNE, 7, 17),
    state({ used: 950, reachedPercent: 90 }),
  )
  const stopped = state({ limit: null, used: 1000, stopped: true, notifiedPercent: 100 })
  assert.deepEqual(
    withLimit(stopped, 2000, JUNE, 1100, 17),
    { ...stopped, limit: 2000, used: 1100, recountAt: 17 },
    'not counted while there was no limit',
  )
})

test('a limit below the count stops at once, and a raised one does not lift the stop', () => {
  const lowered = withLimit(state({ used: 1500, limit: 2000 }), 1000, JUNE, 0, 0)
  assert.deepEqual([lowered.stopped, lowered.reachedPercent], [true, 100])
  assert.equal(canLift(lowered, JUNE), false)
  const raised = withLimit(lowered, 3000, JUNE, 0, 0)
  assert.deepEqual([raised.stopped, canLift(raised, JUNE)], [true, true])
})

test('a new month begins with nothing used and no mail sent', () => {
  const old = state({ used: 1000, stopped: true, reachedPercent: 100, notifiedPercent: 100 })
  assert.deepEqual(inMonth(old, JULY), state({ monthAt: JULY, used: 0 }))
  assert.equal(inMonth(old, JUNE), old)
  assert.equal(canLift(old, JULY), true)
})

test('a recount stops when it finds the limit reached', () => {
  assert.deepEqual(withUsed(state(), 1001), state({ used: 1001, stopped: true, reachedPercent: 100 }))
})
