import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { arrivedWithDelivery, createBehaviour } from './behaviour.ts'
import { createMinuteCounts } from './counts.ts'

const click = (token: string, deliveryId = 'd') => ({ kind: 'click' as const, token, deliveryId })

test('a GET soon after a HEAD is a bot, for that link only', () => {
  const clock = createTestClock()
  const behaviour = createBehaviour(clock)
  behaviour.headRequested('a')
  assert.equal(behaviour.isMachine({ ...click('a'), kind: 'open' }), true)
  assert.equal(behaviour.isMachine({ ...click('b'), kind: 'open' }), false)
  clock.leap(60_001)
  assert.equal(behaviour.isMachine({ ...click('a'), kind: 'open' }), false)
})

test('another link of the same message within two seconds is a bot; the same link, or one of another message, is not', () => {
  const clock = createTestClock()
  const behaviour = createBehaviour(clock)
  assert.equal(behaviour.isMachine(click('a')), false)
  assert.equal(behaviour.isMachine(click('a')), false)
  assert.equal(behaviour.isMachine(click('b')), true)
  assert.equal(behaviour.isMachine(click('c', 'other')), false)
  clock.leap(2_001)
  assert.equal(behaviour.isMachine(click('a')), false)
})

test('opening a message and clicking a link at once is a reader', () => {
  const behaviour = createBehaviour(createTestClock())
  assert.equal(behaviour.isMachine({ ...click('pixel'), kind: 'open' }), false)
  assert.equal(behaviour.isMachine(click('a')), false)
})

test('a visit with the delivery is a bot', () => {
  const delivered = { state: 'delivered', deliveredAt: 10_000 } as const
  assert.equal(arrivedWithDelivery(delivered, 11_999), true)
  assert.equal(arrivedWithDelivery(delivered, 12_000), false)
  assert.equal(arrivedWithDelivery(delivered, 9_000), true)
  assert.equal(arrivedWithDelivery({ state: 'sending', deliveredAt: null }, 9_000), true)
  assert.equal(arrivedWithDelivery({ state: 'bounced', deliveredAt: null }, 9_000), false)
})

test('counts start again each minute, and the oldest key is evicted first', () => {
  const clock = createTestClock()
  const counts = createMinuteCounts(clock, 2, 2)
  assert.deepEqual(
    ['a', 'a', 'a', 'b'].map((key) => counts.take(key)),
    [true, true, false, true],
  )
  assert.equal(counts.take('c'), true)
  // At most two keys: a was evicted.
  assert.equal(counts.take('a'), true)
  clock.leap(60_000)
  assert.equal(counts.take('b'), true)
})
