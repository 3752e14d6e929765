import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  faultOf,
  type JudgedDomain,
  judgeAccount,
  NO_FIGURES,
  type SentFigures,
  type StandingState,
} from './judge.ts'
import { dailyBudget, STANDARD, type StandingLimits } from './policy.ts'

const DAY_MS = 86_400_000
const LIMITS: StandingLimits = { ...STANDARD, min_messages: 100 }
const figures = (sent: number, bounced: number, more: Partial<SentFigures> = {}): SentFigures => ({
  ...NO_FIGURES,
  ...{ sent, bounced },
  ...more,
})

test('a figure is too high from its limit on, of enough messages, and more than by chance', () => {
  const cases: [given: SentFigures, code: string | null, limits?: Partial<StandingLimits>][] = [
    [figures(100, 4), null],
    [figures(100, 5), 'bounces'],
    [figures(99, 50), null],
    [figures(100, 5), null, { bounce_percent: 0 }],
    // One of 300 is 0.33 %.
    [figures(300, 0, { complained: 1 }), null],
    [figures(1_000, 0, { complained: 5 }), 'complaints'],
    [figures(2_000, 0, { complained: 5 }), null],
    [figures(2_000, 0, { complained: 6 }), 'complaints'],
    [figures(100, 5, { unknownUsers: 5 }), 'unknown-users', { bounce_percent: 10 }],
    [figures(3, 0, { trapped: 3 }), 'spam-traps'],
    [figures(3, 0, { trapped: 2 }), null],
    [figures(300, 0, { checked: 200, badContent: 20 }), 'bad-content'],
    [figures(300, 0, { checked: 99, badContent: 90 }), null],
  ]
  for (const [given, code, limits] of cases)
    assert.equal(faultOf(given, { ...LIMITS, ...limits })?.code ?? null, code, JSON.stringify(given))
})

test('the domain that is the cause is stopped alone, else the account', () => {
  type Given = [sent: number, bounced: number, state?: StandingState, sentSince?: number]
  const domain = ([sent, bounced, state = 'good', sentSince = 0]: Given, index: number): JudgedDomain => ({
    ...{ name: 'abcdef'.charAt(index), figures: figures(sent, bounced), state, sentSince },
  })
  const cases: [why: string, account: [StandingState, number?], domains: Given[], found: string[]][] = [
    ['good', ['good'], [[1000, 10]], []],
    ['its only domain', ['good'], [[100, 6]], ['account slowed']],
    [
      'the rest is too small to be judged',
      ['good'],
      [
        [100, 6],
        [99, 0],
      ],
      [],
    ],
    [
      'the rest is too small, and all together bad',
      ['good'],
      [
        [150, 15],
        [99, 0],
      ],
      ['account slowed'],
    ],
    [
      'one is the cause',
      ['good'],
      [
        [100, 6],
        [500, 2],
      ],
      ['a slowed'],
    ],
    [
      'a small one is the cause',
      ['good'],
      [
        [40, 30],
        [300, 0],
      ],
      ['a slowed'],
    ],
    [
      'two are bad',
      ['good'],
      [
        [200, 12],
        [200, 12],
      ],
      ['account slowed'],
    ],
    [
      'no single one is',
      ['good'],
      [
        [60, 3],
        [60, 3],
      ],
      ['account slowed'],
    ],
    ['slowed, nothing more sent', ['slowed', 99], [[200, 12]], []],
    ['slowed, and as bad as before', ['slowed', 100], [[200, 12]], ['account held']],
    ['slowed, and better', ['slowed', 300], [[400, 12]], []],
    ['held', ['held'], [[1000, 500]], []],
    [
      'a domain is held',
      ['good'],
      [
        [200, 12, 'slowed', 100],
        [500, 0],
      ],
      ['a held'],
    ],
    [
      'a stopped domain does not count for the rest',
      ['good'],
      [
        [200, 100, 'held'],
        [500, 2],
      ],
      [],
    ],
    [
      'a second one',
      ['good'],
      [
        [200, 100, 'held'],
        [100, 6],
        [500, 2],
      ],
      ['b slowed'],
    ],
    [
      'a third one',
      ['good'],
      [
        [200, 100, 'held'],
        [200, 100, 'slowed'],
        [100, 6],
        [500, 2],
      ],
      ['account slowed'],
    ],
  ]
  for (const [why, [state, sentSince = 0], domains, found] of cases) {
    const given = { limits: LIMITS, state, sentSince, domains: domains.map(domain) }
    const verdicts = (isWarnedOnly: boolean) =>
      judgeAccount({ ...given, isWarnedOnly }).map(
        (verdict) => `${verdict.domain ?? 'account'} ${verdict.state}`,
      )
    assert.deepEqual(verdicts(false), found, why)
    if (found[0]?.endsWith('slowed'))
      assert.deepEqual(verdicts(true), [found[0].replace('slowed', 'warned')], why)
  }
})

test('a daily budget doubles by the day of UTC, and ends after two weeks', () => {
  const made = 20 * DAY_MS + DAY_MS - 1
  const at = (days: number) => dailyBudget(50, made, made + days * DAY_MS)
  assert.deepEqual(
    [at(0), dailyBudget(50, made, made + 1), at(2), at(13), at(14)],
    [50, 100, 200, 409_600, null],
  )
  assert.equal(dailyBudget(0, made, made), null)
  assert.equal(dailyBudget(50, made, made - 5 * DAY_MS), 50, 'a clock that was set back')
})
