import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contentIds, withContentIds } from './inline-files.ts'
import { createLargeTexts } from './large-texts.ts'

const inline = (...names: string[]) => names.map((filename) => ({ disposition: 'inline' as const, filename }))

test('every inline file has a Content-Id of its own, its name if it can', () => {
  const files = [
    { disposition: 'attachment' as const, filename: 'a.png' },
    ...inline('a b', '2_a_b', 'a.png', 'a.png', 'é', '', '../x'),
  ]
  assert.deepEqual(contentIds(files), [null, '_2_a_b', '2_a_b', 'a.png', '5_a.png', '6__', '7_', '../x'])
})

test('only references to files whose name is not their Content-Id change', () => {
  const files = inline('a b.png', 'c.png')
  for (const [html, expected] of [
    ['<img src="cid:a b.png"><img src="cid:c.png">', '<img src="cid:1_a_b.png"><img src="cid:c.png">'],
    ['cid:a b.png, and "acid:a b.png"', 'cid:a b.png, and "acid:a b.png"'],
    ['<img src="cid:a b.png', '<img src="cid:a b.png'],
    ['<img src="cid:A b.png"><img src="cid:a  b.png">', '<img src="cid:A b.png"><img src="cid:a  b.png">'],
    ['<img src=cid:a%20b.png>', '<img src=cid:1_a_b.png>'],
    [`"cid:x"${'"cid:a b.png"'.repeat(2)}`, `"cid:x"${'"cid:1_a_b.png"'.repeat(2)}`],
  ] as const)
    assert.equal(withContentIds(html, files), expected)
  assert.equal(withContentIds('"cid:c.png"', inline('c.png')), '"cid:c.png"')
})

test('500 references are read', () => {
  const html = withContentIds('"cid:a b"'.repeat(600), inline('a b'))
  assert.equal(html, '"cid:1_a_b"'.repeat(500) + '"cid:a b"'.repeat(100))
})

test('a large html is changed in the thread', async (t) => {
  const texts = createLargeTexts()
  t.after(() => texts.close())
  const filler = '<p>text</p>'.repeat(60_000)
  const changed = await texts.withContentIds(`${filler}"cid:a b"`, inline('a b'))
  assert.equal(changed, `${filler}"cid:1_a_b"`)
})
