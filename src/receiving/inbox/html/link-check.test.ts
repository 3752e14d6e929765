import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import type { HttpRequest } from '../../../platform/posts/http-client.ts'
import { checkLinks } from './link-check.ts'

test('no call of a check may last longer than what is left of 30 seconds, and all end with its caller', async () => {
  const clock = createTestClock()
  const until = clock.monotonic() + 30_000
  const { signal } = new AbortController()
  const calls: { endsMs: number; signal: AbortSignal | undefined }[] = []
  const client = {
    async send(request: HttpRequest) {
      calls.push({ endsMs: clock.monotonic() + (request.totalMs ?? 0), signal: request.signal })
      clock.leap(700)
      return { kind: 'failed' as const, why: 'no answer', durationMs: 700 }
    },
  }
  const links = Array.from({ length: 40 }, (_, at) => ({
    url: `http://a.example/${at}`,
    kind: 'link' as const,
  }))
  const { items } = await checkLinks({ client, clock, isOwn: () => false }, links, signal)
  assert.equal(items.at(-1)?.reason, 'the time for all links was over')
  assert.ok(calls.length > 30)
  assert.deepEqual(
    calls.filter(({ endsMs }) => endsMs > until),
    [],
  )
  assert.ok(calls.every((call) => call.signal === signal))
})
