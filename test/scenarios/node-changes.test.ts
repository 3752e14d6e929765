/** What is changed on one node is in force on the others when the change is answered. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { post, queueTotals } from '../support/crash-rig.ts'
import { pair } from '../support/node-pair.ts'
import { call, type TestNode } from '../support/nodes.ts'
import { eventually } from '../support/service.ts'

const statusWith = async (node: TestNode, key: string) =>
  (
    await fetch(`${node.url}/v4/domains`, {
      headers: { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` },
    })
  ).status

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
      const before = sink.messages.length
      await call(two, 'POST', `/v3/${domain}/messages`, { from, to, subject: 'T', template: 'greeting' })
      const message = (await sink.waitFor(before + 1))[before]
      return message?.raw.toString() ?? ''
    }
    await eventually('an empty queue', async () => (await queueTotals(two)) === 0)
    assert.match(await send('b@example.org'), /old text/)
    await call(one, 'PUT', `/v3/${domain}/templates/greeting/versions/v1`, { template: 'new text' })
    assert.match(await send('c@example.org'), /new text/)
  })

  await t.test(
    'mail to a provider that is paused on one stays on both, and leaves when the other resumes it',
    async () => {
      await eventually('an empty queue', async () => (await queueTotals(two)) === 0)
      const before = sink.messages.length
      const path = '/sendwright/v1/shaping/relay:default/pause'
      await call(one, 'PUT', path)
      const { id } = (await post(two, { to: 'p@example.org', subject: 'paused', text: 'Hi.' })) as {
        id: string
      }
      const deliveries = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries`
      await eventually('kept', async () => {
        const { items } = (await call(two, 'GET', deliveries)) as { items: { reason: { code: string } }[] }
        return items[0]?.reason.code === 'provider-paused'
      })
      assert.equal(sink.messages.length, before)
      await call(two, 'DELETE', path)
      await sink.waitFor(before + 1)
    },
  )

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
