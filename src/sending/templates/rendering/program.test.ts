import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import Handlebars from 'handlebars'
import { compileProgram, LimitReached, OUTPUT_BYTES_MAX, TemplateFault } from './program.ts'

const render = (source: string, variables: unknown = {}, escaped = true) =>
  compileProgram(source, { escaped }).run(variables, null)

const DATA = {
  a: { b: 'deep' },
  name: '<Ann & "Bob">',
  list: [{ n: 1 }, { n: 2 }, { n: 3 }],
  map: { y: 1, x: 2 },
  none: [],
  zero: 0,
  one: 1,
  no: false,
  falseText: 'false',
  'with space': 'ws',
  12: 12,
  true: 'yes',
  flags: [true, false],
}

const WRITTEN: [what: string, source: string, expected: string][] = [
  ['nested names', '{{a.b}} {{a/b}} {{this.a.b}} {{./a.b}}', 'deep deep deep deep'],
  ['names in brackets', '{{[with space]}} {{list.[1].n}} {{list.1.n}}', 'ws 2 2'],
  ['escaped text', '{{name}}', '&lt;Ann &amp; &quot;Bob&quot;&gt;'],
  ['raw text in both spellings', '{{{name}}}{{&name}}', '<Ann & "Bob"><Ann & "Bob">'],
  ['missing values as nothing', '[{{x}}{{a.c.d}}{{../x}}{{{x}}}]', '[]'],
  ['false and zero in full', '{{no}} {{zero}}', 'false 0'],
  [
    'lists with commas, objects by kind',
    '{{{list}}} {{map}}',
    '[object Object],[object Object],[object Object] [object Object]',
  ],
  ['no comments', 'a{{! x }}b{{!-- {{y}} --}}c', 'abc'],
  ['no white space beside ~', 'a  {{~one~}}  b', 'a1b'],
  [
    'places in a list',
    '{{#each list}}{{@index}}{{@key}}{{@first}}{{@last}} {{/each}}',
    '00truefalse 11falsefalse 22falsetrue ',
  ],
  ['keys of an object in their order', '{{#each map}}{{@key}}={{this}};{{/each}}', 'y=1;x=2;'],
  ['the context around', '{{#each list}}{{n}}{{../one}}{{@root.one}}{{/each}}', '111211311'],
  [
    'places of the list around',
    '{{#each list}}{{#each ../list}}{{@../index}}{{/each}}{{/each}}',
    '000111222',
  ],
  ['else of an empty list', '{{#each none}}x{{else}}y{{/each}}{{#each one}}x{{else}}z{{/each}}', 'yz'],
  ['with and its else', '{{#with a}}{{b}}{{../one}}{{/with}}{{#with none}}x{{else}}y{{/with}}', 'deep1y'],
  ['if keeps the context', '{{#each list}}{{#if ../one}}{{n}}{{../one}}{{/if}}{{/each}}', '112131'],
  ['else if', '{{#if no}}1{{else if zero}}2{{else if one}}3{{else}}4{{/if}}', '3'],
  ['inverted blocks', '{{^if no}}x{{/if}}{{#if no}}a{{^}}b{{/if}}', 'xb'],
  ['a number equal to its text', '{{#equal one "1"}}same{{else}}other{{/equal}}', 'same'],
  [
    'equal of other values',
    '{{#equal a.b "Deep"}}same{{else}}other{{/equal}}{{#equal x ""}}same{{/equal}}',
    'othersame',
  ],
  [
    'a block on a list, an object, a text',
    '{{#list}}{{n}}{{@index}}{{/list}}{{#a}}{{b}}{{../one}}{{/a}}',
    '102132deep1',
  ],
  [
    'a block on what is not there, and its else',
    '{{#x}}a{{else}}b{{/x}}{{^x}}c{{/x}}{{^one}}d{{/one}}',
    'bc',
  ],
  ['a block on true', '{{#each flags}}{{#this}}{{../one}}{{/this}}{{^this}}-{{/this}}{{/each}}', '1-'],
  [
    'a block on a path',
    '{{#a.b}}{{this}}{{/a.b}}{{#../x}}a{{else}}b{{/../x}}{{#list.[0]}}{{n}}{{/list.[0]}}',
    'deepb1',
  ],
  [
    'literals as names',
    '{{"with space"}}{{[with space]}}{{12}}{{true}}{{#"with space"}}!{{/"with space"}}',
    'wsws12yes!',
  ],
  ['names of values', '{{#each map as |value key|}}{{key}}{{value}}{{this}}{{one}};{{/each}}', 'y11;x22;'],
  [
    'names of values of blocks around, and properties of them',
    '{{#each list as |a i|}}{{#with ../a as |b|}}{{a.n}}{{i}}{{b.b}}{{this.b}} {{/with}}{{/each}}',
    '10deepdeep 21deepdeep 32deepdeep ',
  ],
  ['a named value before a name', '{{#with one as |a|}}{{a}}{{#a}}{{this}}{{/a}}{{/with}}{{a.b}}', '11deep'],
  ['raw blocks', '{{{{if one}}}}{{x}}{{{{/if}}}}', '{{x}}'],
  ['escaped braces', '\\{{name}}', '{{name}}'],
]
for (const [what, source, expected] of WRITTEN) {
  test(`writes ${what}`, () => assert.equal(render(source, DATA), expected))
}

