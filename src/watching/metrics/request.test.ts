import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { ACCOUNT_METRICS } from './figures.ts'
import { readMetricsRequest } from './request.ts'

const NOW = Date.parse('2026-06-15T12:34:56Z')

const read = (body: unknown) => {
  const { start, end, duration, ...rest } = readMetricsRequest(body, NOW, ACCOUNT_METRICS)
  const [from, to] = [start, end].map((time) => formatRfc2822(new Date(time)).slice(5, 22))
  return { range: [from, to, duration], ...rest }
}

test('the range is cut down to whole intervals in UTC', () => {
  const cases: [body: object, range: string[]][] = [
    [{}, ['08 Jun 2026 00:00', '15 Jun 2026 00:00', '7d']],
    [{ resolution: 'hour' }, ['08 Jun 2026 12:00', '15 Jun 2026 12:00', '7d']],
    [{ resolution: 'month' }, ['01 Jun 2026 00:00', '01 Jun 2026 00:00', '0d']],
    // As recorded from the public API.
    [
      { end: 'Sat, 30 Nov 2024 20:56:50 -0500', duration: '1m', resolution: 'hour' },
      ['01 Nov 2024 01:00', '01 Dec 2024 01:00', '1m'],
    ],
    [{ duration: '24h' }, ['14 Jun 2026 00:00', '15 Jun 2026 00:00', '24h']],
    [
      { duration: '3d', start: 'Mon, 01 Jan 2024 00:00:00 +0000' },
      ['12 Jun 2026 00:00', '15 Jun 2026 00:00', '3d'],
    ],
    [{ start: '', end: 'Mon, 01 Jan 0001 00:00:00 +0000' }, ['08 Jun 2026 00:00', '15 Jun 2026 00:00', '7d']],
    [{ end: 'Mon, 01 Jun 2026 10:00:00 +0000' }, ['25 May 2026 00:00', '01 Jun 2026 00:00', '7d']],
    [{ start: 'Mon, 01 Jun 2026 10:00:00 +0000' }, ['01 Jun 2026 00:00', '15 Jun 2026 00:00', '14d']],
    [{ duration: '999999999m' }, ['01 Jan 1970 00:00', '15 Jun 2026 00:00', '999999999m']],
  ]
  for (const [body, range] of cases) assert.deepEqual(read(body).range, range, JSON.stringify(body))
})

test('what clients send for nothing means the default', () => {
  const defaults = read({})
  for (const body of [
    undefined,
    null,
    [],
    { filter: {} },
    { filter: { AND: null } },
    { pagination: { sort: '', limit: 0, skip: 0, total: 12 } },
    { dimensions: null, metrics: [] },
  ])
    assert.deepEqual(read(body), defaults, JSON.stringify(body))
})

test('the order is by time, else by the first metric, unless asked', () => {
  const sortOf = (body: object) => read(body).sort
  assert.deepEqual(sortOf({ dimensions: ['tag', 'time'] }), { column: 'time', descending: false, asked: '' })
  assert.deepEqual(sortOf({ dimensions: ['tag'], metrics: ['opened_count'] }), {
    column: 'opened_count',
    descending: true,
    asked: '',
  })
  const asked = 'timestamp:DESC'
  assert.deepEqual(sortOf({ dimensions: ['time'], pagination: { sort: asked } }), {
    column: 'time',
    descending: true,
    asked,
  })
})
