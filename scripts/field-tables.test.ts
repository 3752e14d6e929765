import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  flag,
  gmtDate,
  integer,
  list,
  named,
  nullable,
  object,
  oneOf,
  optional,
  text,
} from '../src/base/shape.ts'
import { startTestService } from '../test/support/service.ts'
import { contractPages, withTables } from './field-tables.ts'

test('the tables of fields in docs/api are what the shapes say; else run scripts/field-tables.ts', async (t) => {
  const service = await startTestService(t)
  const { body } = await service.call('GET', '/openapi.json', { key: null })
  for (const [path, { is, shouldBe }] of await contractPages(body)) assert.equal(is, shouldBe, path)
})

test('a table has a row for each field, and the text around it stays', () => {
  const thing = named('Thing', 'A thing', {
    id: text('Its name | id'),
    size: integer('Size', { unit: 'bytes', default: 0 }),
    kind: oneOf('Kind', ['big', 'small']),
    parts: optional(list('Parts', nullable(flag('')))),
    made: optional(gmtDate('When')),
    sent: optional(gmtDate('When')),
    owner: named('Owner', 'Whose it is', { name: text('Name') }),
    marks: list('Marks', object('A mark', { at: optional(nullable(object('', { x: integer('Place') }))) })),
  })
  const page = 'Before\n<!-- fields of Thing -->\nold\n<!-- end of fields -->\nafter\n'
  assert.equal(
    withTables(page, { components: { schemas: thing.parts }, paths: {} }),
    `Before
<!-- fields of Thing -->

| Field | Type | Meaning |
|---|---|---|
| \`id\` | text | Its name \\| id |
| \`size\` | integer | Size (bytes); default \`0\` |
| \`kind\` | \`big\`, \`small\` | Kind |
| \`parts\` | list of boolean or null, optional | Parts |
| \`made\`, \`sent\` | date (GMT), optional | When |
| \`owner\` | Owner | Whose it is |
| \`marks\` | list of object | Marks |
| \`marks[].at\` | object or null, optional | |
| \`marks[].at.x\` | integer | Place |

<!-- end of fields -->
after
`,
  )
  assert.throws(() => withTables(page, NOTHING), /no schema is named Thing/)
})

test('a table of parameters has those of the query and of the body', () => {
  const at = { name: 'at', in: 'path', description: 'Where', required: true, schema: { type: 'string' } }
  const since = {
    name: 'since',
    in: 'query',
    description: 'When',
    required: false,
    schema: { type: 'string' },
  }
  const schema = { properties: { kind: { enum: ['a', 'b'], type: 'string' } }, required: ['kind'] }
  const requestBody = { content: { 'application/json': { schema } } }
  const paths = { '/{at}': { post: { operationId: 'make', parameters: [at, since], requestBody } } }
  const page = '<!-- parameters of make -->\n<!-- end of parameters -->\n'
  assert.equal(
    withTables(page, { ...NOTHING, paths }),
    `<!-- parameters of make -->

| Parameter | Type | Meaning |
|---|---|---|
| \`since\` | text | When |
| \`kind\` | \`a\`, \`b\`, required | |

<!-- end of parameters -->
`,
  )
  assert.throws(() => withTables(page, NOTHING), /no operation is named make/)
})

const NOTHING = { components: { schemas: {} }, paths: {} }