test('missing, null, false, 0, "", [] and the text "false" are false in if and unless', () => {
  for (const value of [undefined, null, false, 0, '', [], 'false']) {
    assert.equal(render('{{#if v}}T{{else}}F{{/if}}{{#unless v}}F{{else}}T{{/unless}}', { v: value }), 'FF')
  }
  for (const value of [true, 1, -1, 'x', '0', 'no', [0], {}]) {
    assert.equal(render('{{#if v}}T{{else}}F{{/if}}{{#unless v}}F{{else}}T{{/unless}}', { v: value }), 'TT')
  }
})

test('does not escape when escaping is off', () => {
  assert.equal(render('{{name}}', DATA, false), DATA.name)
})

const REFUSED: [source: string, why: string][] = [
  ['{{#if a}}', 'line 1: the template ends inside a block or expression'],
  ['a\n{{#if a}}\n{{/each}}', "line 2: if doesn't match each"],
  ['{{a', 'line 1: unexpected INVALID'],
  ['\n\n{{#foo bar}}{{/foo}}', 'line 3: unknown helper "foo"'],
  ['{{^foo bar}}{{/foo}}', 'line 1: unknown helper "foo"'],
  ['{{#foo a=1}}{{/foo}}', 'line 1: unknown helper "foo"'],
  ['{{"foo" bar}}', 'line 1: unknown helper "foo"'],
  ['{{12 bar}}', 'line 1: unknown helper "12"'],
  ['{{foo bar}}', 'line 1: unknown helper "foo"'],
  ['{{foo a=1}}', 'line 1: unknown helper "foo"'],
  ['{{lookup this "constructor"}}', 'line 1: unknown helper "lookup"'],
  ['{{log this}}', 'line 1: unknown helper "log"'],
  ['{{#blockHelperMissing a}}{{/blockHelperMissing}}', 'line 1: unknown helper "blockHelperMissing"'],
  ['{{#each (lookup a b)}}{{/each}}', 'line 1: unknown helper "lookup"'],
  ['{{#this.if a}}{{/this.if}}', 'line 1: unknown helper "this.if"'],
  ['{{#if this as |x|}}{{/if}}', 'line 1: "as |x|" names values of "each" and "with" only'],
  ['{{#foo as |x y|}}{{/foo}}', 'line 1: "as |x y|" names values of "each" and "with" only'],
  ['{{#if a includeZero=true}}{{/if}}', 'line 1: "if" takes no named arguments'],
  ['{{#if}}{{/if}}', 'line 1: "if" takes 1 argument'],
  ['{{#equal a}}{{/equal}}', 'line 1: "equal" takes 2 arguments'],
  ['{{each}}', 'line 1: "each" is a block: write {{#each ...}}'],
  ['{{> x}}', 'line 1: partials are not supported'],
  ['{{#> x}}{{/x}}', 'line 1: partials are not supported'],
  ['{{> (lookup . "x")}}', 'line 1: partials are not supported'],
  ['{{* x}}', 'line 1: decorators are not supported'],
  ['{{#*inline "x"}}{{/inline}}', 'line 1: decorators are not supported'],
  ['{{@partial-block}}', 'line 1: unknown data name "@partial-block"'],
]
for (const [source, why] of REFUSED) {
  test(`refuses ${JSON.stringify(source)}`, () => {
    assert.throws(() => render(source), new TemplateFault(null, why))
  })
}

