import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createSteadyClock } from './clock.ts'

test('a stepped system clock changes nothing and is told once', async () => {
  const system = createTestClock()
  const steps: number[] = []
  const clock = createSteadyClock(
    system,
    () => system.monotonic(),
    (ahead) => steps.push(ahead),
  )
  const start = clock.now()
  for (const step of [3_600_000, -7_200_000, 365 * 86_400_000]) {
    system.stepWall(step)
    await system.advance(2_000)
    clock.now()
  }
  assert.equal(clock.now() - start, 6_000)
  assert.deepEqual(steps, [3_600_000, -3_600_000, 365 * 86_400_000 - 3_600_000])
})

test('time that the machine slept counts', async () => {
  const system = createTestClock()
  let slept = 0
  const clock = createSteadyClock(
    system,
    () => system.monotonic() + slept,
    () => assert.fail('no step'),
  )
  const start = clock.now()
  slept = 3_600_000
  system.stepWall(3_600_000)
  await system.advance(1_500)
  assert.equal(clock.now() - start, 3_601_500)
})
