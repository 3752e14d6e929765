/** What the collector does, and what becomes of the spans. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { createCollector } from '../../../test/support/collector.ts'
import { eventually } from '../../../test/support/service.ts'
import { openTracing, WAITING_MAX } from './open-telemetry.ts'

async function opened(t: TestContext, share = 1) {
  const collector = await createCollector(t)
  const tracing = openTracing({
    url: `${collector.url}/v1/traces`,
    headers: {},
    share,
    instance: 'node-1',
    log: pino({ level: 'silent' }),
    sendEveryMs: 1,
  })
  t.after(() => tracing.close())
  const span = (parent?: string) => {
    const begun = tracing.begin({ name: 'test', kind: 'internal', parent, at: Date.now() })
    begun.end(Date.now(), { long: 'x'.repeat(10_000), left: undefined }, false)
    return begun.traceparent
  }
  return { collector, tracing, span }
}

test('spans that the collector refuses are counted and lost, and later ones are sent', async (t) => {
  const { collector, tracing, span } = await opened(t)
  collector.receiver.answer = 400
  span()
  await eventually('the refusal', async () => tracing.counts().failed === 1)
  collector.receiver.answer = 200
  span()
  await eventually('the next span', async () => tracing.counts().sent === 1)
  const [, sent] = collector.spans()
  assert.equal(String(sent?.attributes['long']).length, 256)
  assert.equal('left' in (sent?.attributes ?? {}), false)
})

test('while the collector does not answer a bounded number of spans waits, and the others are dropped', async (t) => {
  const { collector, tracing, span } = await opened(t)
  const answers: (() => void)[] = []
  collector.receiver.answer = (response) => void answers.push(() => response.end())
  span()
  await eventually('the first post', async () => answers.length === 1)
  const beyond = 100
  for (let n = 0; n < WAITING_MAX + beyond; n++) span()
  assert.equal(tracing.counts().dropped, beyond)
  collector.receiver.answer = 200
  answers[0]?.()
  await eventually('those that waited', async () => tracing.counts().sent === WAITING_MAX + 1)
})

test('a stop sends all that waits', async (t) => {
  const { tracing, span } = await opened(t)
  for (let n = 0; n < WAITING_MAX; n++) span()
  await tracing.close()
  assert.deepEqual(tracing.counts(), { sent: WAITING_MAX, failed: 0, dropped: 0 })
})

test('a share of the traces is sampled, and their children with them', async (t) => {
  const { tracing, span } = await opened(t, 0.5)
  const roots = Array.from({ length: 400 }, () => span())
  const sampled = roots.filter((root) => root.endsWith('-01'))
  assert.ok(sampled.length > 100 && sampled.length < 300, `${sampled.length} of 400`)
  for (const root of roots) {
    const child = span(root)
    assert.deepEqual([child.slice(0, 35), child.slice(-3)], [root.slice(0, 35), root.slice(-3)])
  }
  await tracing.close()
  assert.equal(tracing.counts().sent, 2 * sampled.length)
})
