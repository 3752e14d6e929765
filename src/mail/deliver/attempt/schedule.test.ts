import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isOver, LIFETIME_MS, nextStep } from './schedule.ts'

const MINUTE = 60_000
const SCHEDULE = [10, 15, 30, 60, 120, 240].map((minutes) => minutes * MINUTE)

test('seven attempts fit into eight hours whatever the jitter', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
      (randoms) => {
        let now = 0
        for (const [index, random] of randoms.entries()) {
          const step = nextStep(now, index + 1, LIFETIME_MS, SCHEDULE, random)
          assert.equal(step.kind, 'retry')
          const wait = (step as { at: number }).at - now
          assert.ok(wait <= (SCHEDULE[index] as number) && wait >= (SCHEDULE[index] as number) * 0.95 - 1)
          now += wait
        }
        assert.deepEqual(nextStep(now, 7, LIFETIME_MS, SCHEDULE, 0), { kind: 'give-up' })
      },
    ),
    { seed: 1, numRuns: 200 },
  )
})

test('a window set by the sender ends the message when it ends, not before', () => {
  const end = 30 * MINUTE
  assert.deepEqual(nextStep(25 * MINUTE, 3, end, SCHEDULE, 0), { kind: 'wait-for-end', at: end })
  assert.deepEqual(nextStep(end, 3, end, SCHEDULE, 0), { kind: 'give-up' })
})

test('a window of the sender outlasts the last retry; the default one does not', () => {
  const day = 24 * 60 * MINUTE
  assert.deepEqual(nextStep(8 * 60 * MINUTE, 7, day, SCHEDULE, 0, true), { kind: 'wait-for-end', at: day })
  assert.deepEqual(nextStep(8 * 60 * MINUTE, 7, day, SCHEDULE, 0), { kind: 'give-up' })
  assert.deepEqual(nextStep(day, 7, day, SCHEDULE, 0, true), { kind: 'give-up' })
})

test('a wait that ends just after the window is cut to its last second', () => {
  assert.deepEqual(nextStep(0, 1, 9.5 * MINUTE, SCHEDULE, 0), { kind: 'retry', at: 9.5 * MINUTE - 1000 })
})

test('whether the window is over', () => {
  const row = (attempts: number, windowMs: number) => ({ attempts, created_at: 0, expires_at: windowMs })
  assert.equal(isOver(row(3, LIFETIME_MS), LIFETIME_MS - 1), false)
  assert.equal(isOver(row(3, LIFETIME_MS), LIFETIME_MS), true)
  assert.equal(isOver(row(0, LIFETIME_MS), LIFETIME_MS * 2), false, 'the service was down: one attempt')
  const asked = { ...row(0, LIFETIME_MS), reason: 'expire-asked' }
  assert.equal(isOver(asked, LIFETIME_MS * 2), true, 'somebody has ended it')
  assert.equal(isOver(row(0, 5 * MINUTE), 6 * MINUTE), true, 'the sender wanted it within 5 minutes')
})
