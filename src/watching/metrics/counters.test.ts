// Both databases: figures are packed by functions of each database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELIVERED, NOW_MS, testMessage } from '../../../test/support/events.ts'
import { eachStore } from '../../../test/support/stores.ts'
import {
  acceptedEvent,
  deliveredEvent,
  EVENT_NAMES,
  type EventRecord,
  failedEvent,
  rejectedEvent,
} from '../events/event.ts'
import {
  clickedEvent,
  complainedEvent,
  listUploadedEvent,
  openedEvent,
  storedEvent,
  unsubscribedEvent,
  type Visit,
} from '../events/later-events.ts'
import { isCounted, METRIC_EVENT_NAMES } from '../logs/metric-events.ts'
import { COUNTERS, type Counter, countersOf, noCounts, payloadColumn } from './counters.ts'
import { type CountMetric, countOf, METRICS } from './figures.ts'

const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
const own = testMessage()
const listed = testMessage({
  mailingList: { address: 'devs@mg.example.com', 'list-id': 'devs.mg.example.com' },
})
const visit = {
  ip: '192.0.2.1',
  client: { bot: '' },
  geolocation: {},
  recipientProvider: 'Other',
  deliveredAt: null,
} as unknown as Visit

const failed = (severity: 'temporary' | 'permanent', reason: string, delayedBounce = false) =>
  failedEvent(own, to, { ...DELIVERED, severity, reason, delayedBounce }, NOW_MS)

/** An event with members that the service does not write yet. */
function changed(event: EventRecord, members: Record<string, unknown>): EventRecord {
  return { ...event, payload: { ...event.payload, ...members } }
}

const accepted = acceptedEvent(own, to, NOW_MS, null)
const delivered = deliveredEvent(own, to, DELIVERED, NOW_MS)
const optimized = testMessage({ optimized: true })

const isRateLimit = (id: unknown) => id === 'slow-down'

const CASES: [name: string, event: EventRecord, counters: Counter[]][] = [
  ['accepted over HTTP or SMTP', accepted, ['accepted_outgoing']],
  [
    "accepted for a list's member",
    acceptedEvent(listed, to, NOW_MS, null),
    ['accepted_incoming', 'accepted_listed'],
  ],
  ['accepted by a route', changed(accepted, { flags: { 'is-routed': true } }), ['accepted_incoming']],
  ['delivered', delivered, ['delivered_first', 'delivered_smtp']],
  [
    'delivered in test mode',
    changed(delivered, { flags: { 'is-test-mode': true } }),
    ['delivered_first', 'delivered_smtp', 'test_delivered'],
  ],
  [
    'delivered later',
    deliveredEvent(own, to, { ...DELIVERED, status: { ...DELIVERED.status, 'attempt-no': 2 } }, NOW_MS),
    ['delivered_later', 'delivered_smtp'],
  ],
  [
    "delivered to a list's member",
    deliveredEvent(listed, to, DELIVERED, NOW_MS),
    ['delivered_first', 'delivered_smtp'],
  ],
  [
    'delivered by POST',
    changed(delivered, { envelope: { transport: 'http' } }),
    ['delivered_first', 'delivered_http'],
  ],
  [
    'delivered at the best time',
    deliveredEvent(optimized, to, DELIVERED, NOW_MS),
    ['delivered_first', 'delivered_optimized', 'delivered_smtp'],
  ],
  ['deferred', failed('temporary', 'greylisted'), ['failed_temporary']],
  ['deferred by policy', failed('temporary', 'espblock'), ['failed_temporary', 'failed_temporary_espblock']],
  [
    'slowed down',
    changed(failed('temporary', 'espblock'), { 'i-classification-rule-id': 'slow-down' }),
    ['failed_temporary', 'failed_temporary_espblock', 'rate_limited'],
  ],
  ['bounced, hard', failed('permanent', 'bounce'), ['failed_permanent', 'failed_bounce']],
  [
    'bounced, hard, at the best time',
    failedEvent(optimized, to, { ...DELIVERED, severity: 'permanent', reason: 'bounce' }, NOW_MS),
    ['failed_permanent', 'failed_bounce', 'failed_optimized'],
  ],
  ['bounced, soft', failed('permanent', 'generic'), ['failed_permanent', 'failed_soft']],
  ['too old', failed('permanent', 'old'), ['failed_permanent', 'failed_old']],
  [
    'refused by policy',
    failed('permanent', 'espblock'),
    ['failed_permanent', 'failed_permanent_espblock', 'failed_soft'],
  ],
  ...(['bounce', 'unsubscribe', 'complaint'] as const).map((kind): (typeof CASES)[number] => [
    `suppressed by a ${kind}`,
    failed('permanent', `suppress-${kind}`),
    ['failed_permanent', `failed_suppress_${kind}`],
  ]),
  ['bounced late', failed('permanent', 'generic', true), ['failed_permanent', 'failed_delayed_bounce']],
  ['bounced late, hard', failed('permanent', 'bounce', true), ['failed_permanent', 'failed_delayed_bounce']],
  [
    'a callback that failed',
    changed(failed('permanent', 'generic'), { flags: { 'is-callback': true } }),
    ['failed_permanent', 'failed_webhook', 'failed_soft'],
  ],
  ['stored', storedEvent(own, NOW_MS), ['stored']],
  ['opened', openedEvent(own, to, visit, NOW_MS), ['opened']],
  ['clicked', clickedEvent(own, to, { ...visit, url: 'https://example.org/' }, NOW_MS), ['clicked']],
  ['unsubscribed', unsubscribedEvent(own, to, visit, NOW_MS), ['unsubscribed']],
  [
    'complained',
    complainedEvent(own, to, { recipientProvider: 'Other', sendingIp: null }, NOW_MS),
    ['complained'],
  ],
  ['rejected', rejectedEvent(own, 'cancelled', '', NOW_MS), []],
  [
    'a list was uploaded',
    listUploadedEvent(
      { accountId: 'a', domainName: 'mg.example.com', taskId: 't', listAddress: 'devs@mg.example.com' },
      { format: 'csv', subscribed: true, isUpsert: false, upsertedCount: 1, failedCount: 0 },
      NOW_MS,
    ),
    [],
  ],
]

