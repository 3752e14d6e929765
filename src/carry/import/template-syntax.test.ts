import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileProgram, TemplateFault } from '../../sending/templates/rendering/program.ts'
import { type Converted, fromPostmark, fromSendgrid, fromSes } from './template-syntax.ts'

/** What the service would send. */
function rendered({ text, fault }: Converted, variables: object = {}): string {
  assert.equal(fault, null)
  return compileProgram(text as string, { escaped: true }).run(
    variables as Record<string, unknown>,
    new Set(),
  )
}

const html = (source: string) => fromSes(source, { isHtml: true })

const SAME: [converted: Converted, variables: object, expected: string][] = [
  [fromSendgrid('Hi {{name}}, {{{raw}}}'), { name: '<A>', raw: '<b>' }, 'Hi &lt;A&gt;, <b>'],
  [fromSendgrid('{{#equals a "x"}}yes{{else}}no{{/equals}}'), { a: 'x' }, 'yes'],
  [fromSendgrid('{{#equals a "x"}}yes{{else}}no{{/equals}}'), { a: 'y' }, 'no'],
  [fromSendgrid('{{#notEquals a b}}differ{{/notEquals}}'), { a: 1, b: 2 }, 'differ'],
  [fromSendgrid('{{#notEquals a b}}differ{{/notEquals}}'), { a: 1, b: 1 }, ''],
  [fromSendgrid('Hi {{insert name "default=dear customer"}}'), {}, 'Hi dear customer'],
  [fromSendgrid('Hi {{insert name "default=x"}}{{insert last}}'), { name: 'Ann', last: '!' }, 'Hi Ann!'],
  [fromSendgrid('{{#each items}}{{this.n}},{{/each}}'), { items: [{ n: 1 }, { n: 2 }] }, '1,2,'],
  [fromSendgrid('<a href="{{{unsubscribe}}}">x</a>'), {}, '<a href="%unsubscribe_url%">x</a>'],
  [fromSendgrid('<%asm_group_unsubscribe_raw_url%>'), {}, '%unsubscribe_url%'],
  [html('<p>{{name}}</p>{{#if a}}{{a}}{{else}}-{{/if}}'), { name: '<b>' }, '<p><b></p>-'],
  [html('{{#each items}}{{this}} {{/each}}'), { items: ['a', '&'] }, 'a & '],
  [html('<a href="{{amazonSESUnsubscribeUrl}}">'), {}, '<a href="%unsubscribe_url%">'],
  [fromSes('{{name}}', { isHtml: false }), { name: 'Ann' }, 'Ann'],
  [fromPostmark('Hi {{name}} {{{raw}}}'), { name: '<A>', raw: '<b>' }, 'Hi &lt;A&gt; <b>'],
  [
    fromPostmark('{{#person}}{{name}} of {{../place}}{{/person}}'),
    { person: { name: 'Ann' }, place: 'X' },
    'Ann of X',
  ],
  [fromPostmark('{{#person}}never{{/person}}{{^person}}nobody{{/person}}'), {}, 'nobody'],
  [fromPostmark('{{#each items}}{{.}};{{/each}}'), { items: ['a', 'b'] }, 'a;b;'],
  [fromPostmark('{{#each items}}{{#owner}}{{n}}{{/owner}}{{/each}}'), { items: [{ owner: { n: 1 } }] }, '1'],
  [fromPostmark('{{! note }}<a href="{{{ pm:unsubscribe_url }}}">'), {}, '<a href="%unsubscribe_url%">'],
]

test('templates of other services give what they gave there', () => {
  for (const [source, variables, expected] of SAME) assert.equal(rendered(source, variables), expected)
})

const UNLIKE: [converted: Converted, why: RegExp][] = [
  [fromSendgrid('<%body%>'), /legacy/],
  [fromSendgrid('{{#notEquals a b}}x{{else}}y{{/notEquals}}'), /exchange the two parts/],
  [fromPostmark('<html>{{{ @content }}}</html>'), /layout/],
  [fromPostmark('{{#a}}x{{/b}}'), /not open/],
  [fromPostmark('{{#a}}x'), /does not close/],
]

test('what has no equal here is named', () => {
  for (const [{ fault }, why] of UNLIKE) assert.match(fault ?? '', why)
})

test('helpers that do not exist here are left for the compiler, which refuses them', () => {
  for (const source of ['{{formatDate d "YYYY"}}', '{{#greaterThan a b}}x{{/greaterThan}}'])
    assert.throws(() => rendered(fromSendgrid(source)), TemplateFault)
  assert.throws(() => rendered(html('{{> part}}')), TemplateFault)
})
