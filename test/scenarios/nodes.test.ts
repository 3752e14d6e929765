/** Processes on one PostgreSQL: each knows the others, and what a dead one held goes to them. */
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

test('nodes list each other with their roles, and one that stops leaves the list', async (t) => {
  const nodes = await testNodes(t)
  const one = await nodes.start()
  const two = await nodes.start({ SENDWRIGHT_ROLES: 'api, jobs' })
  const listed = await listNodes(one)
  assert.deepEqual(
    listed.map(({ id, answers, roles, state }) => ({ id, answers, roles, state })),
    [
      { id: one.id, answers: true, roles: ['api', 'smtp', 'delivery', 'jobs'], state: 'running' },
      { id: two.id, answers: false, roles: ['api', 'jobs'], state: 'running' },
    ],
  )
  assert.equal(await two.end('SIGTERM'), 0)
  assert.deepEqual(
    (await listNodes(one)).map(({ id }) => id),
    [one.id],
  )
})

test('what a killed node held is delivered by another one, whatever its leases say', async (t) => {
  const sink = await sinkOf(t)
  const nodes = await testNodes(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: '1',
  })
  const killed = await nodes.start()
  const held = sink.hold('DATA-DOT')
  const ids = await postAll(killed, 5, 'user')
  await held.reached
  const other = await nodes.start()
  await nodes.query(HOLD_LEASES)
  await killed.end('SIGKILL')
  held.release()
  await eventually('everything delivered', async () => (await queueTotals(other)) === 0)
  assert.deepEqual(judge(ids, sink), { lost: [], repeated: [] })
  assert.deepEqual(
    (await listNodes(other)).map(({ id }) => id),
    [other.id],
  )
  await eventually('the line about it', async () => other.output().includes('a node is dead'))
})
