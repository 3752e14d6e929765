import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createByteBudget } from './byte-budget.ts'

const isSettled = async (promise: Promise<unknown>) => {
  await new Promise((resolve) => setImmediate(resolve))
  return (await Promise.race([promise, 'pending'])) !== 'pending'
}

test('bytes are handed out in the order of asking', async () => {
  const budget = createByteBudget(100, createTestClock())
  const first = await budget.take(60)
  const second = budget.take(50)
  const third = budget.take(10)
  assert.deepEqual([await isSettled(second), await isSettled(third)], [false, false])
  first?.()
  first?.()
  const releases = [await second, await third]
  assert.equal(await isSettled(budget.take(41)), false, 'a release counts once')
  for (const release of releases) release?.()
})

test('what is larger than all of it goes alone', async () => {
  const budget = createByteBudget(100, createTestClock())
  const large = await budget.take(1_000)
  const small = budget.take(1)
  assert.equal(await isSettled(small), false)
  large?.()
  assert.equal(typeof (await small), 'function')
})

test('a wait ends in time, and lets smaller ones pass', async () => {
  const clock = createTestClock()
  const budget = createByteBudget(100, clock)
  await budget.take(50)
  const tooLong = budget.take(80, 1_000)
  const smaller = budget.take(50)
  await clock.advance(999)
  assert.equal(await isSettled(tooLong), false)
  await clock.advance(1)
  assert.equal(await tooLong, null)
  assert.equal(typeof (await smaller), 'function')
})

test('only so many wait where a wait has an end', async () => {
  const budget = createByteBudget(1, createTestClock())
  await budget.take(1)
  const waiting = Array.from({ length: 100 }, () => budget.take(1, 1_000))
  assert.equal(await budget.take(1, 1_000), null)
  assert.equal(await isSettled(Promise.any(waiting)), false)
})
