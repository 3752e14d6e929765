import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { citationFaults } from './check-citations.ts'

const DOCS = {
  'docs/api/events.md': '## 1. Operations\n\n| V1 | GET | |\n\n## 2. Rules\n\n1. One.\n2. Two,\n   three.\n',
  'docs/api/webhooks.md':
    '## 1. Limits\n\n| 25 | a |\n\n## 2. More\n\n1. One.\n\n| W1 | GET | |\n| W2 | PUT | |\n',
  'docs/decisions/0007-event-pages.md': '',
  'bench/results.md': '',
}

const FAULTS: [name: string, comment: string, said: RegExp][] = [
  ['a page', '/** others.md rule 1 */', /there is no others\.md rule 1$/],
  ['a rule', '/** events.md rule 3 */', /events\.md has no rule 3$/],
  ['the last of a list of rules', '/** events.md rules 1, 2 and 25 */', /has no rule 25$/],
  ['the end of a span', '/** events.md rules 1 to 3 */', /has no rule 3$/],
  ['a rule of another section', '/** webhooks.md section 2 rule 25 */', /has no rule 25$/],
  ['a section', '/** events.md section 3 */', /events\.md has no section 3$/],
  ['an operation', '/** webhooks.md W1 to W3 */', /webhooks\.md has no W3$/],
  ['a citation over two lines', '/**\n * events.md\n * rule 9\n */', /events\.md has no rule 9$/],
  ['a line comment', '// events.md rule 9', /events\.md has no rule 9$/],
  ['a comment after code', 'const a = 1 // events.md rule 9', /events\.md has no rule 9$/],
  ['a rule without a page', '/** events.md rule 1, then rule 8 */', /no page of this file has a rule 8$/],
  ["a rule of the folder's page", '// (rule 8)', /no page of this file has a rule 8$/],
  ['a decision', '// decision 43', /no decision 43$/],
  ['a decision by its name', '/** (docs/decisions: event places) */', /no decision event-places$/],
  ['a file', '/** docs/decisions/0008-a.md */', /there is no docs\/decisions\/0008-a\.md$/],
]
for (const [name, comment, said] of FAULTS) {
  test(`${name} that is not there is found`, (context) => {
    const root = plantFiles(context, { ...DOCS, 'src/events/a.ts': `const before = 1\n\n${comment}\n` })
    const faults = citationFaults(root)
    assert.equal(faults.length, 1, faults.join('\n'))
    assert.match(String(faults[0]), said)
    assert.match(String(faults[0]), /^src\/events\/a\.ts:[23]: /)
  })
}

test('what is there is fine, and only comments are read', (context) => {
  const root = plantFiles(context, {
    ...DOCS,
    'src/events/a.ts': `/**
 * events.md section 2 rules 1 and 2, V1; webhooks.md W1-W2, rules 1, 25 (decision 7; docs/decisions: event
 * pages), docs/decisions/0007-event-pages.md; rule 2.
 */
const text = 'others.md rule 9' + 'https://example.com/others.md'
`,
    'src/smtp/a.ts': '/** RFC 2045, rule 3 */',
    'src/store/1.sql': '-- events.md\n-- rule 2\nSELECT 1;\n',
    'bench/support/a.ts': '// results.md',
  })
  assert.deepEqual(citationFaults(root), [])
})

test('the command prints each fault and ends with 1', (context) => {
  const root = plantFiles(context, { ...DOCS, 'src/store/1.sql': 'SELECT 1;\n-- events.md rule 3\n' })
  const command = join(import.meta.dirname, 'check-citations.ts')
  const { status, stderr } = spawnSync(process.execPath, [command, root], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.equal(stderr, 'src/store/1.sql:2: events.md has no rule 3\n')
})
