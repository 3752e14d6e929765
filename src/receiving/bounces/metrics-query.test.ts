import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest } from '../../base/process/errors.ts'
import { readMetricsQuery } from './metrics-query.ts'

const NOW = Date.parse('2026-11-20T12:30:00Z')
const KEEP_MS = 30 * 86_400_000
const read = (body: unknown) => readMetricsQuery(body, NOW, KEEP_MS)
const iso = (time: number) => new Date(time).toISOString()

test('without parameters: 7 days by day, ten items, most first', () => {
  const empty = {
    start: '',
    end: 'Mon, 01 Jan 0001 00:00:00 +0000',
    filter: {},
    pagination: { limit: 0, sort: '', total: 7 },
  }
  for (const body of [undefined, {}, empty, { filter: { AND: null }, dimensions: null }]) {
    const { start, end, ...query } = read(body)
    assert.deepEqual([iso(start), iso(end)], ['2026-11-13T00:00:00.000Z', '2026-11-20T00:00:00.000Z'])
    assert.deepEqual(query, {
      resolution: 'day',
      unitMs: 86_400_000,
      duration: null,
      dimensions: [],
      filter: [],
      includeSubaccounts: false,
      sort: { column: 'classified_failures_count', descending: true, asked: '' },
      skip: 0,
      limit: 10,
    })
  }
})

test('a duration counts back from the end and replaces the start; m is minutes', () => {
  const cases: [duration: string, start: string][] = [
    ['48h', '2026-11-18T12:00:00.000Z'],
    ['60m', '2026-11-20T11:00:00.000Z'],
    ['30s', '2026-11-20T12:00:00.000Z'],
    ['24h0m0s', '2026-11-19T12:00:00.000Z'],
    ['2d', '2026-11-18T12:00:00.000Z'],
  ]
  for (const [duration, start] of cases) {
    const query = read({ duration, resolution: 'hour', start: 'Mon, 02 Nov 2026 00:00:00 GMT' })
    assert.deepEqual([iso(query.start), query.duration], [start, duration])
  }
})

test('a parameter that is not understood gets a 400 that names it', () => {
  const filter = (attribute: string, comparator: string, values: unknown) => ({
    filter: { AND: [{ attribute, comparator, values }] },
  })
  const cases: [body: object, message: string][] = [
    [{ dimensions: ['foo'] }, 'invalid dimension: foo'],
    [{ dimensions: 'tag' }, 'dimensions must be a list'],
    [{ metrics: ['foo'] }, 'invalid metric: foo'],
    [{ resolution: 'month' }, 'invalid resolution: month'],
    [{ duration: '1w' }, 'Invalid format for parameter duration: 1w'],
    [{ duration: '999999h' }, 'Invalid format for parameter duration: 999999h'],
    [{ start: 'soon' }, 'Invalid format for parameter start: soon'],
    [{ start: 'Sat, 21 Nov 2026 00:00:00 GMT' }, 'start must not be after end'],
    [{ pagination: { limit: 51 } }, 'limit must not exceed 50'],
    [{ pagination: { limit: 'x' } }, 'Invalid format for parameter limit: x'],
    [{ pagination: { skip: -1 } }, 'Invalid format for parameter skip: -1'],
    [{ pagination: { sort: 'tag:asc' } }, 'sort should be either one of metrics or dimensions'],
    [
      { metrics: ['critical_bounce_count'], pagination: { sort: 'delivered_smtp_count:asc' } },
      'sort should be either one of metrics or dimensions',
    ],
    [
      { start: 'Mon, 01 Jan 2024 00:00:00 +0000', end: 'Tue, 02 Jan 2024 00:00:00 +0000' },
      'Mon, 01 Jan 2024 00:00:00 +0000 is out of permitted log retention',
    ],
    [{ pagination: { sort: 'classified_failures_count:up' } }, 'invalid sort: classified_failures_count:up'],
    [filter('foo', '=', ['x']), 'invalid attribute: foo'],
    [filter('timestamp', '=', ['x']), 'invalid attribute: timestamp'],
    [filter('tag', '>', ['x']), 'invalid comparator: >'],
    [filter('tag', '=', []), 'filter tag: values must not be empty'],
    [{ filter: { AND: {} } }, 'filter.AND must be a list'],
    // No primitive value can be made of these.
    [{ dimensions: [{ toString: 1 }] }, 'invalid dimension: {"toString":1}'],
    [{ pagination: { skip: { toString: 1 } } }, 'Invalid format for parameter skip: {"toString":1}'],
    [filter('tag', { toString: 1 } as never, ['x']), 'invalid comparator: {"toString":1}'],
  ]
  for (const [body, message] of cases) {
    assert.throws(
      () => read(body),
      (error) => error instanceof BadRequest && error.message === message,
      message,
    )
  }
})

test('sorting by a requested dimension or any metric', () => {
  const sort = (text: string, dimensions: string[] = []) =>
    read({ dimensions, pagination: { sort: text } }).sort
  assert.deepEqual(sort('tag:desc', ['tag']), { column: 'tag', descending: true, asked: 'tag:desc' })
  assert.equal(sort('critical_bounce_rate:asc').column, 'critical_bounce_rate')
  assert.equal(sort('', ['timestamp']).column, 'timestamp')
  assert.equal(read({ metrics: ['critical_delay_count'] }).sort.column, 'critical_delay_count')
})
