import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELIVERED, NOW_MS, testMessage } from '../../../test/support/events.ts'
import {
  acceptedEvent,
  deliveredEvent,
  type EventRecord,
  failedEvent,
  rejectedEvent,
} from '../events/event.ts'
import {
  clickedEvent,
  complainedEvent,
  openedEvent,
  storedEvent,
  unsubscribedEvent,
  type Visit,
} from '../events/later-events.ts'
import { isCounted, METRIC_EVENT_NAMES, type MetricEventName } from './metric-events.ts'

const to = { recipient: 'alice@example.org', recipientDomain: 'example.org' }
const own = testMessage()
const optimized = testMessage({ optimized: true })
const listed = testMessage({
  mailingList: { address: 'devs@mg.example.com', 'list-id': 'devs.mg.example.com' },
})
const visit: Visit = {
  ip: '192.0.2.1',
  client: { bot: '' } as Visit['client'],
  geolocation: {} as Visit['geolocation'],
  recipientProvider: 'Other',
  deliveredAt: null,
}

type Failure = Partial<Parameters<typeof failedEvent>[2]>
const failed = (severity: 'temporary' | 'permanent', reason: string, more: Failure = {}, message = own) =>
  failedEvent(message, to, { ...DELIVERED, severity, reason, ...more }, NOW_MS)
const changed = (event: EventRecord, members: object): EventRecord => ({
  ...event,
  payload: { ...event.payload, ...members },
})
const delivered = deliveredEvent(own, to, DELIVERED, NOW_MS)
const second = { ...DELIVERED, status: { ...DELIVERED.status, 'attempt-no': 2 } }

const SENT = ['delivered', 'processed', 'sent'] as const
const LOST = ['failed', 'permanent_failed', 'processed'] as const

const CASES: [what: string, event: EventRecord, metrics: readonly MetricEventName[]][] = [
  ['accepted', acceptedEvent(own, to, NOW_MS, null), ['accepted', 'accepted_outgoing']],
  ['accepted for a list', acceptedEvent(listed, to, NOW_MS, null), ['accepted', 'accepted_incoming']],
  ['delivered', delivered, [...SENT, 'delivered_smtp', 'delivered_first_attempt']],
  [
    'delivered later',
    deliveredEvent(own, to, second, NOW_MS),
    [...SENT, 'delivered_smtp', 'delivered_two_plus_attempts'],
  ],
  [
    'delivered at the best time',
    deliveredEvent(optimized, to, DELIVERED, NOW_MS),
    [...SENT, 'delivered_smtp', 'delivered_optimized', 'delivered_first_attempt'],
  ],
  [
    'delivered by POST',
    changed(delivered, { envelope: { transport: 'http' } }),
    [...SENT, 'delivered_http', 'delivered_first_attempt'],
  ],
  ['deferred', failed('temporary', 'greylisted'), ['failed', 'temporary_failed']],
  [
    'deferred by policy',
    failed('temporary', 'espblock'),
    ['failed', 'temporary_failed', 'esp_block', 'temporary_failed_esp_block'],
  ],
  [
    'deferred by a limit',
    failed('temporary', 'generic', { ruleId: 'slow-down' }),
    ['failed', 'temporary_failed', 'rate_limit'],
  ],
  ['deferred by a rule', failed('temporary', 'generic', { ruleId: 'other' }), ['failed', 'temporary_failed']],
  ['a hard bounce', failed('permanent', 'bounce'), [...LOST, 'sent', 'bounced', 'hard_bounces']],
  [
    'a hard bounce at the best time',
    failed('permanent', 'bounce', {}, optimized),
    [...LOST, 'sent', 'bounced', 'hard_bounces', 'permanent_failed_optimized'],
  ],
  ['a soft bounce', failed('permanent', 'generic'), [...LOST, 'sent', 'bounced', 'soft_bounces']],
  [
    'refused by policy',
    failed('permanent', 'espblock'),
    [...LOST, 'sent', 'bounced', 'soft_bounces', 'permanent_failed_esp_block'],
  ],
  ['too old', failed('permanent', 'old'), [...LOST, 'sent', 'bounced', 'permanent_failed_old']],
  ['suppressed by a bounce', failed('permanent', 'suppress-bounce'), [...LOST, 'suppressed_bounces']],
  [
    'suppressed by an unsubscribe',
    failed('permanent', 'suppress-unsubscribe'),
    [...LOST, 'suppressed_unsubscribed'],
  ],
  [
    'suppressed by a complaint',
    failed('permanent', 'suppress-complaint'),
    [...LOST, 'suppressed_complaints'],
  ],
  [
    'bounced late',
    failed('permanent', 'bounce', { delayedBounce: true }),
    ['failed', 'permanent_failed', 'sent', 'bounced', 'delayed_bounce'],
  ],
  [
    'a callback that failed',
    changed(failed('permanent', 'callback'), { flags: { 'is-callback': true } }),
    ['failed', 'permanent_failed', 'sent', 'bounced', 'webhook_failure'],
  ],
  ['stored', storedEvent(own, NOW_MS), ['stored']],
  ['opened', openedEvent(own, to, visit, NOW_MS), ['opened', 'unique_opened']],
  [
    'clicked',
    clickedEvent(own, to, { ...visit, url: 'https://example.org/' }, NOW_MS),
    ['clicked', 'unique_clicked'],
  ],
  ['unsubscribed', unsubscribedEvent(own, to, visit, NOW_MS), ['unsubscribed']],
  [
    'complained',
    complainedEvent(own, to, { recipientProvider: 'Other', sendingIp: null }, NOW_MS),
    ['complained'],
  ],
  ['rejected', rejectedEvent(own, 'cancelled', '', NOW_MS), []],
]

const facts = { isRateLimit: (ruleId: string) => ruleId === 'slow-down' }

for (const [what, { event, payload }, metrics] of CASES) {
  test(`${what} counts in ${metrics.join(', ') || 'nothing'}`, () => {
    const counted = METRIC_EVENT_NAMES.filter((name) => isCounted(name, event, payload, facts))
    assert.deepEqual(
      counted,
      METRIC_EVENT_NAMES.filter((name) => metrics.includes(name)),
    )
  })
}
