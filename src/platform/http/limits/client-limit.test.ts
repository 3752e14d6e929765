import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import { createClientLimit } from './client-limit.ts'

test('a network of many smaller ones has a limit of its own, and pushes no other out', async () => {
  const clock = createTestClock()
  const limit = createClientLimit(clock, 30)
  const take = (address: string) => {
    try {
      limit.take(address)
      return true
    } catch (error) {
      assert.ok(error instanceof TooManyRequests)
      return false
    }
  }
  for (let n = 0; n < 30; n++) assert.ok(take('192.0.2.1'))
  const attempts = Array.from({ length: 20_000 }, (_, n) => take(`2001:db8:1:${n.toString(16)}::1`))
  assert.equal(attempts.filter(Boolean).length, 270)
  assert.equal(take('192.0.2.1'), false, 'it is remembered')
  assert.ok(take('2001:db8:2::1'))
  assert.ok(take('192.0.2.2'))
  await clock.advance(60_000)
  assert.ok(take('192.0.2.1'))
})
