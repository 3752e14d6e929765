import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  at,
  type Block,
  type BlockDocument,
  blocksOf,
  columnsOf,
  type Item,
  insert,
  move,
  type Place,
  type Row,
  readBlocks,
  remove,
  repeatedList,
  replaceItem,
  replaceRow,
  step,
  THEME,
  type ThemeName,
  themeValue,
  withColumns,
  withContent,
  withRepeat,
  withTheme,
  writeBlocks,
} from './block-document.ts'
import { attributeOf, withAttribute } from './mjml-source.ts'

const RUNS = { seed: 20261127, numRuns: 400 }

const LETTER = `<mjml>
  <mj-body background-color="#fff">
    <mj-section padding='0'
      background-color = "#eee" >
      <mj-column><!-- <mj-text>not me</mj-text> -->
        <mj-text color="a > b">Hello <b>{{name}}</b></mj-text>
        <mj-spacer />
        <mj-social><mj-social-element name="x">X</mj-social-element></mj-social>
      </mj-column>
      <mj-column width="30%" />
    </mj-section>
    <mj-raw>{{#each products}}</mj-raw>
    <mj-section><mj-column><mj-button href="{{link}}">Buy</mj-button></mj-column></mj-section>
    <mj-raw>{{/each}}</mj-raw>
    <mj-hero><mj-text>As it is</mj-text></mj-hero>
  </mj-body>
</mjml>
`
const read = (source: string) => readBlocks(source) as BlockDocument
const kinds = (doc: BlockDocument) =>
  doc.blocks.map((block) =>
    block.kind === 'source' ? 'source' : block.columns.map(({ items }) => items.map(({ kind }) => kind)),
  )

test('a document is read as rows, columns and items; what has no form is source', () => {
  const doc = read(LETTER)
  assert.deepEqual(kinds(doc), [[['source', 'text', 'spacer', 'source'], []], [['button']], 'source'])
  assert.equal(repeatedList(doc.blocks[1] as Row), 'products')
  assert.equal(attributeOf((at(doc, [0, 0, 1]) as Item).open, 'color'), 'a > b')
  assert.equal(writeBlocks(doc), LETTER)
})

test('a source without a body has no blocks', () => {
  for (const source of [
    '',
    '<p>Hello</p>',
    '<mjml><mj-body></mjml>',
    '<mjml><mj-body /></mjml>',
    '<mjml><mj-head></mj-head></mjml>',
  ])
    assert.equal(readBlocks(source), null, source)
})

const scrap = fc.constantFrom(
  ...[
    '<mj-section>',
    '</mj-section>',
    '<mj-column>',
    '</mj-column>',
    '<mj-text>',
    '</mj-text>',
    '<mj-raw>',
    '</mj-raw>',
  ],
  ...[
    '<mj-text a="</mj-text>">',
    '<mj-spacer/>',
    '<!--',
    '-->',
    '<',
    '>',
    '"',
    "'",
    '{{#each a}}',
    '{{/each}}',
    ' ',
    '\n',
    'x',
  ],
  ...['<mj-body>', '</mj-body>', '</', '<?x?>', '<![CDATA[', '&amp;'],
)

test('whatever a body has comes back byte for byte', () => {
  fc.assert(
    fc.property(fc.array(scrap, { maxLength: 40 }), (parts) => {
      const source = `<mjml><mj-body>${parts.join('')}</mj-body></mjml>`
      const doc = readBlocks(source)
      if (doc !== null) assert.equal(writeBlocks(doc), source)
    }),
    { ...RUNS, numRuns: 4000 },
  )
})

const UNKNOWN = [
  '<mj-table><tr><td>a</td></tr></mj-table>',
  '<mj-social mode="x">\n <mj-social-element  name=\'y\'/></mj-social>',
  '<!-- <mj-text>  -- kept -->',
  '<mj-raw>{{#if vip}}<p>',
]
const gap = fc.constantFrom('', ' ', '\n  ', '\n\n\t')
const item = fc
  .tuple(
    gap,
    fc.constantFrom(
      '<mj-text>Hi {{name}}</mj-text>',
      "<mj-text color='red' align = left></mj-text>",
      '<mj-button href="{{a}}&amp;b">Go</mj-button>',
      '<mj-image src="x"/>',
      '<mj-divider />',
      '<mj-spacer></mj-spacer>',
      ...UNKNOWN.slice(0, 3),
    ),
  )
  .map((parts) => parts.join(''))
const column = fc
  .tuple(gap, fc.array(item, { maxLength: 4 }), gap)
  .map(([before, items, tail]) => `${before}<mj-column width="50%">${items.join('')}${tail}</mj-column>`)
const row = fc
  .tuple(gap, fc.array(column, { minLength: 1, maxLength: 3 }), gap)
  .map(([before, columns, tail]) => `${before}<mj-section x>${columns.join('')}${tail}</mj-section>`)
const block = fc.oneof(
  { weight: 4, arbitrary: row },
  { weight: 1, arbitrary: fc.constantFrom('<mj-wrapper><mj-section/></mj-wrapper>', '\n<!-- c -->') },
)
const source = fc
  .tuple(fc.array(block, { maxLength: 4 }), gap)
  .map(
    ([blocks, tail]) =>
      `<mjml>\n<mj-head><mj-title>T</mj-title></mj-head><mj-body>${blocks.join('')}${tail}</mj-body>\n</mjml>`,
  )

/** One change after another, of places that exist. */
const changes = fc.array(fc.tuple(fc.nat(8), fc.nat(1000), fc.nat(1000)), { maxLength: 8 })

