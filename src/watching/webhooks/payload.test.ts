import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { DELIVERED, testMessage } from '../../../test/support/events.ts'
import { shapeFault } from '../../base/shape-check.ts'
import { failedEvent } from '../events/event.ts'
import {
  clickedEvent,
  complainedEvent,
  openedEvent,
  unsubscribedEvent,
  type Visit,
} from '../events/later-events.ts'
import { signBody, signToken, webhookRequest } from './payload.ts'
import { redacted } from './redaction.ts'
import { samplePayload } from './sample.ts'
import { WEBHOOK_POST } from './shapes.ts'
import { typeOfEvent, WEBHOOK_TYPES, type WebhookType } from './types.ts'

const TOKEN = '7c1f0d93ab42e65d08b7a1c9f3e2544d6a80be17d9c2f5a304'
const NOW = 1_780_315_203_417.093

test('the signature is the one of the test vectors', () => {
  // webhooks.md rules 17 and 12.
  const vectors = [
    ['1780315200', '18de98732dc963b1e01a1ccab349fc7c057a83230b08b131d4302d4a2440c725'],
    ['1780315203', 'a50f3d4013a4c13aaf2358beb3b73b1225425ebe4eb2e173971b372d15750b08'],
  ] as const
  for (const [timestamp, signature] of vectors) {
    assert.deepEqual(signToken('key-test', timestamp, TOKEN), { timestamp, token: TOKEN, signature })
  }
})

test('the signature of the body covers timestamp, dot and the bytes', () => {
  const body = Buffer.from('{"ü":1}')
  const expected = createHmac('sha256', 'key-test').update('1780315200.{"ü":1}').digest('hex')
  assert.equal(signBody('key-test', '1780315200', body), expected)
})

const event = {
  accountId: 'a'.repeat(24),
  parentId: null,
  domainName: 'mg.example.com',
  payload: { event: 'delivered', id: 'x' },
}

test('body and headers hold signature, event, account and domain', () => {
  const { body, headers } = webhookRequest(event, { own: 'key-test', parent: null }, 'X-Service-', NOW)
  const document = JSON.parse(body.toString())
  assert.deepEqual(document['event-data'], {
    event: 'delivered',
    id: 'x',
    account: { id: event.accountId },
    domain: { name: 'mg.example.com' },
  })
  assert.equal(document.signature.timestamp, '1780315203')
  assert.deepEqual(document.signature, signToken('key-test', '1780315203', document.signature.token))
  assert.deepEqual(headers, {
    'content-type': 'application/json',
    'X-Service-Webhook-Timestamp': '1780315203',
    'X-Service-Webhook-Signature': `v1=${signBody('key-test', '1780315203', body)}`,
  })
  assert.equal('parent-signature' in document, false)
})

test('events of a subaccount are signed by the parent account too', () => {
  const { body } = webhookRequest(event, { own: 'key-own', parent: 'key-parent' }, 'X-', NOW)
  const document = JSON.parse(body.toString())
  const parent = document['parent-signature']
  assert.deepEqual(parent, signToken('key-parent', '1780315203', parent.token))
  assert.deepEqual(document.signature, signToken('key-own', '1780315203', document.signature.token))
  assert.notEqual(parent.token, document.signature.token)
})

test('no two attempts share a token', () => {
  const tokens = Array.from({ length: 50 }, () => {
    const { body } = webhookRequest(event, { own: 'k', parent: null }, 'X-', NOW)
    return JSON.parse(body.toString()).signature.token as string
  })
  assert.equal(new Set(tokens).size, 50)
  for (const token of tokens) assert.match(token, /^[0-9a-f]{50}$/)
})

test('each event has its type, and those of rule 10 have none', () => {
  for (const name of ['accepted', 'delivered', 'opened', 'clicked', 'unsubscribed', 'complained']) {
    assert.equal(typeOfEvent(name, {}), name)
  }
  assert.equal(typeOfEvent('failed', { severity: 'permanent' }), 'permanent_fail')
  assert.equal(typeOfEvent('failed', { severity: 'temporary' }), 'temporary_fail')
  for (const name of ['rejected', 'stored', 'list_uploaded', 'list_member_uploaded', 'permanent_fail']) {
    assert.equal(typeOfEvent(name, {}), name === 'permanent_fail' ? 'permanent_fail' : null)
  }
})

/** webhooks.md section 3: members that are always present, besides the common ones. */
const FIELDS: Record<WebhookType, string[]> = {
  accepted: ['envelope', 'flags', 'message', 'method', 'storage', 'originating-ip'],
  delivered: [
    'delivery-status',
    'envelope',
    'flags',
    'message',
    'primary-dkim',
    'recipient-provider',
    'storage',
  ],
  permanent_fail: [
    ...['delivery-status', 'envelope', 'flags', 'message', 'primary-dkim', 'recipient-provider', 'storage'],
    ...['severity', 'reason'],
  ],
  temporary_fail: [
    ...['delivery-status', 'envelope', 'flags', 'message', 'primary-dkim', 'recipient-provider', 'storage'],
    ...['severity', 'reason'],
  ],
  opened: ['message', 'ip', 'client-info', 'geolocation', 'delivered-at', 'recipient-provider'],
  clicked: ['message', 'ip', 'client-info', 'geolocation', 'delivered-at', 'recipient-provider', 'url'],
  unsubscribed: ['message', 'ip', 'client-info', 'geolocation', 'recipient-provider'],
  complained: ['message', 'envelope', 'storage', 'recipient-provider'],
}
const COMMON = [
  ...['event', 'id', 'timestamp', 'log-level', 'recipient', 'recipient-domain', 'tags', 'campaigns'],
  'user-variables',
]

