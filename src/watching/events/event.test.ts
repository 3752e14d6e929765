import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELIVERED, eventStatement, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { ID_PATTERN } from '../../base/ids.ts'
import {
  acceptedEvent,
  deliveredEvent,
  EVENT_NAMES,
  type EventRecord,
  failedEvent,
  recipientHash,
  rejectedEvent,
} from './event.ts'
import {
  clickedEvent,
  complainedEvent,
  listMemberUploadErrorEvent,
  listMemberUploadedEvent,
  listUploadedEvent,
  openedEvent,
  storedEvent,
  unsubscribedEvent,
} from './later-events.ts'

const TO = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
const NOW = NOW_MS + 104.511

const HEAD = (event: string, level: string) => ({ event, timestamp: 1780315200.104511, 'log-level': level })
const LABELS = { tags: ['welcome'], campaigns: [], 'user-variables': { order: '17' } }
const RECIPIENT = { recipient: 'alice@example.org', 'recipient-domain': 'example.org' }
const PROVIDER = { 'recipient-provider': 'Gmail' }
const MESSAGE_ID = '20260601120000.4be1a07c@mg.example.com'
const MESSAGE = {
  headers: {
    to: 'Alice <alice@example.org>',
    from: 'Shop <shop@mg.example.com>',
    subject: 'Welcome',
    'message-id': MESSAGE_ID,
  },
  attachments: [],
  size: 1204,
}
const STORAGE = {
  storage: {
    key: 'key-1',
    url: 'https://api.example.net/v3/domains/mg.example.com/messages/key-1',
    region: 'default',
    env: 'production',
  },
}
const ENVELOPE = { sender: 'shop@mg.example.com', targets: 'alice@example.org', transport: 'smtp' }
const FLAGS = {
  'is-authenticated': true,
  'is-routed': false,
  'is-big': false,
  'is-system-test': false,
  'is-test-mode': false,
}

/** The payload without its id, which is checked here. */
function shapeOf(event: EventRecord): Record<string, unknown> {
  const { id, ...rest } = event.payload
  assert.match(String(id), ID_PATTERN)
  assert.equal(event.id, id)
  assert.equal(event.event, rest['event'])
  assert.equal(event.timestampUs, 1_780_315_200_104_511)
  assert.ok(EVENT_NAMES.includes(event.event))
  return rest
}

test('accepted', () => {
  assert.deepEqual(shapeOf(acceptedEvent(testMessage(), TO, NOW, null)), {
    ...HEAD('accepted', 'info'),
    ...LABELS,
    ...RECIPIENT,
    ...STORAGE,
    message: { ...MESSAGE, recipients: ['alice@example.org'] },
    envelope: ENVELOPE,
    method: 'http',
    flags: { 'is-authenticated': true, 'is-test-mode': false },
    'originating-ip': '198.51.100.7',
    'api-key-id': '1f0c2d3e-5a6b7c8d',
  })
})

test('accepted with everything that may be known', () => {
  const template = { name: 'welcome', version: 'v2', isText: true }
  const mailingList = { address: 'devs@mg.example.com', 'list-id': 'devs.mg.example.com', sid: 's1' }
  const message = testMessage({
    template,
    mailingList,
    batchId: 'batch-1',
    deliverBy: NOW_MS + 500,
    routes: [{ expression: 'catch_all()' }],
    keyId: null,
    originatingIp: null,
  })
  assert.deepEqual(shapeOf(acceptedEvent(message, TO, NOW, NOW_MS + 3_600_999)), {
    ...HEAD('accepted', 'info'),
    ...LABELS,
    ...RECIPIENT,
    ...STORAGE,
    message: { ...MESSAGE, recipients: ['alice@example.org'], 'scheduled-for': 1780318800 },
    envelope: ENVELOPE,
    method: 'http',
    flags: { 'is-authenticated': true, 'is-test-mode': false },
    template: { name: 'welcome', version: 'v2', 'is-text': true },
    'mailing-list': mailingList,
    batch: { id: 'batch-1' },
    'deliver-by': 1780315200.5,
    routes: [{ expression: 'catch_all()' }],
  })
})

test('delivered', () => {
  assert.deepEqual(shapeOf(deliveredEvent(testMessage(), TO, DELIVERED, NOW)), {
    ...HEAD('delivered', 'info'),
    ...LABELS,
    ...RECIPIENT,
    ...PROVIDER,
    ...STORAGE,
    message: MESSAGE,
    envelope: { ...ENVELOPE, 'sending-ip': '203.0.113.9' },
    flags: FLAGS,
    'delivery-status': DELIVERED.status,
    'primary-dkim': 'k1._domainkey.mg.example.com',
  })
})

test('failed for now and for good, and by a late bounce', () => {
  const failure = {
    ...DELIVERED,
    sendingIp: null,
    primaryDkim: null,
    severity: 'temporary' as const,
    reason: 'greylisted',
  }
  const common = {
    ...LABELS,
    ...RECIPIENT,
    ...PROVIDER,
    ...STORAGE,
    message: MESSAGE,
    envelope: ENVELOPE,
    'delivery-status': DELIVERED.status,
  }
  assert.deepEqual(shapeOf(failedEvent(testMessage(), TO, failure, NOW)), {
    ...HEAD('failed', 'warn'),
    ...common,
    severity: 'temporary',
    reason: 'greylisted',
    flags: FLAGS,
  })
  const late = { ...failure, severity: 'permanent' as const, reason: 'generic', delayedBounce: true }
  assert.deepEqual(shapeOf(failedEvent(testMessage(), TO, late, NOW)), {
    ...HEAD('failed', 'error'),
    ...common,
    severity: 'permanent',
    reason: 'generic',
    flags: { ...FLAGS, 'is-delayed-bounce': true },
  })
})