test('100 levels of blocks are compiled, 101 refused; branches of else if are no levels', () => {
  const nested = (levels: number) => '{{#if a}}'.repeat(levels) + '{{/if}}'.repeat(levels)
  assert.equal(render(nested(99)), '')
  assert.throws(() => render(nested(100)), /nested over 100 levels/)
  assert.throws(() => render('{{#if a}}'.repeat(11_000)), /nested over 100 levels/)
  assert.equal(render(`{{#if x}}${'{{else if y}}'.repeat(300)}{{else}}end{{/if}}`), 'end')
})

test('names of prototypes are only names', () => {
  const names = [
    'constructor',
    '__proto__',
    'prototype',
    'toString',
    'hasOwnProperty',
    '__lookupGetter__',
    'at',
  ]
  const paths = names.flatMap((name) => [
    name,
    `a.${name}`,
    `a.${name}.${name}`,
    `list.${name}`,
    `@root.${name}`,
    `a.b.${name}`,
  ])
  for (const path of paths) assert.equal(render(`{{${path}}}{{#with ${path}}}x{{/with}}`, DATA), '', path)
  const own = JSON.parse('{"__proto__": {"x": 1}, "constructor": {"prototype": 2}, "toString": 3}') as object
  assert.equal(render('{{__proto__.x}}{{constructor.prototype}}{{toString}}', own), '123')
  assert.equal(
    render('{{this}}{{{this}}}{{#equal this "x"}}{{/equal}}', own),
    '[object Object][object Object]',
  )
})

test('stops at 5 MB of output, counted in bytes', () => {
  const of = (limit: string) => (error: unknown) => error instanceof LimitReached && error.limit === limit
  const half = { x: 'x'.repeat(OUTPUT_BYTES_MAX / 2) }
  assert.equal(render('{{x}}{{x}}', half).length, OUTPUT_BYTES_MAX)
  assert.throws(() => render('{{x}}{{x}}.', half), of('output'))
  assert.throws(() => render('{{x}}', { x: '<'.repeat(OUTPUT_BYTES_MAX / 2) }), of('output'))
  assert.throws(() => render('{{x}}', { x: 'é'.repeat(OUTPUT_BYTES_MAX - 1) }), of('output'))
  // On a crowded machine a list this long may reach its time first: stopped it is in either case.
  const many = { x: Array(OUTPUT_BYTES_MAX + 2).fill('') }
  assert.throws(() => render('{{x}}', many), LimitReached)
})

test('stops a loop at its time, and a list nested too deeply', () => {
  const list = { a: Array(1000).fill(1) }
  const loop =
    '{{#each @root.a}}{{#each @root.a}}{{#each @root.a}}{{#each @root.a}}{{/each}}{{/each}}{{/each}}{{/each}}'
  assert.throws(() => render(loop, list), new LimitReached('time'))
  const nested = JSON.parse('['.repeat(150) + ']'.repeat(150)) as unknown
  assert.throws(() => render('{{x}}', { x: nested }), new LimitReached('depth'))
})

test('lists the names that it wrote without a value, each once', () => {
  const missing = new Set<string>()
  const source = '{{name}}{{x}}{{x}}{{a.c}}{{#each items}}{{/each}}{{#if maybe}}{{/if}}{{{r}}}'
  compileProgram(source, { escaped: true }).run(DATA, missing)
  assert.deepEqual([...missing], ['x', 'a.c', 'items', 'r'])
})

