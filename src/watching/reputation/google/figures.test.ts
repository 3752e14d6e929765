import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complianceIn, daysOf, loopIdsIn, loopMetrics, METRICS, statsIn } from './figures.ts'

const DATE = { year: 2026, month: 11, day: 26 }
const DAY = Date.UTC(2026, 10, 26)

const stat = (metric: string, value: object, date: object = DATE) => ({
  ...{ name: 'domains/a.example/domainStats/opaque', metric, date, value },
})

test('values of an answer become days, by the names of the metrics', () => {
  const answer = statsIn({
    domainStats: [
      stat('spam', { doubleValue: 0.003 }),
      stat('spf', { floatValue: 1 }),
      stat('tls', { intValue: '1' }),
      stat('error_4', { doubleValue: 0.25 }),
      stat('error_5', { doubleValue: 0 }),
      stat('loop_ids', { stringList: { values: ['campaign', 'campaign', 'quo"te', 'x'.repeat(129)] } }),
      stat('loop_0', { doubleValue: 0.5 }),
      stat('dkim', { doubleValue: 7 }),
      stat('spam', { doubleValue: 0.001 }, { year: 2026, month: 11, day: 25 }),
      stat('spam', { doubleValue: 'none' }, { year: 'x' }),
      'nonsense',
    ],
    nextPageToken: 'more',
  })
  assert.equal(answer?.nextPageToken, 'more')
  const stats = answer?.stats ?? []
  assert.deepEqual(loopIdsIn(stats), ['campaign'])
  const none = { spf: null, dkim: null, dmarc: null, tls: null, errors: null, errorRates: [], loops: [] }
  assert.deepEqual(daysOf(stats, ['campaign']), [
    { day: DAY - 86_400_000, ...none, spam: 0.001 },
    {
      ...{ day: DAY, spam: 0.003, spf: 1, dkim: 1, dmarc: null, tls: 1, errors: null },
      errorRates: [{ type: 'reject', reason: 'low_ip_reputation', rate: 0.25 }],
      loops: [{ id: 'campaign', rate: 0.5 }],
    },
  ])
})

test('what is no answer is told apart from an answer without values', () => {
  for (const value of [null, 'text', [], { domainStats: 7 }, { nextPageToken: 7 }])
    assert.equal(statsIn(value), null, JSON.stringify(value))
  assert.deepEqual(statsIn({}), { stats: [], nextPageToken: '' })
  assert.equal(complianceIn([]), null)
  assert.deepEqual(complianceIn({}), [])
})

test('the metrics that are asked for have the documented filters', () => {
  const filters = new Map(METRICS.map(({ name, filter }) => [name, filter]))
  assert.equal(filters.get('spam'), undefined)
  assert.equal(filters.get('dmarc'), 'auth_type = "dmarc"')
  assert.equal(filters.get('tls'), 'traffic_direction = "inbound"')
  assert.equal(filters.get('error_0'), 'error_type = "reject" AND error_reason = "bad_attachment"')
  assert.deepEqual(loopMetrics(['a_b']), [
    {
      name: 'loop_0',
      baseMetric: { standardMetric: 'FEEDBACK_LOOP_SPAM_RATE' },
      filter: 'feedback_loop_id = "a_b"',
    },
  ])
})

test('compliance: rows and verdicts, of the subdomain where it has its own', () => {
  const row = (requirement: string, status: string) => ({ requirement, status: { status } })
  const complianceData = {
    domainId: 'example.com',
    rowData: [row('SPF', 'COMPLIANT'), row('<b>', 'x'), { requirement: 'DKIM' }],
    oneClickUnsubscribeVerdict: { status: { status: 'NEEDS_WORK' }, reason: 'NO_UNSUB_GENERAL' },
  }
  assert.deepEqual(complianceIn({ complianceData }), [
    { requirement: 'SPF', status: 'COMPLIANT' },
    { requirement: 'ONE_CLICK_UNSUBSCRIBE', status: 'NEEDS_WORK' },
  ])
  const subdomainComplianceData = { domainId: 'mg.example.com', rowData: [row('SPF', 'NEEDS_WORK')] }
  assert.deepEqual(complianceIn({ complianceData, subdomainComplianceData }), [
    { requirement: 'SPF', status: 'NEEDS_WORK' },
  ])
})
