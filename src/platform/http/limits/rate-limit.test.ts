import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../../test/support/http-server.ts'
import { answerTo } from '../answer/errors.ts'
import { createRateLimiter, DEFAULT_LIMITS, limitExceeded, rateLimitHeaders } from './rate-limit.ts'

test('a full bucket grants its count, refuses without taking, and refills evenly', () => {
  const clock = new ManualClock()
  const limiter = createRateLimiter({ clock })
  for (let used = 1; used <= 100; used += 1) {
    assert.equal(limiter.take('sending', 'a')?.remaining, 100 - used)
  }
  const refused = limiter.take('sending', 'a')
  assert.equal(refused?.allowed, false)
  assert.equal(refused?.retrySeconds, 1)
  assert.equal(limiter.take('sending', 'b')?.allowed, true, 'another account has its own bucket')
  clock.advance(50)
  for (let used = 0; used < 5; used += 1) assert.equal(limiter.take('sending', 'a')?.allowed, true)
  assert.equal(limiter.take('sending', 'a')?.allowed, false)
})

test('a cost above the bucket passes when it is full and is paid off', () => {
  const clock = new ManualClock()
  const limits = { ...DEFAULT_LIMITS, 'sending-recipients': { count: 60, windowMs: 60_000 } }
  const limiter = createRateLimiter({ clock, limits })
  assert.equal(limiter.take('sending-recipients', 'a', 90)?.allowed, true)
  clock.advance(30_000)
  assert.deepEqual(limiter.take('sending-recipients', 'a'), {
    allowed: false,
    limit: 60,
    remaining: 0,
    resetAt: (clock.now() + 1000) / 1000,
    retrySeconds: 1,
  })
  clock.advance(1_000)
  assert.equal(limiter.take('sending-recipients', 'a')?.allowed, true)
})

test('a count of 0, the general switch and a setting of one account are obeyed', () => {
  const clock = new ManualClock()
  assert.equal(createRateLimiter({ clock }).take('sending-bytes', 'a', 1e9), undefined)
  assert.equal(createRateLimiter({ clock, off: true }).take('sending', 'a'), undefined)
  const limiter = createRateLimiter({
    clock,
    countOf: (limit, subject) => (limit === 'lists' && subject === 'small' ? 1 : undefined),
  })
  assert.equal(limiter.take('lists', 'small')?.allowed, true)
  assert.equal(limiter.take('lists', 'small')?.allowed, false)
  assert.equal(limiter.take('lists', 'large')?.remaining, 299)
})

test('the clock of the wall may jump: only elapsed time refills', () => {
  const clock = new ManualClock()
  let stepMs = 0
  const limiter = createRateLimiter({
    clock: {
      now: () => clock.now() + stepMs,
      monotonic: () => clock.monotonic(),
      setTimer: (delayMs, run) => clock.setTimer(delayMs, run),
    },
    limits: { ...DEFAULT_LIMITS, lists: { count: 1, windowMs: 60_000 } },
  })
  assert.equal(limiter.take('lists', 'a')?.allowed, true)
  stepMs = 3_600_000
  assert.equal(limiter.take('lists', 'a')?.allowed, false)
  stepMs = -3_600_000
  assert.equal(limiter.take('lists', 'a')?.retrySeconds, 60)
})

test('headers tell limit, whole tokens left and Unix seconds', () => {
  const grant = createRateLimiter({ clock: new ManualClock(1_780_315_200_000) }).take('domains', 'a')
  assert.deepEqual(rateLimitHeaders(grant!), {
    'x-ratelimit-limit': '300',
    'x-ratelimit-remaining': '299',
    'x-ratelimit-reset': '1780315201',
  })
})

test('refusals have the form of their limit', () => {
  const send = (why: string) =>
    `Domain mail.example.com is not allowed to send: ${why} limit exceeded, try again after 120 seconds`
  const cases = [
    ['sending', { message: send('account-requests-per-sec') }],
    ['sending-recipients', { message: send('recipient') }],
    ['sending-bytes', { message: send('bytes') }],
    ['domains', { message: 'Too Many Requests', 'retry-seconds': 120 }],
    ['domain-verify', { message: 'Too Many Requests', 'retry-seconds': 120 }],
    ['lists', { message: 'Too Many Requests' }],
    ['analytics', { message: 'Too Many Requests' }],
    ['default', { message: 'Too Many Requests' }],
  ] as const
  for (const [limit, body] of cases) {
    assert.deepEqual(answerTo(limitExceeded(limit, 120, 'mail.example.com'), 0).body, body)
  }
})
