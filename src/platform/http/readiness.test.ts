import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createReadiness } from './readiness.ts'

/** A store whose `ping` answers when the test says so. */
function createPinged() {
  const waiting: ((works: boolean) => void)[] = []
  const store = { fault: () => null, ping: () => new Promise<boolean>((resolve) => waiting.push(resolve)) }
  return { store, waiting, answer: (works = true) => waiting.shift()?.(works) }
}

test('a storage that worked may take seconds before it is said to hang', async () => {
  const clock = createTestClock()
  const { store, waiting, answer } = createPinged()
  const isReady = createReadiness(store, clock)
  /** After 0.6 s, the longest that a caller waits. */
  const late = async () => {
    const asked = isReady()
    await clock.advance(600)
    return asked
  }
  const hangs = { ready: false, reason: 'The storage does not answer' }
  assert.deepEqual(await late(), hangs, 'not before it has worked once')
  answer()
  await clock.advance(0)
  assert.deepEqual(await late(), { ready: true }, 'by the last answer')
  await clock.advance(3_700)
  assert.deepEqual(await late(), { ready: true })
  await clock.advance(100)
  assert.deepEqual(await late(), hangs)
  assert.equal(waiting.length, 1, 'all have shared one question')
  answer(false)
  await clock.advance(0)
  const asked = isReady()
  answer()
  assert.deepEqual(await asked, { ready: true })
})
