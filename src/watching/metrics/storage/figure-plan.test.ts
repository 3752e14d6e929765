import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FigureQuery } from '../figures.ts'
import { planOf } from './figure-plan.ts'

const at = (text: string) => Date.parse(`${text}T00:00:00Z`)
const query = (more: Partial<FigureQuery>): FigureQuery => ({
  accountIds: ['a'],
  startMs: at('2026-05-16'),
  endMs: at('2026-06-15'),
  resolution: 'day',
  dimensions: [],
  filter: [],
  ...more,
})
const ALL_MADE = { day: at('2026-06-15'), week: at('2026-06-15'), month: at('2026-06-01') }

/** Each segment as `split unit from to`. */
const shown = (more: Partial<FigureQuery>, until = ALL_MADE, since = 0) =>
  planOf(query(more), until, since).map(
    ({ split, unit, start, end }) =>
      `${split.name} ${unit} ${new Date(start).toISOString().slice(5, 10)} ${new Date(end).toISOString().slice(5, 10)}`,
  )

test('ranges are read from the longest units, and from other splits where those are not made', () => {
  const byCountry: Partial<FigureQuery> = { dimensions: ['domain', 'country'] }
  const weeks = ['country day 05-16 05-18', 'country week 05-18 06-15']
  assert.deepEqual(shown(byCountry), weeks)
  assert.deepEqual(shown(byCountry, { ...ALL_MADE, day: at('2026-06-14'), week: at('2026-06-08') }), [
    'country day 05-16 05-18',
    'country week 05-18 06-08',
    'country day 06-08 06-14',
    'visit day 06-14 06-15',
  ])
  assert.deepEqual(shown({ ...byCountry, startMs: at('2026-03-17') }), [
    'country day 03-17 03-23',
    'country week 03-23 03-30',
    'country day 03-30 04-01',
    'country month 04-01 06-01',
    'country week 06-01 06-15',
  ])
  assert.deepEqual(shown({ dimensions: ['time', 'domain', 'country'] }), ['country day 05-16 06-15'])
  assert.deepEqual(shown({ dimensions: ['country'] }), ['visit day 05-16 06-15'])
  const byTag: Partial<FigureQuery> = { dimensions: ['tag', 'recipient_provider'] }
  assert.deepEqual(shown(byTag), ['tag_provider day 05-16 05-18', 'tag_provider week 05-18 06-15'])
  assert.deepEqual(shown(byTag, ALL_MADE, at('2026-06-03')), [
    'all day 05-16 05-18',
    'all day 05-18 06-03',
    'tag_provider day 06-03 06-08',
    'tag_provider week 06-08 06-15',
  ])
  assert.deepEqual(shown({ dimensions: ['country'], filter: [tagIs('x')] }), [
    'tag_country day 05-16 05-18',
    'tag_country week 05-18 06-15',
  ])
  assert.deepEqual(shown({ dimensions: ['country'], filter: [tagIs('x', 'y')] }), ['all day 05-16 06-15'])
})

const tagIs = (...values: string[]) => ({ attribute: 'tag', comparator: '=', values }) as const
