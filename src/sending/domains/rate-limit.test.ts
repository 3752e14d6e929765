import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { startTestService } from '../../../test/support/service.ts'

test('the 301st domain operation of an account within a minute is refused with Retry-After', async (t) => {
  // Five more are allowed every second.
  const clock = createTestClock()
  const service = await startTestService(t, { SENDWRIGHT_RATE_LIMIT: '100' }, { clock })
  const first = await service.call('GET', '/v4/domains')
  assert.equal(first.headers.get('x-ratelimit-limit'), '300')
  const answers = await Promise.all(Array.from({ length: 340 }, () => service.call('GET', '/v4/domains')))
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(refused.length, 41, 'with the first')
  assert.ok(answers.every(({ status }) => status === 200 || status === 429))
  const [one] = refused
  assert.deepEqual(Object.keys(one?.body).sort(), ['message', 'retry-seconds'])
  assert.equal(one?.body.message, 'Too Many Requests')
  assert.equal(one?.headers.get('retry-after'), String(one?.body['retry-seconds']))
  assert.ok(Number(one?.headers.get('x-ratelimit-reset')) > 0)
})