test('rejected names no recipient and no template', () => {
  const message = testMessage({ template: { name: 'a', version: 'b', isText: false } })
  const event = rejectedEvent(message, 'Sandbox subdomains are for test purposes only.', '', NOW)
  assert.equal(event.recipient, null)
  assert.deepEqual(shapeOf(event), {
    ...HEAD('rejected', 'warn'),
    ...LABELS,
    ...STORAGE,
    message: MESSAGE,
    reject: { reason: 'Sandbox subdomains are for test purposes only.', description: '' },
    flags: { 'is-test-mode': false },
  })
})

const VISIT = {
  ip: '192.0.2.44',
  client: {
    'client-name': 'Firefox',
    'client-os': 'Linux',
    'client-type': 'browser',
    'device-type': 'desktop',
    'user-agent': 'Mozilla/5.0',
    bot: '',
  },
  geolocation: { country: 'DE', region: 'BE', city: 'Berlin', timezone: 'Europe/Berlin' },
  recipientProvider: 'Gmail',
  deliveredAt: NOW_MS + 3000,
}
const VISITED = {
  ...LABELS,
  ...RECIPIENT,
  ...PROVIDER,
  message: { headers: { 'message-id': MESSAGE_ID } },
  ip: VISIT.ip,
  'client-info': VISIT.client,
  geolocation: VISIT.geolocation,
}

test('opened, clicked and unsubscribed', () => {
  assert.deepEqual(shapeOf(openedEvent(testMessage(), TO, VISIT, NOW)), {
    ...HEAD('opened', 'info'),
    ...VISITED,
    'delivered-at': 1780315203,
  })
  const unknown = { ...VISIT, deliveredAt: null }
  assert.deepEqual(shapeOf(openedEvent(testMessage(), TO, unknown, NOW)), {
    ...HEAD('opened', 'info'),
    ...VISITED,
  })
  const click = { ...VISIT, url: 'https://shop.example.com/a?x=1' }
  assert.deepEqual(shapeOf(clickedEvent(testMessage(), TO, click, NOW)), {
    ...HEAD('clicked', 'info'),
    ...VISITED,
    'delivered-at': 1780315203,
    url: 'https://shop.example.com/a?x=1',
  })
  assert.deepEqual(shapeOf(unsubscribedEvent(testMessage(), TO, VISIT, NOW)), {
    ...HEAD('unsubscribed', 'info'),
    ...VISITED,
  })
})

test('complained', () => {
  const facts = { recipientProvider: 'Gmail', sendingIp: '203.0.113.9' }
  const common = {
    ...HEAD('complained', 'warn'),
    ...LABELS,
    ...RECIPIENT,
    ...PROVIDER,
    ...STORAGE,
    message: MESSAGE,
  }
  assert.deepEqual(shapeOf(complainedEvent(testMessage(), TO, facts, NOW)), {
    ...common,
    envelope: { 'sending-ip': '203.0.113.9' },
  })
  assert.deepEqual(shapeOf(complainedEvent(testMessage(), TO, { ...facts, sendingIp: null }, NOW)), common)
})

test('stored', () => {
  assert.deepEqual(shapeOf(storedEvent(testMessage(), NOW)), {
    ...HEAD('stored', 'info'),
    ...LABELS,
    ...STORAGE,
    message: { ...MESSAGE, recipients: ['alice@example.org'] },
    flags: { 'is-test-mode': false },
  })
})

test('the events of a mailing list upload', () => {
  const upload = {
    accountId: 'account-1',
    domainName: 'mg.example.com',
    taskId: '235f',
    listAddress: 'devs@mg.example.com',
  }
  const common = { 'task-id': '235f', 'mailing-list': { address: 'devs@mg.example.com' } }
  const member = { address: 'carol@example.org', name: '', subscribed: true }
  assert.deepEqual(shapeOf(listMemberUploadedEvent(upload, member, NOW)), {
    ...HEAD('list_member_uploaded', 'info'),
    ...common,
    member,
  })
  const fault = { format: 'json' as const, description: 'carol(at)example.org', message: 'Invalid format' }
  assert.deepEqual(shapeOf(listMemberUploadErrorEvent(upload, fault, NOW)), {
    ...HEAD('list_member_upload_error', 'error'),
    ...common,
    format: 'json',
    'member-description': 'carol(at)example.org',
    error: { message: 'Invalid format' },
  })
  const result = {
    format: 'csv' as const,
    subscribed: true,
    isUpsert: false,
    upsertedCount: 750,
    failedCount: 2,
  }
  const event = listUploadedEvent(upload, result, NOW)
  assert.equal(event.messageId, null)
  assert.deepEqual(shapeOf(event), {
    ...HEAD('list_uploaded', 'info'),
    ...common,
    format: 'csv',
    subscribed: true,
    'is-upsert': false,
    'upserted-count': 750,
    'failed-count': 2,
  })
})

test('a row has its recipient and tags in lower case, without control characters', () => {
  const to = { recipient: 'Alice@Example.org', recipientDomain: 'example.org' }
  const message = testMessage({ tags: ['Big News', 'a\u0000b'] })
  const { sql, values } = eventStatement(deliveredEvent(message, to, DELIVERED, NOW))
  const columns = /\(([^)]*)\)/.exec(sql)?.[1]?.split(', ') ?? []
  const row = Object.fromEntries(columns.map((name, index) => [name, values[index]]))
  assert.equal(row['recipient'], 'alice@example.org')
  assert.equal(row['tags_json'], '["big news","a b"]')
  assert.equal(row['recipient_hash'], recipientHash('mg.example.com', 'ALICE@example.ORG'))
  assert.equal(JSON.parse(String(row['payload_json'])).recipient, 'Alice@Example.org')
})
