import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createHeapGrowth } from './heap-growth.ts'

test('heap growth is limited from a large batch until a minute after the last one', async () => {
  const clock = createTestClock()
  const flags: string[] = []
  const growth = createHeapGrowth(clock, (flag) => flags.push(flag))
  growth.accepted(1)
  growth.accepted(99)
  assert.deepEqual(flags, ['--heap-growing-percent=100'], 'single messages change nothing')
  growth.accepted(1_000)
  await clock.advance(40_000)
  growth.accepted(100)
  await clock.advance(40_000)
  assert.deepEqual(flags.slice(1), ['--heap-growing-percent=50'], 'set once, and kept by the second batch')
  await clock.advance(20_000)
  assert.deepEqual(flags.slice(2), ['--heap-growing-percent=100'])
  growth.accepted(1_000)
  assert.equal(flags.length, 4)
  growth.stop()
})