function changed(doc: BlockDocument, [what, a, b]: readonly [number, number, number]): BlockDocument {
  const columns = columnsOf(doc)
  const places: Place[] = [
    ...doc.blocks.map((_, index): Place => [index]),
    ...columns.flatMap(([each, index]) => itemsOf(doc, each, index).map((_, n): Place => [each, index, n])),
  ]
  const place = places[a % Math.max(1, places.length)]
  const row = doc.blocks.findIndex(({ kind }) => kind === 'row')
  const [target] = columns.slice(b % Math.max(1, columns.length))
  const text = { kind: 'text', before: '', open: '<mj-text>', content: 'new', close: '</mj-text>' } as const
  if (what === 0 && target) return insert(doc, [...target, 0], text)
  if (what === 1)
    return insert(doc, [0], blocksOf('<mj-section><mj-column></mj-column></mj-section>')[0] as Block)
  if (what === 2 && row !== -1) return replaceRow(doc, row, (old) => withColumns(old, (b % 4) + 1))
  if (what === 3 && row !== -1) return replaceRow(doc, row, (old) => withRepeat(old, b % 2 ? 'products' : ''))
  if (what === 4) return withTheme(doc, Object.keys(THEME)[b % 5] as ThemeName, b % 3 ? `#${b}` : '')
  if (place === undefined) return doc
  if (what === 5) {
    const to = step(doc, place, b % 2 ? 1 : -1)
    return to === null ? doc : move(doc, place, to).doc
  }
  const found = at(doc, place)
  if (found === undefined || found.kind === 'source' || found.kind === 'row') return doc
  if (what === 6)
    return replaceItem(doc, place, {
      ...found,
      open: withAttribute(found.open, 'align', b % 3 ? 'right' : ''),
    })
  if (what === 7) return replaceItem(doc, place, withContent(found, `text ${b}`))
  return remove(doc, place)
}

const itemsOf = (doc: BlockDocument, each: number, index: number) =>
  (doc.blocks[each] as Row).columns[index]?.items ?? []

test('blocks that are changed are read again as they were written, and unknown MJML stays byte for byte', () => {
  fc.assert(
    fc.property(source, changes, (written, steps) => {
      let doc = read(written)
      assert.equal(writeBlocks(doc), written)
      const unknown = sourcesOf(doc)
      for (const each of steps) {
        doc = changed(doc, each)
        assert.deepEqual(readBlocks(writeBlocks(doc)), doc)
      }
      assert.deepEqual(sourcesOf(doc), unknown)
    }),
    RUNS,
  )
})

const sourcesOf = (doc: BlockDocument) =>
  doc.blocks
    .flatMap((each): { kind: string; content: string }[] =>
      each.kind === 'source' ? [each] : each.columns.flatMap(({ items }) => [...items]),
    )
    .filter(({ kind }) => kind === 'source')
    .map(({ content }) => content)
    .sort()

test('an item that is moved beyond its column goes on in the next one, up and down', () => {
  const doc = read(LETTER)
  const to = step(doc, [0, 0, 3], 1)
  assert.deepEqual(to, [0, 1, 0])
  const moved = move(doc, [0, 0, 3], to as Place)
  assert.deepEqual(kinds(moved.doc)[0], [['source', 'text', 'spacer'], ['source']])
  assert.match(writeBlocks(moved.doc), /<mj-column width="30%">\s*<mj-social>/)
  assert.equal(step(doc, [0, 0, 0], -1), null)
  assert.equal(step(doc, [2], 1), null)
  assert.deepEqual(step(doc, [1, 0, 0], -1), [0, 1, 0])
})

test('attributes are replaced in their tag; quotes, entities and expressions are kept', () => {
  const cases: [open: string, name: string, value: string, expected: string][] = [
    ['<mj-text>', 'color', 'red', '<mj-text color="red">'],
    ["<mj-text a='1'  color = 'x' b>", 'color', 'y', '<mj-text a=\'1\'  color = "y" b>'],
    ['<mj-spacer />', 'height', '9px', '<mj-spacer height="9px" />'],
    ['<mj-image src="a" alt="b"/>', 'src', '', '<mj-image alt="b"/>'],
    ['<mj-image alt="src=x">', 'src', 'y', '<mj-image alt="src=x" src="y">'],
    [
      '<mj-button>',
      'href',
      'https://x/?a=1&b="{{&c}}"',
      '<mj-button href="https://x/?a=1&amp;b=&quot;{{&c}}&quot;">',
    ],
  ]
  for (const [open, name, value, expected] of cases) {
    const tag = withAttribute(open, name, value)
    assert.equal(tag, expected)
    assert.equal(attributeOf(tag, name), value)
  }
})

test('colours and font of the template are put where MJML has them, and read from there', () => {
  const written = (body: string, name: ThemeName, value: string) =>
    writeBlocks(withTheme(read(body), name, value))
  const bare = '<mjml lang="a>b"><mj-body></mj-body></mjml>'
  const font = written(bare, 'font', 'Georgia, serif')
  assert.match(
    font,
    /^<mjml lang="a>b">\s*<mj-head>\s*<mj-attributes>\s*<mj-all font-family="Georgia, serif" \/>/,
  )
  assert.equal(themeValue(read(font), 'font'), 'Georgia, serif')
  const both = written(written(font, 'text', '#123456'), 'background', '#eee')
  assert.equal(both.match(/<mj-attributes>/g)?.length, 1)
  assert.equal(themeValue(read(both), 'text'), '#123456')
  assert.equal(themeValue(read(both), 'background'), '#eee')
  assert.equal(themeValue(read(written(both, 'text', '')), 'text'), '')
  const head = '<mjml><mj-head><mj-title>T</mj-title></mj-head><mj-body></mj-body></mjml>'
  assert.match(
    written(head, 'button', 'red'),
    /<mj-head>\s*<mj-attributes>[\s\S]*<\/mj-attributes><mj-title>T/,
  )
})
