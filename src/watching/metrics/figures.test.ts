import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Counts } from './counters.ts'
import { type CountMetric, countOf, isRate, METRICS, type RateMetric, rateOf, volumeOf } from './figures.ts'

/** Distinct powers of two: each sum shows what is in it. */
const COUNTS: Counts = {
  accepted_incoming: 1,
  accepted_outgoing: 2,
  delivered_smtp: 4,
  delivered_http: 8,
  delivered_optimized: 16,
  delivered_first: 32,
  delivered_later: 64,
  failed_temporary: 128,
  failed_temporary_espblock: 256,
  failed_permanent: 65_536,
  failed_suppress_bounce: 512,
  failed_suppress_unsubscribe: 1024,
  failed_suppress_complaint: 2048,
  failed_bounce: 4096,
  failed_delayed_bounce: 8192,
  failed_webhook: 16_384,
  failed_optimized: 32_768,
  failed_soft: 131_072,
  failed_old: 262_144,
  failed_permanent_espblock: 524_288,
  rate_limited: 2 ** 20,
  stored: 2 ** 21,
  opened: 2 ** 22,
  opened_unique: 2 ** 23,
  clicked: 2 ** 24,
  clicked_unique: 2 ** 25,
  unsubscribed: 2 ** 26,
  complained: 2 ** 27,
  accepted_listed: 2 ** 28,
  test_delivered: 2 ** 29,
  archived: 2 ** 30,
}
const NONE = Object.fromEntries(Object.keys(COUNTS).map((name) => [name, 0])) as unknown as Counts

const DELIVERED = 4 + 8
const SUPPRESSED = 512 + 1024 + 2048
const PROCESSED = DELIVERED + 65_536 - 16_384 - 8192
const SENT = DELIVERED + 65_536 - SUPPRESSED

const COUNT_CASES: Record<Exclude<CountMetric, 'archived_count'>, number> = {
  accepted_incoming_count: 1,
  accepted_outgoing_count: 2,
  accepted_count: 3,
  delivered_smtp_count: 4,
  delivered_http_count: 8,
  delivered_optimized_count: 16,
  delivered_count: DELIVERED,
  stored_count: 2 ** 21,
  permanent_failed_count: 65_536,
  temporary_failed_count: 128,
  failed_count: 65_536 + 128,
  suppressed_bounces_count: 512,
  suppressed_unsubscribed_count: 1024,
  suppressed_complaints_count: 2048,
  bounced_count: 65_536 - SUPPRESSED,
  hard_bounces_count: 4096,
  soft_bounces_count: 131_072,
  delayed_bounce_count: 8192,
  permanent_failed_old_count: 262_144,
  permanent_failed_optimized_count: 32_768,
  temporary_failed_esp_block_count: 256,
  permanent_failed_esp_block_count: 524_288,
  rate_limit_count: 2 ** 20,
  webhook_count: 16_384,
  processed_count: PROCESSED,
  sent_count: SENT,
  opened_count: 2 ** 22,
  clicked_count: 2 ** 24,
  unsubscribed_count: 2 ** 26,
  complained_count: 2 ** 27,
  unique_opened_count: 2 ** 23,
  unique_clicked_count: 2 ** 25,
  delivered_first_attempt_count: 32,
  delivered_two_plus_attempts_count: 64,
  delivered_subsequent_count: 64,
  delayed_first_attempt_count: 64 + 262_144,
}

const RATE_CASES: Record<RateMetric, [numerator: number, denominator: number]> = {
  delivered_rate: [DELIVERED, SENT],
  opened_rate: [2 ** 22, DELIVERED],
  clicked_rate: [2 ** 24, DELIVERED],
  unique_opened_rate: [2 ** 23, DELIVERED],
  unique_clicked_rate: [2 ** 25, DELIVERED],
  unsubscribed_rate: [2 ** 26, DELIVERED],
  complained_rate: [2 ** 27, DELIVERED],
  bounce_rate: [65_536 - SUPPRESSED, PROCESSED],
  hard_bounce_rate: [4096, PROCESSED],
  soft_bounce_rate: [131_072, PROCESSED],
  permanent_fail_rate: [65_536, PROCESSED],
  temporary_fail_rate: [128, PROCESSED],
  fail_rate: [65_536 + 128, PROCESSED],
  delayed_rate: [64, DELIVERED],
  delayed_first_attempt_rate: [64 + 262_144, SENT],
}

test('every count and every rate follows its formula', () => {
  for (const [metric, expected] of Object.entries(COUNT_CASES))
    assert.equal(countOf(metric as CountMetric, COUNTS), expected, metric)
  for (const [metric, [numerator, denominator]] of Object.entries(RATE_CASES)) {
    assert.equal(rateOf(metric as RateMetric, COUNTS), numerator / denominator, metric)
    assert.equal(volumeOf(metric as RateMetric, COUNTS), denominator, metric)
    assert.equal(rateOf(metric as RateMetric, NONE), 0, `${metric} of nothing`)
  }
  assert.equal(countOf('archived_count', COUNTS), 2 ** 30)
  assert.deepEqual(METRICS, [...Object.keys(COUNT_CASES), ...Object.keys(RATE_CASES)])
  assert.deepEqual(METRICS.filter(isRate), Object.keys(RATE_CASES))
})
