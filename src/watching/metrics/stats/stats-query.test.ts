import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest } from '../../../base/process/errors.ts'
import { readInputs } from '../../../platform/http/request/inputs.ts'
import { Fields, Params, parseUrlencoded } from '../../../platform/http/request/params.ts'
import { after, before, intervalsBetween, startOf, type Unit } from '../intervals.ts'
import { STATS_EVENTS, STATS_PARAMS, statsQuery } from './stats-query.ts'

const NOW = Date.parse('2026-06-15T12:34:56.789Z')

const read = (query: string) =>
  statsQuery(readInputs(STATS_PARAMS, new Params({ query: parseUrlencoded(query), body: new Fields() })), NOW)

const short = (time: number) => new Date(time).toISOString().slice(0, 16)

const RANGES: [query: string, unit: Unit, start: string, end: string][] = [
  ['', 'day', '2026-06-08T00:00', '2026-06-15T00:00'],
  ['resolution=hour', 'hour', '2026-06-08T12:00', '2026-06-15T12:00'],
  ['resolution=month', 'month', '2026-06-01T00:00', '2026-06-01T00:00'],
  ['duration=24h', 'hour', '2026-06-14T12:00', '2026-06-15T12:00'],
  ['duration=2d', 'day', '2026-06-13T00:00', '2026-06-15T00:00'],
  ['duration=3m', 'month', '2026-03-01T00:00', '2026-06-01T00:00'],
  ['duration=1m&resolution=day', 'day', '2026-05-15T00:00', '2026-06-15T00:00'],
  ['duration=0h', 'hour', '2026-06-15T12:00', '2026-06-15T12:00'],
  // A month before the 31st is the last day of the previous month.
  ['duration=1m&resolution=hour&end=1774956600', 'hour', '2026-02-28T11:00', '2026-03-31T11:00'],
  ['start=Mon, 01 Jun 2026 23:59:59 GMT&end=1780444800', 'day', '2026-06-01T00:00', '2026-06-03T00:00'],
  // Intervals are in UTC, whatever the time zone of a date.
  ['start=Mon, 01 Jun 2026 01:00:00 %2B0200', 'day', '2026-05-31T00:00', '2026-06-15T00:00'],
  // Duration overrides start; an empty value and Go's zero time are ignored.
  ['duration=24h&start=1780272000', 'hour', '2026-06-14T12:00', '2026-06-15T12:00'],
  ['start=&end=Mon, 01 Jan 0001 00:00:00 UTC&duration=', 'day', '2026-06-08T00:00', '2026-06-15T00:00'],
  ['end=1780272000&start=1780272000', 'day', '2026-06-01T00:00', '2026-06-01T00:00'],
  ['resolution=hour&duration=1499h', 'hour', '2026-04-14T01:00', '2026-06-15T12:00'],
  ['resolution=month&start=0', 'month', '1970-01-01T00:00', '2026-06-01T00:00'],
]

test('range and resolution follow from start, end and duration', () => {
  for (const [query, unit, start, end] of RANGES) {
    const found = read(`event=accepted&${query}`)
    assert.deepEqual([found.unit, short(found.start), short(found.end)], [unit, start, end], query)
  }
})

test('events are distinct and in a fixed order', () => {
  assert.deepEqual(read('event=clicked&event=accepted&event=clicked').events, ['accepted', 'clicked'])
  assert.deepEqual(read('event=opened,accepted').events, ['accepted', 'opened'])
  assert.deepEqual(read(STATS_EVENTS.map((name) => `event=${name}`).join('&')).events, STATS_EVENTS)
})

const TOO_MANY = 'The range has more than 1500 intervals'
const FAULTS: [query: string, message: string][] = [
  ['', "'event' parameter is required"],
  ['event=', "'event' parameter is required"],
  ['event=sent', "'sent' is not a valid value for event"],
  ['event=accepted&event=Opened', "'Opened' is not a valid value for event"],
  ['event=accepted&resolution=week', "'week' is not a valid value for resolution"],
  ['event=accepted&start=yesterday', 'Invalid format for parameter start: yesterday'],
  ['event=accepted&end=2026-06-01', 'Invalid format for parameter end: 2026-06-01'],
  ['event=accepted&end=8640000000000', 'Invalid format for parameter end: 8640000000000'],
  ['event=accepted&start=8640000000000', 'Invalid format for parameter start: 8640000000000'],
  ['event=accepted&duration=24', 'Invalid format for parameter duration: 24'],
  ['event=accepted&duration=-1d', 'Invalid format for parameter duration: -1d'],
  ['event=accepted&duration=1w', 'Invalid format for parameter duration: 1w'],
  ['event=accepted&start=1780444800&end=1780272000', "'start' must be before 'end'"],
  ['event=accepted&start=1790000000', "'start' must be before 'end'"],
  ['event=accepted&resolution=hour&duration=1500h', TOO_MANY],
  ['event=accepted&start=0', TOO_MANY],
  ['event=accepted&duration=999999999h', TOO_MANY],
  ['event=accepted&duration=999999999d', TOO_MANY],
  ['event=accepted&duration=999999999m', TOO_MANY],
]

test('what is not understood is a 400 with the text of the contract', () => {
  for (const [query, message] of FAULTS) {
    assert.throws(
      () => read(query),
      (error) => error instanceof BadRequest && error.message === message,
      query,
    )
  }
})

test('intervals: starts, steps and counts agree, across leap years and ends of months', () => {
  for (const unit of ['hour', 'day', 'month'] as const) {
    const start = startOf(unit, Date.parse('2027-11-30T23:59:59Z'))
    let at = start
    for (let count = 1; count <= 200; count++) {
      assert.equal(startOf(unit, at), at)
      assert.equal(startOf(unit, after(unit, at) - 1), at)
      assert.equal(intervalsBetween(unit, start, at), count)
      assert.equal(after(unit, start, count), after(unit, at))
      at = after(unit, at)
    }
  }
  const monthsBefore = (time: string, count: number) =>
    new Date(before('month', Date.parse(time), count)).toISOString()
  assert.equal(monthsBefore('2028-03-31T10:20:30.004Z', 1), '2028-02-29T10:20:30.004Z')
  assert.equal(monthsBefore('2026-01-31T00:00:00.000Z', 11), '2025-02-28T00:00:00.000Z')
  assert.equal(monthsBefore('2026-05-15T00:00:00.000Z', 12), '2025-05-15T00:00:00.000Z')
})
