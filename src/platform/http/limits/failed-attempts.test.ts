import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import { createFailedAttempts } from './failed-attempts.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const ADDRESS = '198.51.100.7'

test('passwords: 10 a minute and 50 a day for an address, 3 and 9 times as many for its networks', async () => {
  const clock = createTestClock()
  const attempts = createFailedAttempts(clock)
  /** Fails as often as it may, from addresses in turn; at most 1,000 times. */
  const fill = (addresses: readonly string[]) => {
    let count = 0
    const free = () => addresses.filter((address) => attempts.blockedMs(address) === 0)
    for (let left = free(); left.length > 0 && count < 1_000; left = free()) {
      attempts.failed(left[count % left.length] as string)
      count++
    }
    return count
  }
  const host = (n: number) => `10.1.1.${n}`
  const hosts = Array.from({ length: 40 }, (_, n) => host(n))
  const wide = Array.from({ length: 150 }, (_, n) => `10.2.${n % 16}.${n}`)
  const v6 = Array.from({ length: 40 }, (_, n) => `2001:db8:5:${n.toString(16)}::1`)
  assert.equal(fill([ADDRESS]), 10)
  assert.ok(attempts.blockedMs(ADDRESS) <= MINUTE_MS)
  assert.equal(fill(hosts), 30)
  assert.equal(attempts.blockedMs('10.1.2.1'), 0, 'the next /24')
  assert.equal(fill(wide), 90)
  assert.equal(fill(v6), 30, 'a /56')
  assert.equal(attempts.blockedMs('2001:db8:5:100::1'), 0, 'the next /56')

  let total = 10
  for (let n = 0; n < 20; n++) {
    await clock.advance(MINUTE_MS)
    total += fill([ADDRESS])
  }
  assert.equal(total, 50)
  assert.ok(attempts.blockedMs(ADDRESS) > 23 * 60 * MINUTE_MS)
  await clock.advance(DAY_MS)
  assert.equal(attempts.blockedMs(ADDRESS), 0)
  assert.equal(fill(['127.0.0.1']), 1_000, 'loopback is exempt')
})

test('wrong keys: refusals take turns of a second; more than ten waiting, or 50 a day, are sent away', async () => {
  const clock = createTestClock()
  const attempts = createFailedAttempts(clock)
  let refused = 0
  const guess = (address = ADDRESS) => {
    attempts.wrongKey(address)
    return attempts.delay(address).then(() => {
      refused++
    })
  }
  for (let n = 0; n < 9; n++) await guess()
  const waiting = Array.from({ length: 10 }, () => guess())
  assert.throws(() => attempts.wrongKey(ADDRESS), TooManyRequests)
  for (let second = 1; second <= 10; second++) {
    await clock.advance(1_000)
    assert.equal(refused, 9 + second)
  }
  await Promise.all(waiting)
  for (let n = 19; n < 50; n++) {
    const refusal = guess()
    await clock.advance(1_000)
    await refusal
  }
  assert.throws(
    () => attempts.wrongKey(ADDRESS),
    (error) => error instanceof TooManyRequests && error.retrySeconds > 23 * 3_600,
  )
  attempts.wrongKey('198.51.100.8')
  await clock.advance(DAY_MS)
  attempts.wrongKey(ADDRESS)
})

test('a login that is tried from everywhere is refused slowly, and shut to nobody', async () => {
  const clock = createTestClock()
  const attempts = createFailedAttempts(clock)
  for (let n = 0; n < 90; n++) attempts.failed(`10.${n}.0.1`, 'App@example.com')
  let refused = false
  const refusal = attempts.delay('203.0.113.1', 'app@example.com').then(() => {
    refused = true
  })
  await clock.advance(4_999)
  assert.equal(refused, false)
  await clock.advance(1)
  await refusal
  assert.equal(attempts.blockedMs('203.0.113.1'), 0)
  await attempts.delay('203.0.113.1', 'other@example.com')
})

test('what is remembered is bounded: the address seen longest ago is forgotten', () => {
  const attempts = createFailedAttempts(createTestClock())
  const addresses = Array.from({ length: 5_001 }, (_, n) => `10.${n >> 8}.${n & 255}.1`)
  for (let n = 0; n < 10; n++) attempts.failed(ADDRESS, 'app@example.com')
  assert.ok(attempts.blockedMs(ADDRESS) > 0)
  for (const address of addresses) attempts.failed(address, `${address}@example.com`)
  assert.equal(attempts.blockedMs(ADDRESS), 0)
})
