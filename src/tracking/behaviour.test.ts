import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../test/support/clock.ts'
import { cameWithDelivery, createBehaviour } from './behaviour.ts'
import { createMinuteCounts } from './counts.ts'

const click = (token: string, deliveryId = 'd') => ({ kind: 'click' as const, token, deliveryId })

test('a GET soon after a HEAD is a machine, on that link alone', () => {
  const clock = createTestClock()
  const behaviour = createBehaviour(clock)
  behaviour.asked('a')
  assert.equal(behaviour.isMachine({ ...click('a'), kind: 'open' }), true)
  assert.equal(behaviour.isMachine({ ...click('b'), kind: 'open' }), false)
  clock.leap(60_001)
  assert.equal(behaviour.isMachine({ ...click('a'), kind: 'open' }), false)
})

test('another link of one mail within two seconds is a machine; the same one, or one of another mail, is not', () => {
  const clock = createTestClock()
  const behaviour = createBehaviour(clock)
  assert.equal(behaviour.isMachine(click('a')), false)
  assert.equal(behaviour.isMachine(click('a')), false)
  assert.equal(behaviour.isMachine(click('b')), true)
  assert.equal(behaviour.isMachine(click('c', 'other')), false)
  clock.leap(2_001)
  assert.equal(behaviour.isMachine(click('a')), false)
})

test('opening a mail and clicking a link at once is a reader', () => {
  const behaviour = createBehaviour(createTestClock())
  assert.equal(behaviour.isMachine({ ...click('pixel'), kind: 'open' }), false)
  assert.equal(behaviour.isMachine(click('a')), false)
})

test('what comes with the delivery is a machine', () => {
  const delivered = { state: 'delivered', deliveredAt: 10_000 } as const
  assert.equal(cameWithDelivery(delivered, 11_999), true)
  assert.equal(cameWithDelivery(delivered, 12_000), false)
  assert.equal(cameWithDelivery(delivered, 9_000), true)
  assert.equal(cameWithDelivery({ state: 'sending', deliveredAt: null }, 9_000), true)
  assert.equal(cameWithDelivery({ state: 'bounced', deliveredAt: null }, 9_000), false)
})

test('counts begin anew each minute, and the oldest key is forgotten first', () => {
  const clock = createTestClock()
  const counts = createMinuteCounts(clock, 2, 2)
  assert.deepEqual(
    ['a', 'a', 'a', 'b'].map((key) => counts.take(key)),
    [true, true, false, true],
  )
  assert.equal(counts.take('c'), true)
  // Two keys at the most: a was forgotten.
  assert.equal(counts.take('a'), true)
  clock.leap(60_000)
  assert.equal(counts.take('b'), true)
})
