import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { TooManyRequests, TooManyWaiting } from '../../../base/process/errors.ts'
import { createFailedAttempts, createGuessingGuard } from './failed-attempts.ts'

const ADDRESS = '198.51.100.7'
const LOGIN = 'ann@example.com'
const BUDGET = 10

function startGuard(waitingMax?: number) {
  const known = new Set<string>()
  const guard = createGuessingGuard(
    createFailedAttempts(createTestClock()),
    {
      isKnown: async (login, network) => known.has(`${network} ${login}`),
      note: async (login, network) => void known.add(`${network} ${login}`),
    },
    waitingMax,
  )
  const fail = (login = LOGIN, address = ADDRESS) => guard.run(address, login, async () => null)
  return { guard, fail }
}

test('an attempt that waited while its login succeeded is checked by the rules of a known place', async () => {
  const { guard, fail } = startGuard()
  for (let n = 0; n < BUDGET - 1; n++) await fail('other@example.com')
  const first = guard.run(ADDRESS, LOGIN, async () => {
    await guard.succeeded(ADDRESS, LOGIN)
    return 'right'
  })
  const exhausting = fail('other@example.com')
  const waiting = guard.run(ADDRESS, LOGIN, async () => 'right')
  assert.deepEqual(await Promise.all([first, exhausting, waiting]), ['right', null, 'right'])
  await assert.rejects(fail('other@example.com'), TooManyRequests, 'for other logins the budget is used up')
})

test('a login that has failed too often at its known place is not checked there either', async () => {
  const { guard, fail } = startGuard()
  await guard.succeeded(ADDRESS, LOGIN)
  for (let n = 0; n < BUDGET * 20; n++) assert.equal(await fail(), null)
  await assert.rejects(fail(), TooManyRequests)
})

test('over the limit of waiting attempts of a network an attempt is refused, and not counted', async () => {
  const { guard, fail } = startGuard(1)
  const { promise, resolve } = Promise.withResolvers<string>()
  const running = guard.run(ADDRESS, LOGIN, () => promise)
  const waiting = guard.run('198.51.100.8', LOGIN, async () => 'right')
  await assert.rejects(fail(LOGIN, '198.51.100.9'), TooManyWaiting)
  assert.equal(await fail(LOGIN, '203.0.113.1'), null, 'other networks do not wait')
  resolve('right')
  assert.deepEqual(await Promise.all([running, waiting]), ['right', 'right'])
})
