import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock, type TestClock } from '../../../../test/support/clock.ts'
import { createFinalDots, type FinalDot, type FinalDots } from './final-dots.ts'

const CRASH_CARE_MS = 30_000
const UNCOMMITTED_MAX = 8

/** Lets attempts ask for their dot, and remembers in which order they got it. */
function attempts(dots: FinalDots) {
  const sent: number[] = []
  let count = 0
  return {
    sent,
    begin(lane: object): FinalDot {
      const dot = dots.of(lane)
      const number = count++
      void dot.pass().then(() => sent.push(number))
      return dot
    },
  }
}

/** The answer comes after `answerMs`, and the outcome is on disk at once. */
async function serve(clock: TestClock, dot: FinalDot, answerMs: number): Promise<void> {
  await clock.advance(answerMs)
  dot.answered()
  dot.end()
  await clock.advance(0)
}

test('after a crash two messages to quick servers are past the dot, the others follow in turn', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  const lane = {}
  const all = Array.from({ length: 20 }, () => begin(lane))
  await clock.advance(1)
  assert.deepEqual(sent, [0, 1])
  for (const dot of all) await serve(clock, dot, 1)
  assert.deepEqual(sent, [...all.keys()])
})

test('an answered message counts until its outcome is on disk', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  const lane = {}
  const [first] = [begin(lane), begin(lane), begin(lane)]
  await clock.advance(1)
  first?.answered()
  await clock.advance(1)
  assert.deepEqual(sent, [0, 1])
  first?.end()
  await clock.advance(0)
  assert.deepEqual(sent, [0, 1, 2])
})

test('servers that never answer block no others', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  for (let n = 0; n < 100; n++) begin({ dead: n })
  begin({ healthy: true })
  await clock.advance(5_000)
  assert.equal(sent.length, 101)
})

test('a server known to take 200 ms gets many at a time', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  const lane = {}
  for (let n = 0; n < 40; n++) await serve(clock, begin(lane), 200)
  sent.length = 0
  for (let n = 0; n < 30; n++) begin(lane)
  await clock.advance(0)
  assert.equal(sent.length, 30)
})

test('an answer that lay unread while the process was busy does not make its server slow', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  const lane = {}
  for (let n = 0; n < 40; n++) {
    const dot = begin(lane)
    await clock.advance(1)
    // No timer fires meanwhile, and the sockets are polled before those that are due.
    clock.leap(200)
    dot.answered()
    dot.end()
    await clock.advance(0)
  }
  sent.length = 0
  for (let n = 0; n < 50; n++) begin(lane)
  await clock.advance(0)
  assert.equal(sent.length, 2)
})

test('the careful time eases and ends, sooner when nothing was left unsettled', async () => {
  for (const [afterCrash, careMs, atTheEnd] of [
    [true, CRASH_CARE_MS, 8],
    [false, 5_000, 2],
  ] as const) {
    const clock = createTestClock()
    const dots = createFinalDots(clock)
    dots.started(afterCrash)
    await clock.advance(careMs - 1)
    const { sent, begin } = attempts(dots)
    const lane = {}
    const all = Array.from({ length: 20 }, () => begin(lane))
    for (const dot of all.slice(0, atTheEnd)) dot.answered()
    await clock.advance(0)
    assert.equal(sent.length, atTheEnd)
    await clock.advance(20)
    assert.equal(sent.length, 20, 'those that waited go on by themselves')
  }
})

test('while eight outcomes wait for their commit no further dot is sent, careful or not', async () => {
  for (const careful of [true, false]) {
    const clock = createTestClock()
    const dots = createFinalDots(clock)
    if (careful) dots.started(true)
    const { sent, begin } = attempts(dots)
    for (let n = 0; n < UNCOMMITTED_MAX; n++) dots.writing()
    begin({})
    await clock.advance(1_000)
    assert.equal(sent.length, 0)
    dots.written()
    await clock.advance(0)
    assert.equal(sent.length, 1)
  }
})

test('a dot sent again to another host counts once', async () => {
  const clock = createTestClock()
  const dots = createFinalDots(clock)
  dots.started(true)
  const { sent, begin } = attempts(dots)
  const lane = {}
  const dot = begin(lane)
  await clock.advance(1)
  await dot.pass()
  begin(lane)
  await clock.advance(0)
  assert.deepEqual(sent, [0, 1])
})