for (const type of WEBHOOK_TYPES) {
  test(`the sample of ${type} has the members of its type, of their JSON types`, () => {
    const payload = samplePayload(type, 'mg.example.com', 'https://storage.example.net', NOW)
    assert.deepEqual(Object.keys(payload).sort(), [...COMMON, ...FIELDS[type]].sort())
    assert.equal(typeOfEvent(String(payload['event']), payload), type)
    assert.match(String(payload['id']), /^[-\w]{22}$/)
    assert.equal(payload['timestamp'], 1_780_315_203.417093)
    assert.ok(Array.isArray(payload['tags']) && Array.isArray(payload['campaigns']))
    assert.equal(typeof payload['user-variables'], 'object')
    const status = payload['delivery-status'] as Record<string, unknown> | undefined
    assert.equal(status !== undefined, ['delivered', 'permanent_fail', 'temporary_fail'].includes(type))
    if (type === 'permanent_fail') assert.equal(status?.['bounce-type'], 'hard')
    if (type === 'temporary_fail') assert.equal(status?.['retry-seconds'], 600)
    const visit = ['opened', 'clicked', 'unsubscribed'].includes(type)
    const { headers } = payload['message'] as { headers: object }
    assert.equal(Object.keys(headers).length, visit ? 1 : 4)
  })
}

const VISIT: Visit = {
  ip: '192.0.2.44',
  client: {
    'client-name': 'Firefox',
    'client-os': 'Linux',
    'client-type': 'browser',
    'device-type': 'desktop',
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    bot: '',
  },
  geolocation: { country: 'DE', region: 'BE', city: 'Berlin', timezone: 'Europe/Berlin' },
  recipientProvider: 'Gmail',
  deliveredAt: NOW - 5_000,
}

const about = testMessage({ tags: ['bulk-email'], userVariables: { 'email-id': '6f1c' } })
const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }

const LATE = {
  ...DELIVERED,
  severity: 'permanent' as const,
  reason: 'generic',
  delayedBounce: true,
  status: { ...DELIVERED.status, code: 550, message: '5.1.1 no such user', 'enhanced-code': '5.1.1' },
}

for (const [name, { payload }] of Object.entries({
  opened: openedEvent(about, to, VISIT, NOW),
  clicked: clickedEvent(about, to, { ...VISIT, url: 'https://shop.example.com/a' }, NOW),
  unsubscribed: unsubscribedEvent(about, to, VISIT, NOW),
  complained: complainedEvent(about, to, { recipientProvider: 'Gmail', sendingIp: '203.0.113.9' }, NOW),
  failed: failedEvent(about, to, LATE, NOW),
})) {
  test(`the webhook of ${name} has what the common receivers read`, () => {
    const event = { accountId: about.accountId, parentId: null, domainName: about.domainName, payload }
    const { body } = webhookRequest(event, { own: 'k', parent: null }, 'X-', NOW)
    const data = JSON.parse(body.toString())['event-data']
    // A newsletter product counts by id, user variable or message id, and expects the time in seconds.
    assert.match(data.id, /^[-\w]{22}$/)
    assert.equal(data.event, name)
    assert.equal(data.recipient, 'alice@example.org')
    assert.equal(data['user-variables']['email-id'], '6f1c')
    assert.equal(data.message.headers['message-id'], about.messageId)
    assert.equal(new Date(data.timestamp * 1000).getUTCFullYear(), new Date(NOW).getUTCFullYear())
    assert.ok(data.tags.every((tag: unknown) => typeof tag === 'string'))
    // A mail framework classifies failures by severity and reason, and shows the server's reply; a newsletter product
    // unsubscribes an address permanently by severity and code.
    assert.equal(data.severity, name === 'failed' ? 'permanent' : undefined)
    if (name === 'failed') {
      const { code, message, 'enhanced-code': enhanced } = data['delivery-status']
      assert.deepEqual([data.reason, code, message], ['generic', 550, '5.1.1 no such user'])
      assert.equal(enhanced, '5.1.1')
    }
    // Of visits it reads the client, and of clicks only the URL.
    const isVisit = ['opened', 'clicked', 'unsubscribed'].includes(name)
    assert.equal(data['client-info']?.['user-agent'], isVisit ? VISIT.client['user-agent'] : undefined)
    assert.equal(data.url, name === 'clicked' ? 'https://shop.example.com/a' : undefined)
    assert.equal('delivered-at' in data, isVisit && name !== 'unsubscribed')
    if (isVisit) assert.deepEqual(Object.keys(data.geolocation), ['country', 'region', 'city', 'timezone'])
  })
}

test('what is posted about each type has the described shape, also without personal data', () => {
  const keys = { own: 'key-test', parent: 'key-parent' }
  for (const type of WEBHOOK_TYPES) {
    const sample = samplePayload(type, 'mg.example.com', 'https://mail.example.com', NOW)
    for (const payload of [sample, redacted(sample)]) {
      const { body } = webhookRequest({ ...event, parentId: 'p', payload }, keys, 'X-Service-', NOW)
      assert.equal(shapeFault(WEBHOOK_POST, JSON.parse(body.toString())), null, type)
    }
  }
  const { signature } = JSON.parse(webhookRequest(event, keys, 'X-Service-', NOW).body.toString()) as {
    signature: unknown
  }
  const unknown = { signature, 'event-data': { event: 'delivered', id: 'x' } }
  assert.equal(shapeFault(WEBHOOK_POST, unknown)?.path.startsWith('event-data'), true)
})
