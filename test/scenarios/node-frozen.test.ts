/** A process on PostgreSQL that stands still for longer than it may be silent, and wakes up. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { listNodes, type TestNode, testNodes } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

async function sinkOf(t: TestContext): Promise<Sink> {
  const sink = await createSink()
  t.after(() => sink.close())
  return sink
}

/** Posts messages and resolves to their Message-Ids. */
async function postAll(node: TestNode, count: number, prefix: string): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let number = 0; number < count; number++) {
    const answer = await post(node, { to: `${prefix}${number}@example.org`, subject: prefix, text: 'Hi.' })
    assert.ok('id' in answer, JSON.stringify(answer))
    ids.add(answer.id)
  }
  return ids
}

/** As if they had just been renewed: only the death of their owner can return them. */
const HOLD_LEASES = `UPDATE deliveries SET lease_until = time_from_now(3600000) WHERE state = 'sending'`

test('a frozen node loses its writes and hands over nothing more; one message per connection may be repeated', async (t) => {
  const sink = await sinkOf(t)
  const nodes = await testNodes(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: '2',
  })
  const frozen = await nodes.start()
  const handedOver = sink.hold('DATA-DOT')
  const ids = await postAll(frozen, 1, 'first')
  await handedOver.reached
  const begun = sink.hold('MAIL FROM')
  for (const id of await postAll(frozen, 7, 'user')) ids.add(id)
  await begun.reached
  const other = await nodes.start()
  await nodes.query(HOLD_LEASES)
  frozen.child.kill('SIGSTOP')
  await eventually('everything delivered', async () => (await queueTotals(other)) === 0)
  handedOver.release()
  begun.release()
  frozen.child.kill('SIGCONT')
  await eventually('two nodes', async () => (await listNodes(other)).length === 2)
  for (const id of await postAll(frozen, 1, 'later')) ids.add(id)
  await eventually('the later one delivered', async () => (await queueTotals(frozen)) === 0)
  await eventually('the refusal', async () => /outcome refused/.test(frozen.output()))
  const { lost, repeated } = judge(ids, sink)
  assert.deepEqual(lost, [])
  assert.equal(repeated.length, 1)
  await eventually('the line about it', async () =>
    frozen.output().includes('other nodes took this one for dead'),
  )
  const [row] = await nodes.query(`SELECT count(*) AS count FROM events WHERE event = 'delivered'`)
  assert.equal(Number(row?.['count']), ids.size)
})
