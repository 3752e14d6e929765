import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { documentFaults, styleFaults } from './check-documents.ts'

const words = (count: number) => Array.from({ length: count }, () => 'word').join(' ')

const FAULTS: [name: string, markdown: string, said: RegExp][] = [
  ['a long cell', `| a | ${'x'.repeat(201)} |`, /:1: a cell has 201 characters$/],
  ['a long sentence', `A. ${words(41)}.`, /:1: a sentence has 41 words$/],
  ['a long sentence over two lines', `x\n\n${words(20)}\n${words(21)}.`, /:3: a sentence has 41 words$/],
  ['a phrase', 'It answers the key.', /:1: "It answers the": write returns$/],
  ['an inversion', 'Stop it. Who has the key is told.', /write if you/],
]
for (const [name, markdown, said] of FAULTS) {
  test(`${name} is found`, () => {
    const faults = styleFaults('docs/a.md', markdown)
    assert.equal(faults.length, 1, faults.join('\n'))
    assert.match(String(faults[0]), said)
  })
}

test('code, addresses of links and short sentences are no faults', () => {
  const address = `https://example.com/${'x'.repeat(200)}`
  const texts = [
    `\`\`\`text\n${words(50)}\n| ${'x'.repeat(300)} |\n\`\`\``,
    `<!-- ${words(50)} -->`,
    `| [a](${address}) |`,
    `${words(30)}. ${words(30)}.`,
    `- ${words(30)}\n- ${words(30)}`,
    `\`${words(50)}\``,
  ]
  for (const text of texts) assert.deepEqual(styleFaults('docs/a.md', text), [], text)
})

test('links lead to files and to headings, and the README stays short', (t) => {
  const root = plantFiles(t, {
    'README.md': `[a](docs/a.md#the-end) [b](docs/a.md#nowhere) [c](docs/c.md) [d](https://example.com/)\n${'\n'.repeat(150)}`,
    'docs/a.md': '# A\n\n## The `end`\n\n[up](../README.md) [here](#a)\n',
  })
  assert.deepEqual(documentFaults(root), [
    'README.md: has 151 lines, at most 150 are read',
    'README.md:1: docs/a.md#nowhere leads to no heading',
    'README.md:1: docs/c.md leads to no file',
  ])
})
