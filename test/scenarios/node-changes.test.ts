/** What is changed on one node is in force on the others when the change is answered. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { judge, post, queueTotals } from '../support/crash-rig.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { call, type TestNode, testNodes } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const statusWith = async (node: TestNode, key: string) =>
  (
    await fetch(`${node.url}/v4/domains`, {
      headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
    })
  ).status

async function pair(t: TestContext, more: Record<string, string> = {}, ofOne: Record<string, string> = {}) {
  const sink = await createSink()
  const receiver = await createReceiver()
  t.after(async () => {
    await sink.close()
    await receiver.close()
  })
  const nodes = await testNodes(t, { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...more })
  const one = await nodes.start(ofOne)
  const two = await nodes.start()
  return { sink, receiver, nodes, one, two }
}

test('webhooks, keys, templates and settings that one node changes count on the other at once', async (t) => {
  const { sink, receiver, one, two } = await pair(t)
  const { domain } = one

  await t.test('a webhook gets the next event of the other node', async () => {
    await call(one, 'POST', `/v3/domains/${domain}/webhooks`, { id: 'accepted', url: receiver.url })
    assert.ok('id' in (await post(two, { to: 'a@example.org', subject: 'first', text: 'Hi.' })))
    await eventually('its POST', async () => receiver.posts.length === 1)
  })

  await t.test('a deleted key is refused there', async () => {
    const { key } = (await call(one, 'POST', '/v1/keys', { role: 'admin' })) as {
      key: { id: string; secret: string }
    }
    assert.equal(await statusWith(two, key.secret), 200)
    await call(one, 'DELETE', `/v1/keys/${key.id}`)
    assert.equal(await statusWith(two, key.secret), 401)
  })

  await t.test('a new version of a template is used there', async () => {
    await call(one, 'POST', `/v3/${domain}/templates`, {
      name: 'greeting',
      template: 'old text',
      tag: 'v1',
      active: 'yes',
    })
    const send = async (to: string) => {
      const from = `sender@${domain}`
      await call(two, 'POST', `/v3/${domain}/messages`, { from, to, subject: 'T', template: 'greeting' })
      const [message] = (await sink.waitFor(sink.messages.length + 1)).slice(-1)
      return message?.raw.toString() ?? ''
    }
    await eventually('an empty queue', async () => (await queueTotals(two)) === 0)
    assert.match(await send('b@example.org'), /old text/)
    await call(one, 'PUT', `/v3/${domain}/templates/greeting/versions/v1`, { template: 'new text' })
    assert.match(await send('c@example.org'), /new text/)
  })

  await t.test('a disabled domain is refused there', async () => {
    const fields = { to: 'd@example.org', subject: 'x', text: 'Hi.' }
    assert.ok('id' in (await post(two, fields)))
    const { name } = (
      (await call(one, 'POST', '/v4/domains', { name: 'other.example' })) as { domain: { name: string } }
    ).domain
    const other = { ...two, domain: name }
    assert.deepEqual(await post(other, fields), { status: 403 })
    await call(one, 'DELETE', `/v3/domains/${name}`)
    assert.deepEqual(await post(other, fields), { status: 404 })
  })
})

/** The other node alone holds mail. */
const NOT_SENDING = { SENDWRIGHT_ROLES: 'api,jobs' }

test('actions on the queue reach what the other node holds', async (t) => {
  const { sink, one, two } = await pair(t, { SENDWRIGHT_RELAY_CONNECTIONS: '1' }, NOT_SENDING)
  const held = sink.hold('RCPT TO')
  const ids: string[] = []
  for (let number = 0; number < 6; number++) {
    const answer = await post(two, { to: `user${number}@example.org`, subject: 'held', text: 'Hi.' })
    assert.ok('id' in answer)
    ids.push(answer.id)
  }
  await held.reached
  // Node two holds the other five in memory; node one changes them.
  const act = (action: string) =>
    call(one, 'POST', '/sendwright/v1/queue/actions', undefined, { action, filter: { domain: one.domain } })
  assert.equal((await act('pause'))['changed'], 5)
  held.release()
  await sink.waitFor(1)
  await act('resume')
  await sink.waitFor(6)
  assert.deepEqual(judge(new Set(ids), sink), { lost: [], repeated: [] })
})

test('dropping the queue of a domain drops what the other node holds', async (t) => {
  const { sink, one, two } = await pair(t, { SENDWRIGHT_RELAY_CONNECTIONS: '1' }, NOT_SENDING)
  const held = sink.hold('RCPT TO')
  for (let number = 0; number < 6; number++)
    assert.ok('id' in (await post(two, { to: `user${number}@example.org`, subject: 'held', text: 'Hi.' })))
  await held.reached
  await call(one, 'DELETE', `/v3/${one.domain}/envelopes`)
  held.release()
  await eventually('an empty queue', async () => (await queueTotals(two)) === 0)
  // The attempt in progress, and the one that is prepared while its connection is busy.
  const sent = sink.messages.length
  assert.ok(sent <= 2, `${sent} of 6 were sent`)
  assert.ok('id' in (await post(two, { to: 'later@example.org', subject: 'later', text: 'Hi.' })))
  await sink.waitFor(sent + 1)
  assert.equal(sink.messages.at(-1)?.envelope.to[0], 'later@example.org')
})