/** Handlebars itself with the contract's helpers: what our closures must agree with. */
const reference = Handlebars.create()
const isFalse = (value: unknown) => value === 'false' || value === 0 || Handlebars.Utils.isEmpty(value)
reference.registerHelper('if', function (this: unknown, value, options) {
  return isFalse(value) ? options?.inverse(this) : options?.fn(this)
} as Handlebars.HelperDelegate)
reference.registerHelper('unless', function (this: unknown, value, options) {
  return isFalse(value) ? options?.fn(this) : options?.inverse(this)
} as Handlebars.HelperDelegate)
reference.registerHelper('equal', function (this: unknown, a, b, options) {
  const same = `${a ?? ''}` === `${b ?? ''}`
  return same ? options?.fn(this) : options?.inverse(this)
} as Handlebars.HelperDelegate)

const valuesIn = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(valuesIn)] : [value]

/** Handlebars takes a block's value for the context around it, which `../` does not count, if the two are loosely equal. */
const hasTwins = (values: readonly unknown[]) =>
  // biome-ignore lint/suspicious/noDoubleEquals: it is what Handlebars does
  values.some((one, at) => values.slice(0, at).some((other) => one != null && one == other && one !== other))

test('agrees with Handlebars on generated templates and data', () => {
  const names = fc.constantFrom(
    'a',
    'b',
    'c',
    'this',
    '../a',
    '../b',
    'a.b',
    'b.[0]',
    '@root.a',
    './c',
    'a.length',
    '../../c',
    '@first',
    'v',
    'v.a',
    'k',
    '"a"',
    '0',
    '[b]',
  )
  /** Without those that are literals as arguments. */
  const paths = names.filter((name) => !/^["0]/.test(name))
  const { template } = fc.letrec<{ template: string; part: string }>((tie) => ({
    template: fc.array(tie('part'), { maxLength: 4 }).map((parts) => parts.join('')),
    part: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'template' },
      fc.constantFrom('x', ' ', '\n', '<b>', '{{@index}}', '{{@key}}', '{{@last}}', '{{! c }}', ' {{~a}} \n'),
      names.map((name) => `{{${name}}}`),
      // Handlebars adds two raw values that stand side by side as numbers; a text before each keeps it from that.
      names.map((name) => `.{{{${name}}}}`),
      fc
        .tuple(fc.constantFrom('if', 'unless', 'each', 'with'), paths, tie('template'), tie('template'))
        .map(([block, name, main, other]) => `{{#${block} ${name}}}${main}{{else}}${other}{{/${block}}}`),
      fc
        .tuple(fc.constantFrom('each', 'with'), paths, fc.constantFrom('v', 'v k', 'a k'), tie('template'))
        .map(([block, name, named, main]) => `{{#${block} ${name} as |${named}|}}${main}{{/${block}}}`),
      fc
        .tuple(names, tie('template'), names, tie('template'), tie('template'))
        .map(([name, main, next, second, other]) => {
          return `{{#${name}}}${main}{{else ${next}}}${second}{{else}}${other}{{/${name}}}`
        }),
      fc
        .tuple(fc.constantFrom('#', '^'), names, fc.constantFrom('', '~'), tie('template'))
        .map(
          ([sign, name, trim, main]) => ` {{${trim}${sign}${name}${trim}}}\n${main}\n {{${trim}/${name}}}\n`,
        ),
      fc.tuple(names, tie('template')).map(([name, main]) => `{{#equal ${name} "1"}}\n${main}\n{{/equal}}\n`),
    ),
  }))
  const value = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>('t', '', '<&>', 2, 0, true, false, null, 'false'),
      // In an item that is null, Handlebars enters an empty object at the next block, which shows as [object Object].
      fc.array(
        tie('value').filter((item) => item !== null),
        { maxLength: 3 },
      ),
      fc.dictionary(fc.constantFrom('a', 'b', 'c', 'length'), tie('value'), { noNullPrototype: true }),
    ),
  })).value
  const data = fc.record({ a: value, b: value, c: value }, { requiredKeys: [], noNullPrototype: true })
  fc.assert(
    fc.property(template, data, (source, variables) => {
      fc.pre(!hasTwins(valuesIn(variables)))
      const expected = reference.compile(source)(variables)
      assert.equal(render(source, variables), expected)
    }),
    { seed: 20261121, numRuns: 1000 },
  )
})
