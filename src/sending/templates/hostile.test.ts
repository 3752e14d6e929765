/** 500 hostile templates through the API (R40): none reaches anything, each is stopped, others are served. */
// Slow: it renders five hundred hostile templates, many up to their time limit.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { longestBlockHere } from '../../../test/support/block-probe.ts'
import { startTestService } from '../../../test/support/service.ts'

const TEMPLATES = 500
const AT_A_TIME = 4
/** No request may wait longer than this for the thread that serves requests. */
const LOOP_BLOCK_MS_MAX = 200
const SEED = 40
/** In the environment of the service: no template may ever show it. */
const SECRET = 'sw-secret-6b1f0c'

interface Attack {
  content: string
  variables: unknown
}

const names = fc.constantFrom(
  ...[
    'constructor',
    '__proto__',
    'prototype',
    'toString',
    'valueOf',
    'process',
    'mainModule',
    'require',
    'env',
  ],
  ...[
    'helpers',
    'partials',
    'container',
    '_parent',
    'call',
    'apply',
    'bind',
    '__defineGetter__',
    '__lookupGetter__',
  ],
)
const start = fc.constantFrom(
  '',
  'this.',
  '../',
  '../..',
  '@root.',
  'a.',
  'list.',
  'list.[0].',
  'text.',
  './',
)
const path = fc
  .tuple(start, fc.array(names, { minLength: 1, maxLength: 5 }))
  .map(([head, tail]) => head + tail.join('.'))
const ownPrototypes =
  '{"__proto__": {"polluted": "yes", "isAdmin": true}, "constructor": {"prototype": {"polluted": "yes"}}'

const data = (more = '') =>
  JSON.parse(`${ownPrototypes}, "a": {"b": 1}, "list": [[], {}], "text": "t"${more}}`) as unknown

/** Reads names that lead out of plain data, by every construct that reads. */
const reach = path.chain((name) =>
  fc.constantFrom(
    ...[
      `{{${name}}}`,
      `{{{${name}}}}`,
      `{{#with ${name}}}{{{this}}}{{{constructor}}}{{/with}}`,
      `{{&${name}}}`,
    ],
    ...[`{{#each ${name}}}{{{@key}}}{{{this}}}{{/each}}`, `{{#if ${name}.polluted}}polluted{{/if}}`],
    ...[
      `{{#equal ${name} ${name}}}{{{${name}}}}{{/equal}}`,
      `{{#with this}}{{#with ../this}}{{{${name}}}}{{/with}}{{/with}}`,
    ],
    ...[`{{[${name}]}}`, `{{${name.replaceAll('.', '/')}}}`, `{{@root.${name}}}`, `{{@../${name}}}`],
  ),
)
/** Calls what is not in the contract. */
const call = fc
  .tuple(path, names)
  .map(([name, other]) => [name, other] as const)
  .chain(([name, other]) =>
    fc.constantFrom(
      ...[
        `{{lookup this "${other}"}}`,
        `{{#with (lookup this "${other}")}}{{this}}{{/with}}`,
        `{{log ${name}}}`,
      ],
      ...[
        `{{${name} "return process"}}`,
        `{{#${name} "x"}}{{/${name}}}`,
        `{{> ${other}}}`,
        `{{> (lookup . "${other}")}}`,
      ],
      ...[
        `{{#> ${other}}}{{/${other}}}`,
        `{{#*inline "${other}"}}x{{/inline}}{{> ${other}}}`,
        `{{* ${other}}}`,
      ],
      ...[
        `{{#each list as |${other}|}}{{${other}}}{{/each}}`,
        `{{helperMissing}}`,
        `{{#blockHelperMissing this}}{{/blockHelperMissing}}`,
      ],
      ...[
        `{{#with "s" as |string|}}{{#with string.sub.constructor}}{{this}}{{/with}}{{/with}}`,
        `{{@partial-block}}`,
      ],
      ...[
        `{{{{${other}}}}}{{{{/${other}}}}}`,
        `{{#if ${name} ${other}=1}}x{{/if}}`,
        `{{"constructor"}}`,
        `{{#equal (${other}) 1}}{{/equal}}`,
      ],
    ),
  )
/** Broken and strange text for the parser. */
const garbage = fc
  .array(
    fc.constantFrom(
      '{{',
      '}}',
      '{{{',
      '}}}',
      '#if',
      '/if',
      'a',
      '"',
      "'",
      '[',
      ']',
      '|',
      '../',
      '@',
      '~',
      '\\',
      '\n',
      '(',
      ')',
      '=',
      '\u2028',
      '{{!--',
      '--}}',
      '{{else}}',
      '\ud800',
    ),
    { maxLength: 60 },
  )
  .map((parts) => `.${parts.join(' ')}`)
