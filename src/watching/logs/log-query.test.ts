import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LogQuery, readLogQuery } from './log-query.ts'

const NOW = Date.UTC(2026, 5, 1, 12)
const us = (...date: [number, number, number, number?, number?]) => Date.UTC(...date) * 1000
const read = (body: Record<string, unknown>) => readLogQuery((name) => body[name], NOW)

const CASES: [what: string, body: Record<string, unknown>, expected: Partial<LogQuery>][] = [
  [
    'nothing',
    {},
    {
      start: 'Sun, 31 May 2026 12:00:00 +0000',
      end: 'Mon, 01 Jun 2026 12:00:00 +0000',
      lowUs: us(2026, 4, 31, 12),
      highUs: us(2026, 5, 1, 12),
      ascending: false,
      limit: 50,
      events: null,
      metrics: null,
      filter: [],
      subaccounts: false,
      totals: false,
    },
  ],
  [
    'dates as the caller wrote them',
    { start: 'Fri, 01 May 2026 00:00:00 GMT', end: 'Sat, 02 May 2026 02:00:00 +0200' },
    {
      start: 'Fri, 01 May 2026 00:00:00 GMT',
      end: 'Sat, 02 May 2026 02:00:00 +0200',
      lowUs: us(2026, 4, 1),
      highUs: us(2026, 4, 2),
    },
  ],
  ['empty dates of the JavaScript client', { start: '', end: '' }, { highUs: us(2026, 5, 1, 12) }],
  [
    'the zero time of the Go client',
    { start: 'Mon, 01 Jan 0001 00:00:00 +0000', end: 'Mon, 01 Jan 0001 00:00:00 UTC' },
    { lowUs: us(2026, 4, 31, 12), highUs: us(2026, 5, 1, 12) },
  ],
  ['Unix seconds', { start: 1780300800 }, { lowUs: 1780300800e6, start: 'Mon, 01 Jun 2026 08:00:00 +0000' }],
  [
    'a duration, which replaces the start',
    { duration: '2h', start: 'Fri, 01 May 2026 00:00:00 GMT' },
    { lowUs: us(2026, 5, 1, 10), start: 'Mon, 01 Jun 2026 10:00:00 +0000' },
  ],
  ['a month', { duration: '1m' }, { lowUs: us(2026, 4, 1, 12) }],
  [
    'oldest first without an end',
    { pagination: { sort: 'timestamp:asc' } },
    { ascending: true, highUs: null },
  ],
  ['limit 0', { pagination: { limit: 0 } }, { limit: 50 }],
  ['pagination in a form', { pagination: '{"limit": 7}' }, { limit: 7 }],
  ['pagination that is not JSON', { pagination: '{:limit=>7}' }, { limit: 50 }],
  ['names', { events: ['opened', 'failed', 'opened'] }, { events: ['opened', 'failed'], metrics: [] }],
  ['one name in a form', { events: 'opened' }, { events: ['opened'] }],
  [
    'unique opens among the events',
    { events: ['unique_opened', 'failed'], metric_events: ['hard_bounces'] },
    { events: ['failed'], metrics: ['hard_bounces', 'unique_opened'] },
  ],
  ['names without events', { events: ['trapped'] }, { events: ['trapped'] }],
  ['flags', { include_totals: 'yes', include_subaccounts: true }, { totals: true, subaccounts: true }],
]

test('a request is read with its defaults', () => {
  for (const [what, body, expected] of CASES) assert.partialDeepStrictEqual(read(body), expected, what)
})

const BAD: [body: Record<string, unknown>, message: string][] = [
  [{ start: 'yesterday' }, 'Invalid format for parameter start: yesterday'],
  [{ start: 1780300800, end: 1780300799 }, "'start' must be before 'end'"],
  [{ duration: '3w' }, 'Invalid format for parameter duration: 3w'],
  [{ events: ['opened', 'eaten'] }, 'invalid event: eaten'],
  [{ metric_events: ['opened_count'] }, 'invalid metric event: opened_count'],
  [{ pagination: { limit: 101 } }, 'limit must not exceed 100'],
  [{ pagination: { limit: -1 } }, 'Invalid format for parameter limit: -1'],
  [{ pagination: { sort: 'recipient:asc' } }, 'invalid sort: recipient:asc'],
  [{ include_totals: 'maybe' }, 'Invalid format for parameter include_totals: maybe'],
]

test('what is not understood is named', () => {
  for (const [body, message] of BAD) assert.throws(() => read(body), { message })
})
