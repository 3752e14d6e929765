import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createYielding, pauseShare } from './yielding.ts'

test('pauses are as long as the share of others, within bounds', () => {
  const table = [
    [0, 0.1],
    [0.5, 1],
    [0.6, 1.5],
    [1, 2],
  ] as const
  for (const [busy, share] of table) assert.ok(Math.abs(pauseShare(busy) - share) < 1e-9, `${busy}`)
})

test('what others do in the pauses decides how long the next ones are', async () => {
  const clock = createTestClock(0)
  const signal = new AbortController().signal
  const others = { active: 0, idle: 0 }
  const yielding = createYielding(clock, () => ({ ...others }))
  /** Works for 20 ms until it has paused; the time that it paused, with others busy for the share `busy` of it. */
  async function pausedMs(busy: number): Promise<number> {
    const begunAt = clock.now()
    let isOver = false
    const ends = yielding.after(20, signal).then(() => {
      isOver = true
    })
    await Promise.resolve()
    while (!isOver) {
      others.active += busy
      others.idle += 1 - busy
      await clock.advance(1)
    }
    await ends
    return clock.now() - begunAt
  }
  assert.equal(await pausedMs(1), 20, 'nothing is known before the first')
  for (let no = 0; no < 30; no++) await pausedMs(1)
  assert.equal(await pausedMs(1), 40)
  for (let no = 0; no < 60; no++) await pausedMs(0)
  assert.ok((await pausedMs(0)) <= 6, 'alone it is put together until it is worth a timer')
})
