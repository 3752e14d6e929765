import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AlertHit, Lane, WebhookAttempt } from '../api-types.ts'
import { worstProvider } from '../shared/mail/reasons-api.ts'
import { alarmsOf, failingWebhooks, stoppedSites, stuckLanes } from './needs.ts'

const attempt = (url: string, status: 'ok' | 'failing' | 'given-up', at: string, code?: number) =>
  ({
    id: at,
    event_id: `event ${at}`,
    event: 'delivered',
    domain: 'mg.example.com',
    url,
    status,
    ...(code === undefined ? { error: 'connection refused' } : { status_code: code }),
    created_at: at,
  }) as WebhookAttempt

test('an endpoint is failing if its newest attempt failed', () => {
  const failing = failingWebhooks([
    attempt('https://a', 'failing', 't4', 500),
    attempt('https://b', 'ok', 't3', 200),
    attempt('https://b', 'given-up', 't2', 500),
    attempt('https://a', 'given-up', 't1'),
  ])
  assert.deepEqual(failing, [
    { domain: 'mg.example.com', url: 'https://a', attemptIds: ['t4', 't1'], lastAnswer: '500', since: 't1' },
  ])
})

const lane = (site: string, more: object) =>
  ({
    ...{ source: 'any', site, provider: 'Other', queued: 1, due: 0, deferred: 0 },
    ...{ backed_off_until: null, backed_off_why: null, oldest_due: null },
    ...more,
  }) as Lane

test('a lane is stuck if it is backed off, or late, and has mail', () => {
  const now = Date.parse('2026-01-01T12:00:00Z')
  const stuck = stuckLanes(
    [
      lane('calm', {}),
      lane('held', { backed_off_until: '2026-01-01T12:05:00Z' }),
      lane('over', { backed_off_until: '2026-01-01T11:05:00Z' }),
      lane('late', { oldest_due: '2026-01-01T11:40:00Z', queued: 5 }),
      lane('soon', { oldest_due: '2026-01-01T11:59:00Z' }),
      lane('empty', { backed_off_until: '2026-01-01T12:05:00Z', queued: 0 }),
    ],
    now,
  )
  assert.deepEqual(
    stuck.map(({ site }) => site),
    ['late', 'held'],
  )
})

test('stopped sites are those whose stop is not over, with what waits; their lanes are not stuck besides', () => {
  const now = Date.parse('2026-01-01T12:00:00Z')
  const order = (site: string, since: string, until: string | null) => ({
    ...{ site, limits: null },
    pause: { reason: '', since: `2026-01-01T${since}:00Z`, until: until && `2026-01-01T${until}:00Z` },
  })
  const held = { backed_off_until: '2026-01-01T12:05:00Z' }
  const lanes = [lane('google', { queued: 3, ...held }), lane('google', { queued: 4 }), lane('yahoo', held)]
  const overrides = [
    order('old.example', '09:00', null),
    order('google', '11:00', '13:00'),
    order('over.example', '08:00', '12:00'),
    { site: 'limits.example', pause: null, limits: { connections: 2, rate: null, until: null } },
  ]
  const stopped = stoppedSites(overrides, lanes, now)
  assert.deepEqual(
    stopped.map(({ site, waiting }) => [site, waiting]),
    [
      ['google', 7],
      ['old.example', 0],
    ],
  )
  const sites = (of: { site: string }[]) => of.map(({ site }) => site)
  assert.deepEqual(sites(stuckLanes(lanes, now, stopped)), ['yahoo'])
  assert.deepEqual(sites(stuckLanes(lanes, now)), ['google', 'yahoo'])
})

test('alarms are those of the service and triggered ones of the account', () => {
  const system = [
    {
      name: 'sendwright:disk-space',
      dimension: 'node',
      dimension_value: 'n1',
      latest_value: '1',
      since: 't',
      advice: 'Free space.',
    },
  ]
  const hits = [
    { name: 'sendwright:disk-space', triggered: true },
    {
      name: 'bounces',
      metric: 'hard_bounce_rate',
      dimension_value: 'mg.example.com',
      latest_value: '0.08',
      triggered: true,
    },
    { name: 'old', triggered: false },
  ] as AlertHit[]
  assert.deepEqual(
    alarmsOf(system, hits).map(({ title, advice }) => [title, advice]),
    [
      ['Disk space: n1', 'Free space.'],
      ['Bounces: mg.example.com', 'hard bounce rate is 0.08'],
    ],
  )
})

test('the worst provider refuses the largest share of enough mail', () => {
  const provider = (name: string, delivered: number, failed: number) => ({
    ...{ provider: name, accepted: 0, delivered, temporary_failed: 0, permanent_failed: failed },
    ...{ opened: 0, unique_opened: 0, clicked: 0, unique_clicked: 0, complained: 0, failures: [] },
  })
  assert.equal(worstProvider([provider('A', 99, 1), provider('B', 0, 5)]), null)
  assert.equal(worstProvider([provider('A', 90, 10), provider('B', 70, 30)])?.provider, 'B')
})
