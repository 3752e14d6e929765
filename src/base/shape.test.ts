import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  anyJson,
  constant,
  described,
  descriptionOf,
  either,
  flag,
  integer,
  type JsonSchema,
  list,
  map,
  media,
  named,
  nothing,
  nullable,
  type Of,
  object,
  oneOf,
  optional,
  recursive,
  rfc3339,
  type Shape,
  text,
  tuple,
} from './shape.ts'

const KEY = named('Key', 'A key', { id: text('Identifier') })
const KEY_REF = { $ref: '#/components/schemas/Key' }

const PRINTED: [what: string, shape: Shape<unknown>, schema: JsonSchema][] = [
  ['a text', text('Name'), { type: 'string', description: 'Name' }],
  ['no description', text(''), { type: 'string' }],
  [
    'a number with all that is known of it',
    integer('Wait', { unit: 'seconds', example: 5, default: 0, only: { minimum: 0 } }),
    { type: 'integer', minimum: 0, description: 'Wait', 'x-unit': 'seconds', default: 0, examples: [5] },
  ],
  ['a default of null', text('T', { default: null }), { type: 'string', description: 'T', default: null }],
  ['words', oneOf('Role', ['a', 'b']), { type: 'string', enum: ['a', 'b'], description: 'Role' }],
  [
    'a date with an example of its own',
    rfc3339('When', { example: '2025-01-01T00:00:00Z' }),
    { type: 'string', format: 'date-time', description: 'When', examples: ['2025-01-01T00:00:00Z'] },
  ],
  ['one word', constant('State', 'on'), { type: 'string', enum: ['on'], description: 'State' }],
  [
    'a pair',
    tuple('Header', text(''), KEY),
    {
      type: 'array',
      prefixItems: [{ type: 'string' }, KEY_REF],
      minItems: 2,
      maxItems: 2,
      description: 'Header',
    },
  ],
  ['any value', anyJson('Variables'), { description: 'Variables' }],
  ['a list', list('Keys', KEY), { type: 'array', items: KEY_REF, description: 'Keys' }],
  ['a map', map('By name', KEY), { type: 'object', additionalProperties: KEY_REF, description: 'By name' }],
  [
    'an object: what may be absent is not required',
    object('Both', { a: text('A'), b: optional(flag('B')) }),
    {
      type: 'object',
      properties: { a: { type: 'string', description: 'A' }, b: { type: 'boolean', description: 'B' } },
      required: ['a'],
      description: 'Both',
    },
  ],
  [
    'an object without members that must be there',
    object('None', { b: optional(text('')) }),
    { type: 'object', properties: { b: { type: 'string' } }, description: 'None' },
  ],
  ['a named object by its name', KEY, KEY_REF],
  [
    'another description beside the name',
    described('The new key', KEY),
    { ...KEY_REF, description: 'The new key' },
  ],
  ['text or null', nullable(text('Name')), { type: ['string', 'null'], description: 'Name' }],
  [
    'words or null',
    nullable(oneOf('Role', ['a'])),
    { type: ['string', 'null'], enum: ['a', null], description: 'Role' },
  ],
  ['a named object or null', nullable(KEY), { anyOf: [KEY_REF, { type: 'null' }] }],
  [
    'one of several',
    either('Key or words', KEY, text('')),
    { anyOf: [KEY_REF, { type: 'string' }], description: 'Key or words' },
  ],
]

for (const [what, { schema }, expected] of PRINTED) {
  test(`prints ${what}`, () => assert.deepEqual(schema, expected))
}

test('a shape brings the named schemas that it refers to, however deep', () => {
  const page = named('Page', 'A page', { items: list('Items', map('', nullable(KEY))), one: either('', KEY) })
  assert.deepEqual(Object.keys(object('', { page: optional(page) }).parts), ['Key', 'Page'])
})

test('a shape may refer to itself', () => {
  interface Tree {
    readonly children: readonly Tree[]
  }
  const tree = recursive<Tree>('Tree', (self) => object('A tree', { children: list('Children', self) }))
  const ref = { $ref: '#/components/schemas/Tree' }
  assert.deepEqual(tree.schema, ref)
  assert.deepEqual(tree.parts['Tree'], {
    type: 'object',
    properties: { children: { type: 'array', items: ref, description: 'Children' } },
    required: ['children'],
    description: 'A tree',
  })
})

test('a description comes from the place, else from the named object', () => {
  assert.equal(descriptionOf(KEY), 'A key')
  assert.equal(descriptionOf(described('The new key', KEY)), 'The new key')
  assert.equal(descriptionOf(nothing('Gone')), 'Gone')
})

test('what is not JSON has a content type, and nothing has an empty one', () => {
  assert.equal(media('text/csv', 'Rows').contentType, 'text/csv')
  assert.equal(nothing('Gone').contentType, '')
  assert.equal(described('Lines', media('text/csv', 'Rows')).contentType, 'text/csv')
})

// The compiler checks these.
test('types follow from shapes', () => {
  const shape = object('', {
    ...described('The key', KEY).fields,
    role: oneOf('', ['admin', 'sending']),
    ends: optional(nullable(text(''))),
    counts: map('', integer('')),
    any: either('', flag(''), list('', text(''))),
  })
  const value: Of<typeof shape> = { id: '1', role: 'admin', ends: null, counts: { a: 1 }, any: ['x'] }
  const exact: {
    readonly id: string
    readonly role: 'admin' | 'sending'
    readonly ends?: string | null
    readonly counts: Readonly<Record<string, number>>
    readonly any: boolean | readonly string[]
  } = value
  // @ts-expect-error a word that is not among them
  const word: typeof value.role = 'other'
  // @ts-expect-error a member that must be there
  const lacking: typeof value = { id: '1', role: 'admin', counts: {} }
  // @ts-expect-error null hides that the member may be absent
  nullable(optional(text('')))
  assert.ok(exact && word && lacking)
})
