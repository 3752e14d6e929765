import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flag, integer, list, named, nullable, oneOf, optional, text } from '../src/base/shape.ts'
import { startTestService } from '../test/support/service.ts'
import { contractPages, withTables } from './field-tables.ts'

test('the tables of fields in docs/api are what the shapes say; else run scripts/field-tables.ts', async (t) => {
  const service = await startTestService(t)
  const { components } = (await service.call('GET', '/openapi.json', { key: null })).body
  for (const [path, { is, shouldBe }] of await contractPages(components.schemas))
    assert.equal(is, shouldBe, path)
})

test('a table has a row for each field, and the text around it stays', () => {
  const thing = named('Thing', 'A thing', {
    id: text('Its name | id'),
    size: integer('Size', { unit: 'bytes', default: 0 }),
    kind: oneOf('Kind', ['big', 'small']),
    parts: optional(list('Parts', nullable(flag('')))),
  })
  const page = 'Before\n<!-- fields of Thing -->\nold\n<!-- end of fields -->\nafter\n'
  assert.equal(
    withTables(page, thing.parts),
    `Before
<!-- fields of Thing -->

| Field | Type | Meaning |
|---|---|---|
| \`id\` | text | Its name \\| id |
| \`size\` | integer | Size (bytes); default \`0\` |
| \`kind\` | text | Kind: \`big\`, \`small\` |
| \`parts\` | list of boolean or null | Parts (may be absent) |

<!-- end of fields -->
after
`,
  )
  assert.throws(() => withTables(page, {}), /no schema is named Thing/)
})
