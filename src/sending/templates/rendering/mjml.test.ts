import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Unavailable } from '../../../base/process/errors.ts'
import { createMjmlCompiler } from './mjml.ts'

const compiler = createMjmlCompiler()
after(() => compiler.close())

const document = (body: string, head = '') =>
  `<mjml><mj-head>${head}</mj-head><mj-body>${body}</mj-body></mjml>`
const column = (inner: string) => `<mj-section><mj-column>${inner}</mj-column></mj-section>`

async function html(source: string): Promise<string> {
  const result = await compiler.compile(source)
  assert.equal(result.kind, 'compiled', JSON.stringify(result))
  return result.kind === 'compiled' ? result.html : ''
}

test('MJML becomes HTML in which Handlebars stands as it was, in text, attributes and mj-raw', async () => {
  const kept = [
    'Hi {{name}}, {{#equal plan "pro"}}thanks{{else}}hello{{/equal}} {{{raw}}}',
    'https://example.com/{{id}}?a={{b}}',
    '{{#each items}}<p>{{this.name}}</p>{{/each}}',
  ] as const
  const [text, href, raw] = kept
  const source = column(
    `<mj-text>${text}</mj-text><mj-button href="${href}">Go</mj-button><mj-raw>${raw}</mj-raw>`,
  )
  const result = await html(document(source))
  assert.match(result, /^<!doctype html>/)
  for (const part of kept) assert.ok(result.includes(part), part)
})

test('an attribute whose value only rendering gives is no fault', async () => {
  const result = await html(
    document('<mj-section><mj-column width="{{w}}"><mj-text>x</mj-text></mj-column></mj-section>'),
  )
  assert.ok(result.includes('{{w}}'))
})

const REFUSED: [what: string, source: string, why: RegExp][] = [
  [
    'an unknown element',
    document('\n<mj-foo>x</mj-foo>'),
    /^line 2: Element mj-foo doesn't exist or is not registered$/,
  ],
  [
    'a wrong attribute',
    document(column('<mj-text colour="red">x</mj-text>')),
    /^line 1: Attribute colour is illegal$/,
  ],
  ['plain HTML', '<p>x</p>', /^Malformed MJML/],
  ['plain text', 'x', /^Parsing failed/],
  ['mj-include', document('<mj-include path="/etc/passwd" />'), /^mj-include is not supported$/],
  [
    'mj-include of CSS in capitals',
    document('< MJ-INCLUDE type="css" path="x.css" />'),
    /^mj-include is not supported$/,
  ],
  ['elements nested without end', '<mjml><mj-body>'.padEnd(90_000, '<mj-wrapper>'), /./],
]
for (const [what, source, why] of REFUSED) {
  test(`refuses ${what}`, async () => {
    const result = await compiler.compile(source)
    assert.match(result.kind === 'failed' ? result.why : '', why)
  })
}

test('documents given at once are compiled one after the other, and 51 waiting are too many', async () => {
  const all = Array.from({ length: 51 }, (_, n) =>
    compiler.compile(document(column(`<mj-text>${n}</mj-text>`))),
  )
  const results = await Promise.allSettled(all)
  assert.ok(results.slice(0, 50).every(({ status }) => status === 'fulfilled'))
  const [last] = results.slice(50)
  assert.ok(last?.status === 'rejected' && last.reason instanceof Unavailable)
})

test('after close nothing is compiled', async () => {
  const closed = createMjmlCompiler()
  await closed.close()
  await assert.rejects(closed.compile(document('')), Unavailable)
})
