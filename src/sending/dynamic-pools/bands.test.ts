import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Band,
  type BandLimits,
  type DomainFigures,
  judge,
  moved,
  nextCheckAt,
  ratePpm,
} from './bands.ts'

const LIMITS: BandLimits = {
  ...{ bouncePpm: 50_000, complaintPpm: 1_000, goodVolume: 1_000, poorVolume: 100, recoverChecks: 2 },
}
const [GOOD, POOR, NEW] = ['dynamic_good', 'dynamic_poor', 'dynamic_new'] as const

/** `complained`: of `delivered`, or of all that did not bounce. */
const figures = (processed: number, bounced: number, complained = 0, delivered = processed - bounced) =>
  ({ processed, bounced, delivered, complained }) satisfies DomainFigures

test('the first line that applies gives band and reason', () => {
  const cases: [what: string, DomainFigures, Band, reason: string][] = [
    ['no mail', figures(0, 0), NEW, 'processed_count in new threshold'],
    ['99 with 50 bounces', figures(99, 50, 10), NEW, 'processed_count in new threshold'],
    ['100 with 6 bounces', figures(100, 6), POOR, 'bounce_rate in poor threshold'],
    ['100 with 5 bounces', figures(100, 5), NEW, 'processed_count in new threshold'],
    ['exactly the limit of bounces', figures(1_000, 50), GOOD, 'Multiple metrics in good threshold'],
    ['one bounce more', figures(1_000, 51), POOR, 'bounce_rate in poor threshold'],
    ['exactly the limit of complaints', figures(1_000, 0, 1), GOOD, 'Multiple metrics in good threshold'],
    ['one complaint more', figures(1_000, 0, 2), POOR, 'complaint_rate in poor threshold'],
    ['both', figures(1_000, 60, 2), POOR, 'Multiple metrics in poor threshold'],
    ['999 clean', figures(999, 0), NEW, 'processed_count in new threshold'],
    ['1000 clean', figures(1_000, 0), GOOD, 'Multiple metrics in good threshold'],
    [
      'a fraction over, where rounding would hide it',
      figures(200_000_001, 10_000_001),
      POOR,
      'bounce_rate in poor threshold',
    ],
    ['complaints without deliveries', figures(1_000, 0, 5, 0), GOOD, 'Multiple metrics in good threshold'],
  ]
  for (const [what, of, band, reason] of cases) {
    const verdict = judge(of, LIMITS)
    assert.deepEqual([verdict.band, verdict.reason], [band, reason], what)
  }
})

test('each figure has a band of its own', () => {
  const verdict = judge({ processed: 25_000, bounced: 6_250, delivered: 20_000, complained: 4 }, LIMITS)
  assert.deepEqual(
    [verdict.band, verdict.bands],
    [POOR, { bounceRate: POOR, complaintRate: GOOD, processed: GOOD }],
  )
  assert.deepEqual(judge(figures(99, 50), LIMITS).bands, {
    ...{ bounceRate: POOR, complaintRate: GOOD, processed: NEW },
  })
})

test('one poor result moves in, two others in a row move out', () => {
  const run = (from: Band, results: readonly Band[]) => {
    let state = { band: from, cleanChecks: 0 }
    return results.map((result) => {
      state = moved(state, result, LIMITS)
      return state.band
    })
  }
  assert.deepEqual(run(GOOD, [GOOD, POOR, GOOD, GOOD, NEW]), [GOOD, POOR, POOR, GOOD, NEW])
  assert.deepEqual(run(POOR, [GOOD, POOR, GOOD, POOR]), [POOR, POOR, POOR, POOR])
  assert.deepEqual(run(POOR, [NEW, NEW, POOR]), [POOR, NEW, POOR], 'too little mail is not poor')
  assert.deepEqual(run(NEW, [GOOD, NEW]), [GOOD, NEW], 'only the poor band is left late')
})

test('checks are an interval apart, at a point of it that the id gives', () => {
  const DAY = 86_400_000
  const start = Date.UTC(2026, 5, 1, 12)
  const hours = new Set<number>()
  for (let n = 0; n < 500; n++) {
    const first = nextCheckAt(`domain-${n}`, start, DAY)
    assert.ok(first > start && first <= start + DAY)
    assert.equal(nextCheckAt(`domain-${n}`, first, DAY), first + DAY)
    assert.equal(
      nextCheckAt(`domain-${n}`, first + 5 * DAY + 1, DAY),
      first + 6 * DAY,
      'missed ones are not repeated',
    )
    hours.add(Math.floor((first - start) / 3_600_000))
  }
  assert.equal(hours.size, 24, 'spread over the day')
})

test('rates are rounded to six decimals, and none without mail', () => {
  assert.deepEqual([ratePpm(1, 3), ratePpm(2, 3), ratePpm(0, 7), ratePpm(0, 0)], [333_333, 666_667, 0, null])
})
