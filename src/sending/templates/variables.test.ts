import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileProgram, parseTemplate } from './rendering/program.ts'
import { usedVariables } from './variables.ts'

const named = (...sources: string[]) =>
  usedVariables(sources.map(parseTemplate)).map(({ path, kind }) => `${path.join('.')} ${kind}`)

const USED: [what: string, source: string, expected: string[]][] = [
  ['names in the order of their first use', '{{b}}{{a.c}}{{{b}}}{{&d}}', ['b text', 'a.c text', 'd text']],
  ['names in brackets and literals', '{{[with space]}}{{"a b"}}', ['with space text', 'a b text']],
  [
    'branches that nothing enters',
    '{{#if vip}}{{gift}}{{else}}{{offer}}{{/if}}',
    ['vip condition', 'gift text', 'offer text'],
  ],
  ['both sides of a comparison, without literals', '{{#equal a "x"}}{{/equal}}', ['a condition']],
  ['a text though it is a condition too', '{{#if a}}{{a}}{{/if}}', ['a text']],
  [
    'items of a list',
    '{{#each l}}{{n}}{{this.m}}{{../x}}{{@index}}{{@root.y}}{{/each}}',
    ['l list', 'l.[].n text', 'l.[].m text', 'x text', 'y text'],
  ],
  ['items themselves', '{{#each l}}{{this}}{{/each}}', ['l list', 'l.[] text']],
  [
    'lists in lists',
    '{{#each a}}{{#each b}}{{c}}{{../d}}{{/each}}{{/each}}',
    ['a list', 'a.[].b list', 'a.[].b.[].c text', 'a.[].d text'],
  ],
  [
    'named values',
    '{{#each l as |v k|}}{{v.n}}{{k}}{{o}}{{/each}}',
    ['l list', 'l.[].n text', 'l.[].o text'],
  ],
  ['what a block enters', '{{#with user}}{{name}}{{/with}}', ['user condition', 'user.name text']],
  [
    'a block on a name: a list if it has names, else a condition',
    '{{#l}}{{n}}{{/l}}{{#c}}x{{/c}}{{^d}}y{{/d}}',
    ['l list', 'l.[].n text', 'c condition', 'd condition'],
  ],
]

for (const [what, source, expected] of USED)
  test(`used variables: ${what}`, () => assert.deepEqual(named(source), expected))

test('used variables: of headers and content, without repetition, and no more than 200', () => {
  assert.deepEqual(named('{{a}}', '{{a}}{{b}}'), ['a text', 'b text'])
  assert.equal(named(Array.from({ length: 300 }, (_, n) => `{{n${n}}}`).join('')).length, 200)
})

test('used variables: paths that are too long are left out, with all that is below them', () => {
  const deep = (levels: number) => `${'{{#each a}}'.repeat(levels)}{{b}}${'{{/each}}'.repeat(levels)}`
  assert.equal(named(deep(10)).length, 11)
  assert.equal(named(deep(100)).length, 16)
  assert.deepEqual(named(`{{#with ${'x'.repeat(501)}}}{{y}}{{/with}}{{z}}`), ['z text'])
})

test('a marked rendering shows where something is missing', () => {
  const marked = (source: string, variables: unknown, escaped = true) =>
    compileProgram(source, { escaped }).run(variables, null, true)
  assert.equal(
    marked('{{a}}|{{b.c}}|{{{d}}}|{{e}}', { e: null }),
    '{{a}}|{{b.c}}|{{{d}}}|'.replace('{{{d}}}', '{{d}}'),
  )
  assert.equal(
    marked('{{#each l}}{{n}};{{/each}}{{#each m}}x{{/each}}', { l: [{ n: 1 }, {}] }),
    '1;{{n}};{{#each m}}',
  )
  assert.equal(marked('{{#if a}}x{{else}}y{{/if}}{{#with w}}x{{/with}}', {}), 'y{{#with w}}')
  assert.equal(marked('{{[<b>]}}', {}), '{{&lt;b&gt;}}')
  assert.equal(compileProgram('{{a}}', { escaped: true }).run({}, null), '')
})
