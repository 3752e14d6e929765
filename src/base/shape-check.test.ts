import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import {
  anyJson,
  either,
  flag,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  recursive,
  type Shape,
  text,
  tuple,
} from './shape.ts'
import { shapeFault } from './shape-check.ts'

const ITEM = named('Item', 'An item', {
  name: text('Name'),
  size: optional(integer('Size', { only: { minimum: 1 } })),
})
const ORDER = object('An order', {
  id: integer('Number'),
  items: list('Items', ITEM),
  notes: map('', text('')),
})
const NODE = recursive<object>('Node', (self) => object('', { and: optional(list('', self)) }))

const FAULTS: [what: string, shape: Shape<unknown>, value: unknown, path: string | null, kind?: 'missing'][] =
  [
    ['a good order', ORDER, { id: 1, items: [{ name: 'a' }], notes: { x: '' } }, null],
    ['further members', ITEM, { name: 'a', other: 1 }, null],
    ['the first member of two that are missing', ORDER, { notes: {} }, 'id', 'missing'],
    [
      'a member of an item',
      ORDER,
      { id: 1, items: [{ name: 'a' }, {}], notes: {} },
      'items[1].name',
      'missing',
    ],
    ['a bound', ORDER, { id: 1, items: [{ name: 'a', size: 0 }], notes: {} }, 'items[0].size'],
    ['a value of a map', ORDER, { id: 1, items: [], notes: { x: 1 } }, 'notes.x'],
    ['no object', ORDER, [], ''],
    ['null for what may be absent', ITEM, { name: 'a', size: null }, 'size'],
    ['an inherited name', object('', { toString: text('') }), {}, 'toString', 'missing'],
    ['a number that is not safe', integer(''), 2 ** 53, ''],
    ['the first of several shapes', either('', ITEM, text('')), {}, 'name', 'missing'],
    ['the last of several shapes', either('', ITEM, text('')), 'word', null],
    ['null', nullable(ITEM), null, null],
    ['the depths of a recursive shape', NODE, { and: [{ and: [{ and: 1 }] }] }, 'and[0].and[0].and'],
  ]

for (const [what, shape, value, path, kind = 'invalid'] of FAULTS) {
  test(`${path === null ? 'takes' : 'finds'} ${what}`, () =>
    assert.deepEqual(shapeFault(shape, value), path === null ? null : { path, kind }))
}

const bound = fc.integer({ min: 0, max: 4 })
/** A part of the keywords, each with its own value. */
const boundsOf = <K extends string>(...names: K[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, bound])) as Record<K, typeof bound>, {
    requiredKeys: [],
  })
const memberName = fc.constantFrom('a', 'b', 'toString')

/** Shapes of every builder; `depth` is fast-check's own limit. */
const { shape: anyShape } = fc.letrec<{ shape: Shape<unknown>; field: Shape<unknown> }>((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(
      boundsOf('minLength', 'maxLength').map((only) => text('', { only })),
      fc.constantFrom('^a', 'b$', '^.$').map((pattern) => text('', { only: { pattern } })),
      boundsOf('minimum', 'maximum').map((only) => integer('', { only })),
      boundsOf('minimum', 'maximum').map((only) => number('', { only })),
      fc.constantFrom(flag(''), anyJson(''), oneOf('', ['a', 'b']), oneOf('', [1, 2])),
    ),
    fc
      .tuple(tie('shape'), boundsOf('minItems', 'maxItems'))
      .map(([items, only]) => list('', items, { only })),
    fc.tuple(tie('shape'), boundsOf('maxProperties')).map(([values, only]) => map('', values, { only })),
    fc.dictionary(memberName, tie('field')).map((fields) => object('', fields)),
    fc
      .tuple(fc.uuid(), fc.dictionary(memberName, tie('field')))
      .map(([name, fields]) => named(name, '', fields)),
    tie('shape').map((shape) => nullable(shape)),
    fc.array(tie('shape'), { minLength: 1, maxLength: 3 }).map((shapes) => either('', ...shapes)),
    fc.array(tie('shape'), { minLength: 1, maxLength: 3 }).map((shapes) => tuple('', ...shapes)),
  ),
  field: fc.oneof(tie('shape'), tie('shape').map(optional)),
}))

const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, '', 'a', 'b', 'ab', '\u{1f4e7}', '\u{1f4e7}\u{1f4e7}b', 0, 1, 2, -1, 1.5, 5),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(memberName, tie('value')),
  ),
}))

test('agrees with a validator of JSON Schema on any shape and value', () => {
  const ajv = new Ajv2020({ strict: false, ownProperties: true })
  fc.assert(
    fc.property(anyShape, fc.array(anyValue, { minLength: 5, maxLength: 5 }), (shape, values) => {
      const validate = ajv.compile({ ...shape.schema, components: { schemas: shape.parts } })
      for (const value of values) assert.equal(shapeFault(shape, value) === null, validate(value))
    }),
    { seed: 20261128, numRuns: 200 },
  )
})
