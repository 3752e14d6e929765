import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isHole,
  partsByHoles,
  placesOf,
  readSample,
  type Sample,
  withExamples,
  withoutHoles,
  withValue,
} from './sample.ts'
import type { Rendered } from './templates-api.ts'

const VARIABLES: Rendered['variables'] = [
  { path: ['name'], kind: 'text' },
  { path: ['vip'], kind: 'condition' },
  { path: ['lines'], kind: 'list' },
  { path: ['lines', '[]', 'title'], kind: 'text' },
  { path: ['user', 'city'], kind: 'text' },
]
const holes = (sample: Sample) =>
  placesOf(VARIABLES, sample)
    .filter(isHole)
    .map(({ name }) => name)

test('each variable that the sample lacks is a hole, in each item of a list', () => {
  assert.deepEqual(holes({}), ['name', 'vip', 'lines', 'lines[0].title', 'user.city'])
  assert.deepEqual(holes({ name: '', vip: false, lines: [{ title: 1 }, {}], user: { city: null } }), [
    'lines[1].title',
  ])
  assert.deepEqual(holes(Object.create({ name: 'x' })), holes({}))
})

test('examples fill all holes and leave the rest alone', () => {
  const filled = withExamples(
    { name: 'Ada', lines: [{}, { title: 'Tea' }] },
    placesOf(VARIABLES, { name: 'Ada', lines: [{}, { title: 'Tea' }] }),
  )
  assert.deepEqual(filled, {
    name: 'Ada',
    lines: [{ title: 'title' }, { title: 'Tea' }],
    vip: true,
    user: { city: 'city' },
  })
  const empty = withExamples({}, placesOf(VARIABLES, {}))
  assert.deepEqual(empty, { name: 'name', vip: true, lines: [{ title: 'title' }], user: { city: 'city' } })
  assert.deepEqual(holes(empty), [])
})

test('a value is put where it belongs, or removed; names of prototypes are only names', () => {
  assert.deepEqual(withValue({}, ['a', 0, 'b'], 'x'), { a: [{ b: 'x' }] })
  assert.deepEqual(withValue({ a: 'text' }, ['a', 'b'], 1), { a: { b: 1 } })
  assert.deepEqual(withValue({ a: 1, b: 2 }, ['a'], undefined), { b: 2 })
  const sample = withValue({}, ['__proto__', 'x'], 1)
  assert.equal(Object.hasOwn(sample, '__proto__'), true)
  assert.equal(({} as Record<string, unknown>)['x'], undefined)
})

test('holes are found in a text by their names', () => {
  const missing = ['a.b', 'c', '[x]']
  assert.deepEqual(partsByHoles('1 {{a.b}} 2 {{d}}{{#each c}}', missing), [
    '1 ',
    '{{a.b}}',
    ' 2 {{d}}',
    '{{#each c}}',
    '',
  ])
  assert.equal(withoutHoles('x{{c}}y {{acb}}', missing), 'xy {{acb}}')
  assert.deepEqual(partsByHoles('{{a}}', []), ['{{a}}'])
})

test('a sample is a JSON object', () => {
  assert.deepEqual(readSample(' '), { value: {} })
  assert.deepEqual(readSample('{"a": 1}'), { value: { a: 1 } })
  for (const text of ['[]', '1', '{']) assert.ok('fault' in readSample(text), text)
})
