import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../test/support/clock.ts'
import { createFailedAttempts } from '../http/failed-attempts.ts'
import { createLoginDelay } from './login-delay.ts'

test('a failed login waits a second; the tenth within a minute, over HTTP or SMTP, a second more', async () => {
  const clock = createTestClock()
  const attempts = createFailedAttempts(clock)
  const delay = createLoginDelay(clock, attempts)
  const secondsOf = async () => {
    let done = false
    const waiting = delay('192.0.2.1').then(() => {
      done = true
    })
    let seconds = 0
    while (!done) {
      await clock.advance(1_000)
      seconds++
    }
    await waiting
    return seconds
  }
  assert.equal(await secondsOf(), 1)
  for (let count = 0; count < 8; count++) attempts.failed('192.0.2.1')
  assert.equal(await secondsOf(), 2)
})
