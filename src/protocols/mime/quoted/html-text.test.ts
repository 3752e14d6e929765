import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { htmlToText, readBounded } from './html-text.ts'

const cases: [name: string, html: string, text: string][] = [
  ['paragraphs', '<p>one</p><p>two</p>', 'one\n\ntwo'],
  ['line breaks', 'a<br>b', 'a\nb'],
  ['headings in their own case', '<h1>Hello World</h1>x', 'Hello World\n\nx'],
  ['links', '<a href="https://a.b/?x=1&amp;y=2">here</a>', 'here (https://a.b/?x=1&y=2)'],
  ['links that are their own text', '<a href="https://a.b">https://a.b</a>', 'https://a.b'],
  ['mail links', '<a href="mailto:a@b.c">write</a>', 'write (a@b.c)'],
  ['links of other schemes', '<a href="javascript:alert(1)">x</a> <a href="data:text/html,x">y</a>', 'x y'],
  ['lists', '<ul><li>a</li><li>b</li></ul><ol start="3"><li>c</li></ol>', '* a\n* b\n\n 3. c'],
  ['table rows', '<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a b\nc'],
  ['no images', 'x<img src="y" alt="z">', 'x'],
  ['no hidden content', '<head><title>t</title><style>s</style></head><script>j</script><body>x</body>', 'x'],
  ['entities', '&lt;b&gt; &amp;amp; &uuml; &#8364;', '<b> &amp; ü €'],
  ['quotations', '<blockquote>a<br>b</blockquote>', '> a\n> b'],
  ['unclosed elements', '<div><b>a<p>b', 'a\n\nb'],
  ['long lines as they are', `<p>${'word '.repeat(100)}</p>`, 'word '.repeat(100).trim()],
  ['nothing', '', ''],
]
for (const [name, html, text] of cases) {
  test(`text from HTML has ${name}`, () => assert.equal(htmlToText(html), text))
}

test('elements nested too deep leave the bare text', () => {
  const ignore = { onOpen() {}, onText() {}, onClose() {} }
  assert.ok(!readBounded('<div>'.repeat(301), ignore))
  assert.ok(readBounded('<div>'.repeat(300), ignore))
  assert.equal(htmlToText(`${'<b>'.repeat(1_000)}x &amp; y</i>`), 'x & y')
  assert.ok(htmlToText('<blockquote>a<br>'.repeat(10_000)).length < 20_000, 'no growth by indenting')
})

test('of too long HTML the beginning is read', () => {
  assert.equal(htmlToText('x'.repeat(2_000_000)).length, 500_000)
})

const bombs = [
  '<b>',
  '<form>',
  '<image>',
  '<svg>',
  '<a href=x>',
  '<ul><li>x',
  '</i>',
  '<',
  '<!--',
  '&',
  '<table><tr><td>',
  '<p x="',
  '<script>',
  '&nbsp;',
  '<br>',
  '<h1>',
  '<select>',
]
for (const bomb of bombs) {
  test(`half a megabyte of ${bomb} ends in bounded text`, () => {
    assert.ok(htmlToText(`${bomb.repeat(1_000)}${'x<br>'.repeat(20_000)}`).length < 5_000_000)
    assert.ok(htmlToText(bomb.repeat(Math.floor(500_000 / bomb.length))).length < 5_000_000)
  })
}

test('no HTML makes it throw', () => {
  const tags = fc.constantFrom(
    '<p>',
    '</p>',
    '<a href="',
    '">',
    '<ul>',
    '<li>',
    '</ul>',
    '<table>',
    '<td>',
    '<',
    '&',
    '&lt;',
    'x',
    ' ',
    '\n',
    '<style>',
    '</style>',
    '<pre>',
    'é',
  )
  fc.assert(
    fc.property(fc.array(tags, { maxLength: 40 }), (parts) => {
      assert.equal(typeof htmlToText(parts.join('')), 'string')
    }),
    { seed: 20260601, numRuns: 1_000 },
  )
})
