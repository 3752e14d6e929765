/** A resolver that is slower than our patience delays the mail that waits for it, and no other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { createInternet } from '../support/internet.ts'
import { eventually, startTestService } from '../support/service.ts'

/** How far the clock goes with each look. */
const STEP_MS = 100

test('mail leaves though each answer of DNS comes only after the query was repeated', async (t) => {
  const internet = await createInternet(t)
  const clock = createTestClock()
  const slow = await internet.site(['slow.example'])
  const prompt = await internet.site(['prompt.example'])
  for (const name of ['slow.example', 'mx.slow.example', '_mta-sts.slow.example'])
    internet.dns.misbehave(name, 'late')
  const service = await startTestService(t, internet.env, { clock })
  await service.send({ to: 'user@slow.example' })
  await service.send({ to: 'user@prompt.example' })
  await prompt.waitFor(1)
  assert.equal(slow.messages.length, 0)
  await eventually('the message to the slow domain', async () => {
    await clock.advance(STEP_MS)
    return slow.messages.length === 1
  })
  const events = await service.events()
  assert.ok(!events.some(({ event }) => event === 'failed'))
})