const nested = fc
  .tuple(fc.integer({ min: 101, max: 3000 }), fc.constantFrom('if a', 'each list', 'with a', 'equal a a'))
  .map(([levels, block]) => `{{#${block}}}`.repeat(levels) + `{{/${block.split(' ')[0]}}}`.repeat(levels))

const attacks: { weight: number; arbitrary: fc.Arbitrary<Attack> }[] = [
  { weight: 40, arbitrary: reach.map((content) => ({ content, variables: data() })) },
  { weight: 30, arbitrary: call.map((content) => ({ content, variables: data() })) },
  { weight: 14, arbitrary: garbage.map((content) => ({ content, variables: data() })) },
  { weight: 4, arbitrary: nested.map((content) => ({ content, variables: data() })) },
  {
    weight: 3,
    arbitrary: fc
      .integer({ min: 60, max: 95 })
      .map((depth) => ({ content: '{{list}}{{this}}', variables: { list: nestedList(depth) } })),
  },
]
/** These take their time or their output to the limit: a few of each, for they are slow by nature. */
const each = (depth: number, body: string): string =>
  depth === 0 ? body : `{{#each @root.a}}${each(depth - 1, body)}{{/each}}`
const HEAVY: Attack[] = [
  { content: each(4, ''), variables: { a: Array(1000).fill(1) } },
  { content: each(2, ''), variables: { a: Array(99_000).fill(1) } },
  { content: each(3, '{{#if @root.b}}x{{/if}}'), variables: { a: Array(2000).fill(0) } },
  { content: each(3, '0123456789'), variables: { a: Array(1000).fill(1) } },
  { content: '{{{a}}}'.repeat(10_000), variables: { a: 'x'.repeat(900_000) } },
  { content: '{{a}}'.repeat(10_000), variables: { a: '<'.repeat(900_000) } },
  { content: each(1, '{{@root.a}}'), variables: { a: Array(99_900).fill(1) } },
  { content: '{{#if a}}'.repeat(11_000), variables: {} },
  { content: '{{^if a}}'.repeat(11_000), variables: {} },
  { content: '{{a}}'.repeat(20_000), variables: { a: 1 } },
  {
    content: '{{#equal a b}}{{/equal}}'.repeat(4_000),
    variables: { a: 'x'.repeat(400_000), b: 'x'.repeat(400_000) },
  },
  { content: '{{> x}}'.repeat(14_000), variables: {} },
]

function nestedList(depth: number): unknown {
  return JSON.parse('['.repeat(depth) + ']'.repeat(depth))
}

function generate(): Attack[] {
  const light = fc.sample(fc.oneof(...attacks), { seed: SEED, numRuns: TEMPLATES - HEAVY.length })
  const distance = Math.floor(light.length / HEAVY.length)
  for (const [index, attack] of HEAVY.entries()) light.splice(index * (distance + 1), 0, attack)
  return light
}

test('500 hostile templates: none escapes, each is stopped, and other requests are answered meanwhile', async (t) => {
  process.env['SW_HOSTILE_TEST'] = SECRET
  t.after(() => delete process.env['SW_HOSTILE_TEST'])
  const service = await startTestService(t)
  const render = (json: unknown) => service.call('POST', '/sendwright/v1/templates/render', { json })
  await render({ content: 'warm' })
  const all = generate()
  assert.equal(all.length, TEMPLATES)

  let running = true
  let served = 0
  const bystander = async () => {
    while (running) {
      const answer = await service.call('GET', '/v4/domains')
      assert.equal(answer.status, 200)
      served++
      await new Promise((done) => setTimeout(done, 5))
    }
  }
  const worker = async (queue: Attack[]) => {
    for (let attack = queue.pop(); attack; attack = queue.pop()) {
      const { status, text, body } = await render(attack)
      assert.equal(status, 200, text.slice(0, 200))
      const said = body.html + body.text + JSON.stringify(body.headers)
      assert.doesNotMatch(
        said,
        /native code|\[object (?!Object)|function|=>|process|polluted/i,
        attack.content,
      )
      assert.ok(!said.includes(SECRET))
      assert.ok(Buffer.byteLength(body.html) <= 5_000_000)
    }
  }
  const blockedMs = await longestBlockHere(LOOP_BLOCK_MS_MAX, async () => {
    running = true
    const others = bystander()
    const queue = [...all]
    await Promise.all(Array.from({ length: AT_A_TIME }, () => worker(queue))).finally(() => {
      running = false
    })
    await others
  })
  t.diagnostic(
    `longest block of the event loop ${blockedMs.toFixed(0)} ms, ${served} other requests answered`,
  )
  assert.ok(blockedMs < LOOP_BLOCK_MS_MAX, `the event loop was blocked for ${blockedMs.toFixed(0)} ms`)
  assert.ok(served > 0)
  const clean = await render({ content: '[{{polluted}}{{a.polluted}}{{isAdmin}}]', variables: { a: {} } })
  assert.equal(clean.body.html, '[]')
})
