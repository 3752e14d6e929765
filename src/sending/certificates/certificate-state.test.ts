import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  nextOrderAt,
  ORDERS_PER_HOUR_MAX,
  recordOrder,
  renewAt,
  retryAt,
  statusOf,
} from './certificate-state.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const NOW = Date.UTC(2026, 10, 21)

test('the state follows from the pending request, the certificate and its expiry', () => {
  const table = [
    [1, null, null, 'processing'],
    [1, 'PEM', NOW - 1, 'processing'],
    [0, null, null, 'error'],
    [0, 'PEM', NOW + 1, 'active'],
    [0, 'PEM', NOW, 'expired'],
  ] as const
  for (const [requested, chain, expires_at, status] of table)
    assert.equal(statusOf({ requested, chain, expires_at }, NOW), status)
})

test('renewal: 30 days before the end, a third of shorter lives, spread by a day', () => {
  const lead = (days: number, random: number) =>
    (NOW + days * DAY_MS - renewAt(NOW, NOW + days * DAY_MS, random)) / DAY_MS
  assert.equal(lead(90, 0), 30)
  assert.equal(lead(365, 0), 30)
  assert.equal(lead(45, 0), 15)
  assert.equal(lead(6, 0), 2)
  assert.ok(lead(90, 0.999) > 29 && lead(90, 0.999) < 30)
})

test('attempts after failures: from ten minutes to a day, jittered, and never before Retry-After', () => {
  const bare = { chain: null, expires_at: null }
  const wait = (attempts: number, random = 0.5, retryAfterMs = 0) =>
    ((retryAt(bare, { attempts, retryAfterMs, now: NOW, random }) ?? Number.NaN) - NOW) / MINUTE_MS
  assert.deepEqual(
    [1, 2, 3, 4, 9].map((attempts) => wait(attempts)),
    [10, 20, 40, 80, 1440],
  )
  assert.equal(wait(1, 0), 8)
  assert.ok(wait(1, 0.999) > 11.9 && wait(1, 0.999) < 12)
  assert.equal(wait(1, 0, HOUR_MS), 60)
  assert.ok(wait(1, 0.999, HOUR_MS) > 60)
  assert.equal(wait(1, 0, 365 * DAY_MS), 7 * 24 * 60, 'a mistake of theirs is bounded')
})

test('a first order is abandoned after ten failures, a renewal 30 days after expiry', () => {
  const failure = { retryAfterMs: 0, now: NOW, random: 0 }
  assert.equal(retryAt({ chain: null, expires_at: null }, { ...failure, attempts: 10 }), null)
  assert.notEqual(retryAt({ chain: 'PEM', expires_at: NOW - DAY_MS }, { ...failure, attempts: 99 }), null)
  assert.equal(retryAt({ chain: 'PEM', expires_at: NOW - 31 * DAY_MS }, { ...failure, attempts: 1 }), null)
})

test('the number of orders in any hour is limited', () => {
  let times: readonly number[] = []
  for (let order = 0; order < ORDERS_PER_HOUR_MAX; order++)
    times = recordOrder(times, NOW + order * MINUTE_MS) ?? assert.fail()
  assert.equal(recordOrder(times, NOW + 59 * MINUTE_MS), null)
  assert.equal(nextOrderAt(times, NOW + 59 * MINUTE_MS), NOW + HOUR_MS)
  assert.equal(recordOrder(times, NOW + HOUR_MS)?.length, ORDERS_PER_HOUR_MAX)
})