test('every kind of event increments its counters', () => {
  for (const [name, event, counters] of CASES) {
    assert.deepEqual(countersOf(event.event, event.payload, isRateLimit), [...counters], name)
  }
})

eachStore('a plain event counts the same without its payload', async (store) => {
  const cast = store.kind === 'postgres' ? '?::text' : '?'
  const sql = `SELECT ${payloadColumn(store.kind)} FROM (SELECT ${cast} AS event, ${cast} AS payload_json) AS one`
  const plain: typeof CASES = []
  for (const one of CASES) {
    const [, { event, payload }] = one
    const text = JSON.stringify(payload)
    const [row] = await store.read({ sql, values: [event, text] })
    if (row?.['payload_json'] === null) plain.push(one)
    else assert.equal(row?.['payload_json'], text)
  }
  assert.deepEqual(
    plain.map(([name]) => name),
    ['accepted over HTTP or SMTP'],
  )
  for (const [name, { event }, counters] of plain)
    assert.deepEqual(countersOf(event, null, isRateLimit), counters, name)
})

test('each metric counts the events that the logs select for it', () => {
  for (const [name, { event, payload }] of CASES) {
    const counts = noCounts()
    for (const counter of countersOf(event, payload, isRateLimit)) counts[counter]++
    for (const metric of METRIC_EVENT_NAMES) {
      const count = `${metric}_count`
      if (!METRICS.some((known) => known === count) || metric.startsWith('unique_')) continue
      const isSelected = isCounted(metric, event, payload, { isRateLimit })
      assert.equal(countOf(count as CountMetric, counts), isSelected ? 1 : 0, `${name}: ${metric}`)
    }
  }
})

test('every counter except those of unique visits and of archived copies has a case; other events count as nothing', () => {
  const counted = new Set(CASES.flatMap(([, , counters]) => counters))
  assert.deepEqual(
    COUNTERS.filter((counter) => !counted.has(counter)),
    ['opened_unique', 'clicked_unique', 'archived'],
  )
  assert.deepEqual(Object.keys(noCounts()), [...COUNTERS])
  const silent = EVENT_NAMES.filter(
    (name) => !CASES.some(([, { event }, counters]) => event === name && counters.length > 0),
  )
  assert.deepEqual(silent, ['rejected', 'list_member_uploaded', 'list_member_upload_error', 'list_uploaded'])
})
