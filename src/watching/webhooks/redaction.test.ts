import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { redacted } from './redaction.ts'
import { samplePayload } from './sample.ts'
import { WEBHOOK_TYPES } from './types.ts'

const PERSONAL = /alice|Alice|Sample|sample@|my-variable|198\.51\.100/

test('no type of event keeps personal data, and ids and labels stay', () => {
  for (const type of WEBHOOK_TYPES) {
    const payload: Record<string, unknown> = {
      ...samplePayload(type, 'mg.example.com', 'https://mail.example.com', 1_780_315_200_000),
      'originating-ip': '198.51.100.7',
      unknown: 'alice',
    }
    const text = JSON.stringify(payload)
    assert.match(text, PERSONAL)
    const kept = redacted(payload)
    const { storage, tags, ...rest } = kept
    assert.doesNotMatch(JSON.stringify(rest), PERSONAL, type)
    assert.deepEqual([kept['event'], kept['id'], tags], [payload['event'], payload['id'], payload['tags']])
    assert.deepEqual([kept['recipient'], kept['recipient-domain']], ['REDACTED', 'example.com'])
    assert.deepEqual(storage, payload['storage'])
    assert.deepEqual(kept['user-variables'], {})
  }
})

test('a server that repeats the address, and members of odd types', () => {
  const status = { code: 550, message: '550 <alice@example.org>: no such user alice@example.org', tls: true }
  assert.deepEqual(redacted({ 'delivery-status': status, message: 'alice', envelope: null }), {
    'delivery-status': { code: 550, message: '550 <REDACTED>: no such user REDACTED', tls: true },
    message: {},
    envelope: {},
  })
  assert.deepEqual(
    redacted({ message: { headers: { to: 'a', 'message-id': 'x@y' }, recipients: ['a', 'b'] } }),
    {
      message: { headers: { to: 'REDACTED', 'message-id': 'x@y' }, recipients: ['REDACTED'] },
    },
  )
})

test('webhooks of an account with the feature are redacted, others are not', async (t) => {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const service = await startTestService(t, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' })
  const feature = (form: Record<string, string>) => service.call('PUT', '/v5/accounts/features', { form })
  const webhook = { id: 'accepted', url: receiver.url }
  await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form: webhook })
  const next = async () => {
    const sent = await service.send({})
    assert.equal(sent.status, 200, sent.text)
    const posts = await eventually(
      'the webhook',
      async () => receiver.posts.length > 0 && receiver.posts.splice(0),
    )
    return posts[0]?.body['event-data']
  }
  assert.equal((await next()).recipient, 'alice@example.org')
  const on = await feature({ webhooks_redact_pii: '{"enabled": true}' })
  assert.deepEqual([on.status, on.body], [200, { success: true }])
  const event = await next()
  assert.deepEqual([event.recipient, event.message.headers.subject], ['REDACTED', 'REDACTED'])
  assert.equal(event.domain.name, service.domain)
  const [{ recipient } = {}] = await service.events('?event=accepted&limit=1')
  assert.equal(recipient, 'alice@example.org', 'the stored event is whole')
  // The other feature does not touch it.
  await feature({ ai_insights: '{"enabled": false}' })
  assert.equal((await next()).recipient, 'REDACTED')
  const json = { webhooks_redact_pii: { enabled: false } }
  assert.equal((await service.call('PUT', '/v5/accounts/features', { json })).status, 200)
  assert.equal((await next()).recipient, 'alice@example.org')
  for (const value of [
    'true',
    '{}',
    '{"enabled": "yes"}',
    '{',
    '[]',
    `{"enabled": true, "x": "${'x'.repeat(256)}"}`,
  ])
    assert.equal((await feature({ webhooks_redact_pii: value })).status, 400, value)
  const none = await feature({ other: '{"enabled": true}' })
  assert.deepEqual([none.status, none.body], [400, { message: 'No valid updates provided' }])
})
