import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { htmlOf, marksOf } from './marks.ts'

const SAME: [marks: string, html: string][] = [
  ['', ''],
  ['Hello {{name}}', 'Hello {{name}}'],
  ['a\nb', 'a<br>b'],
  ['**bold** and *italic*', '<strong>bold</strong> and <em>italic</em>'],
  ['**bold *and* more**', '<strong>bold <em>and</em> more</strong>'],
  ['[Open it]({{link}})', '<a href="{{link}}">Open it</a>'],
  ['[**x**](https://a.example/?b=1&c=2)', '<a href="https://a.example/?b=1&amp;c=2"><strong>x</strong></a>'],
  ['one\n\ntwo', '<p>one</p>\n<p>two</p>'],
  ['# Title', '<h1>Title</h1>'],
  ['## Title\n\nText', '<h2>Title</h2>\n<p>Text</p>'],
  ['- a\n- b', '<ul><li>a</li><li>b</li></ul>'],
  ['2 < 3 & "x"', '2 &lt; 3 &amp; "x"'],
  ['5 \\* 3 \\[x\\] \\\\', '5 * 3 [x] \\'],
  ['{{#if a}}**x**{{/if}}', '{{#if a}}<strong>x</strong>{{/if}}'],
  ['{{{raw}}} {{&b}}', '{{{raw}}} {{&b}}'],
  ['<b>', '&lt;b&gt;'],
]
test('text and its HTML', () => {
  for (const [marks, html] of SAME) {
    assert.equal(htmlOf(marks), html)
    const back = marksOf(html)
    assert.equal(htmlOf(back as string), html, `${html} as ${back}`)
  }
})

test('spellings that mean the same are read', () => {
  assert.equal(marksOf('\n   <b>x</b><br/>\n  y '), '**x**\ny')
  assert.equal(marksOf('<p>a</p>  <p>b</p>'), 'a\n\nb')
})

test('HTML that a text cannot say is not read', () => {
  for (const html of [
    '<span style="color:red">x</span>',
    '<p class="a">x</p>',
    '<a href="x" target="_blank">y</a>',
    '<strong>x',
    '&copy;',
    '<table></table>',
    '<ul><li>a',
  ])
    assert.equal(marksOf(html), null, html)
})

test('whatever is typed becomes HTML that is read as the same', () => {
  const part = fc.constantFrom(
    '*',
    '**',
    '[',
    ']',
    '(',
    ')',
    '\\',
    '\n',
    '\n\n',
    '# ',
    '- ',
    ' ',
    'x',
    'y',
    '<',
    '&',
    '{{a}}',
    '{{',
    '"',
    '&amp;',
    '<p>',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
      const html = htmlOf(parts.join(''))
      const marks = marksOf(html)
      if (marks !== null) assert.equal(spaced(htmlOf(marks)), spaced(html))
    }),
    { seed: 20261127, numRuns: 3000 },
  )
})

/** White space as HTML shows it. */
const spaced = (html: string) =>
  html
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?(<\/?(?:p|ul|li|h\d|br)>) ?/g, '$1')
    .trim()
