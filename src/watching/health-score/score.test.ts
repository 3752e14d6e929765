/** The health score as a function of counts (health-score.md section 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_SIGNALS, type Rates, type Signals, scoreOf } from './score.ts'

const MAIL = { delivered: 10_000, processed: 10_000 }

test('score and rates add up to 100, and each signal has its price', () => {
  const cases: [signals: Partial<Signals>, score: number, rates: Partial<Rates>][] = [
    [{}, 100, {}],
    [MAIL, 100, {}],
    [{ ...MAIL, bounced: 200 }, 95, { bounce_rate: 5 }],
    [{ ...MAIL, bounced: 1_000 }, 75, { bounce_rate: 25 }],
    [{ ...MAIL, bounced: 9_000 }, 75, { bounce_rate: 25 }],
    [{ ...MAIL, complaints: 10 }, 90, { complaint_rate: 10 }],
    [{ ...MAIL, complaints: 30 }, 70, { complaint_rate: 30 }],
    [{ ...MAIL, traps: 5 }, 90, { trap_rate: 10 }],
    [{ ...MAIL, fullMailboxes: 250 }, 95, { full_mailbox_rate: 5 }],
    [{ ...MAIL, bounced: 500, hardBounces: 500 }, 72, { bounce_rate: 13, bad_failure_rate: 15 }],
    [
      { delivered: 0, processed: 500, bounced: 500, hardBounces: 500 },
      60,
      { bounce_rate: 25, bad_failure_rate: 15 },
    ],
    [
      { ...MAIL, bounced: 5_000, hardBounces: 5_000, complaints: 500, traps: 500, fullMailboxes: 5_000 },
      0,
      { bounce_rate: 25, complaint_rate: 30, trap_rate: 20, full_mailbox_rate: 10, bad_failure_rate: 15 },
    ],
    [{ complaints: 1 }, 70, { complaint_rate: 30 }],
  ]
  const none = {
    bounce_rate: 0,
    complaint_rate: 0,
    trap_rate: 0,
    full_mailbox_rate: 0,
    bad_failure_rate: 0,
  }
  for (const [signals, score, rates] of cases)
    assert.deepEqual(
      scoreOf({ ...NO_SIGNALS, ...signals }),
      { score, rates: { ...none, ...rates } },
      JSON.stringify(signals),
    )
})
