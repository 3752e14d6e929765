import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveredAt, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { rejectedEvent } from '../events/event.ts'
import { CSV_HEADER, csvRow, logItem } from './log-item.ts'

const stored = (event: ReturnType<typeof deliveredAt>) =>
  logItem({
    id: event.id,
    event: event.event,
    accountId: event.accountId,
    domainName: event.domainName,
    timestampUs: event.timestampUs,
    parentId: 'parent-1',
    payload: JSON.parse(JSON.stringify(event.payload)),
  })

test('an event has the form of logs', () => {
  const event = deliveredAt(7, 'alice@example.org', { userVariables: { order: '17' } })
  const item = stored(event)
  assert.partialDeepStrictEqual(item, {
    id: event.id,
    event: 'delivered',
    '@timestamp': '2026-06-01T12:00:00.007Z',
    account: { 'parent-id': 'parent-1', id: 'account-1' },
    domain: { name: 'mg.example.com' },
    campaigns: [],
    tags: ['welcome'],
    'user-variables': '{"order":"17"}',
    storage: { url: ['https://api.example.net/v3/domains/mg.example.com/messages/key-1'] },
    'delivery-status': { code: 250, 'attempt-no': 1 },
    'log-level': 'info',
  })
  assert.ok(!('timestamp' in item))
})

test('a rejected event has its reason where failed ones have it', () => {
  const item = stored(rejectedEvent(testMessage(), 'cancelled', 'by the sender', NOW_MS))
  assert.equal(item['reason'], 'cancelled')
})

test('user variables beyond 4 KB are left out, and the rest is JSON', () => {
  const userVariables = { first: 'a', large: 'x'.repeat(5000), last: 'ü'.repeat(2000) }
  const text = stored(deliveredAt(0, 'a@example.org', { userVariables }))['user-variables']
  assert.deepEqual(JSON.parse(text as string), { first: 'a', last: 'ü'.repeat(2000) })
})

test('a row of a file has the values of its columns', () => {
  const row = csvRow(stored(deliveredAt(0, 'alice@example.org', { tags: ['a', 'b'] })))
  const cells = Object.fromEntries(CSV_HEADER.map((name, at) => [name, row[at]]))
  assert.partialDeepStrictEqual(cells, {
    timestamp: '2026-06-01T12:00:00.000Z',
    event: 'delivered',
    recipient: 'alice@example.org',
    tags: 'a, b',
    code: 250,
    sending_ip: '203.0.113.9',
    url: undefined,
  })
})
