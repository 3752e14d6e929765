/** What the nodes of an installation divide among themselves: roles, addresses, limits. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { call, listNodes, type TestNode, testNodes } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
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

async function connected(host: string, port: number): Promise<void> {
  const socket = connect(port, host)
  await once(socket, 'connect').finally(() => socket.destroy())
}

test('roles: one node takes mail in, another sends it at once and posts its webhooks', async (t) => {
  const sink = await sinkOf(t)
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` })
  const api = await nodes.start({ SENDWRIGHT_ROLES: 'api' })
  const sender = await nodes.startSilent(api, { SENDWRIGHT_ROLES: 'delivery,jobs' })
  assert.equal(
    (await fetch(`${sender.url}/v4/domains`, { headers: { authorization: AUTHORIZATION } })).status,
    404,
  )
  await call(api, 'POST', `/v3/domains/${api.domain}/webhooks`, { id: 'delivered', url: receiver.url })
  const ids = await postAll(api, 3, 'user')
  await sink.waitFor(3)
  assert.deepEqual(judge(ids, sink), { lost: [], repeated: [] })
  await eventually('the webhooks', async () => receiver.posts.length === 3)
  const owners = await nodes.query('SELECT DISTINCT owner FROM outgoing_leases')
  assert.ok(!owners.some(({ owner }) => owner === api.id))
  await assert.rejects(connected(api.url.replace('http://', '').replace(':8080', ''), 2525), /ECONNREFUSED/)
})

test('each node sends only from the addresses that it has', async (t) => {
  const sink = await sinkOf(t)
  const nodes = await testNodes(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_LOG_LEVEL: 'info',
  })
  const [first, second] = ['127.0.91.1', '127.0.91.2']
  const one = await nodes.start({ SENDWRIGHT_IPS: `${first}=shared` })
  const two = await nodes.start({ SENDWRIGHT_IPS: `${second}=shared` })
  assert.deepEqual(
    (await listNodes(one)).map(({ addresses }) => addresses),
    [[first], [second]],
  )
  const ids = await postAll(one, 20, 'user')
  for (const id of await postAll(two, 20, 'other')) ids.add(id)
  await sink.waitFor(40)
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)
  assert.deepEqual(judge(ids, sink), { lost: [], repeated: [] })
  const sentBy = (node: TestNode, recipient: string | undefined) =>
    node.output().includes(`"recipient":"${recipient}","state":"delivered"`)
  for (const { envelope, remoteAddress } of sink.messages) {
    const [recipient] = envelope.to
    // Lines of the log are gathered before they are written.
    await eventually(`${recipient} from ${remoteAddress}`, async () =>
      sentBy(remoteAddress === first ? one : two, recipient),
    )
  }
  const used = new Set(sink.messages.map(({ remoteAddress }) => remoteAddress))
  assert.deepEqual([...used].sort(), [first, second])
})

test('nodes that deliver divide the connections to a relay', async (t) => {
  const sink = await sinkOf(t)
  const nodes = await testNodes(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RELAY_CONNECTIONS: '4',
  })
  const one = await nodes.start()
  const two = await nodes.start()
  const held = Promise.withResolvers<void>()
  sink.on('RCPT TO', async () => {
    await held.promise
    return '250 2.1.5 OK'
  })
  const ids = await postAll(one, 12, 'user')
  for (const id of await postAll(two, 12, 'other')) ids.add(id)
  await eventually('four connections', async () => sink.connections.open === 4)
  held.resolve()
  await eventually('an empty queue', async () => (await queueTotals(one)) === 0)
  assert.equal(sink.connections.peak, 4)
  assert.deepEqual(judge(ids, sink), { lost: [], repeated: [] })
})
