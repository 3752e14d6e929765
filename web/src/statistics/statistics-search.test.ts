import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  curveQuery,
  readStatisticsSearch,
  shownOf,
  spanBefore,
  spanOf,
  tableQuery,
  toggled,
} from './statistics-search.ts'

const NOW = Date.UTC(2026, 5, 15, 12, 30)
const dates = ({ startMs, endMs, resolution }: ReturnType<typeof spanOf>) =>
  [new Date(startMs).toISOString().slice(0, 13), new Date(endMs).toISOString().slice(0, 13), resolution].join(
    ' ',
  )

test('a span is so many intervals with the one of now; the one before ends where it begins', () => {
  const cases: [Parameters<typeof spanOf>[0], string, string][] = [
    [{ span: '24h' }, '2026-06-14T13 2026-06-15T12 hour', '2026-06-13T13 2026-06-14T12 hour'],
    [{}, '2026-05-17T00 2026-06-15T12 day', '2026-04-17T00 2026-05-16T23 day'],
    [{ span: '12m' }, '2025-07-01T00 2026-06-15T12 month', '2024-07-01T00 2025-06-30T23 month'],
    [
      { from: '2026-06-01', to: '2026-06-02' },
      '2026-06-01T00 2026-06-02T23 hour',
      '2026-05-30T00 2026-05-31T23 hour',
    ],
    [
      { from: '2026-01-01', to: '2026-02-01' },
      '2026-01-01T00 2026-02-01T23 day',
      '2025-11-30T00 2025-12-31T23 day',
    ],
    [
      { from: '2026-02-01', to: '2026-01-01' },
      '2026-05-17T00 2026-06-15T12 day',
      '2026-04-17T00 2026-05-16T23 day',
    ],
  ]
  for (const [search, span, before] of cases) {
    assert.equal(dates(spanOf(search, NOW)), span)
    assert.equal(dates(spanBefore(spanOf(search, NOW))), before)
  }
})

test('curves are known ones, at most four, and no rate beside counts', () => {
  assert.deepEqual(shownOf('bounced,open_rate,nothing'), ['bounced'])
  assert.equal(toggled(['delivered', 'bounced'], 'open_rate'), 'open_rate')
  assert.equal(toggled(['delivered', 'bounced'], 'bounced'), 'delivered')
  assert.equal(toggled(['delivered'], 'delivered'), 'delivered')
  assert.equal(
    toggled(['accepted', 'delivered', 'deferred', 'bounced'], 'opened'),
    'delivered,deferred,bounced,opened',
  )
})

test('filters are those of the URL, and unknown parameters are dropped', () => {
  const search = readStatisticsSearch({
    domain: 'a.example',
    people: 'yes',
    by: 'nothing',
    at: 'x',
    sort: 'a;b',
  })
  assert.deepEqual(search, { domain: 'a.example', people: 'yes' })
  const { filter } = curveQuery(spanOf(search, NOW), search)
  assert.deepEqual(
    filter?.AND.map(({ attribute, values }) => [attribute, values[0]?.value]),
    [
      ['domain', 'a.example'],
      ['bot', 'None'],
    ],
  )
  assert.deepEqual(tableQuery(spanOf({}, NOW), { at: '25' }).pagination, {
    sort: 'delivered_count:desc',
    limit: 25,
    skip: 25,
  })
})
