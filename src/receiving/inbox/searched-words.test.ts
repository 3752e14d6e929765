/** What a captured message is found by. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { searchedWords } from './searched-words.ts'

const words = (html: string, text = '', fileNames: string[] = []) => searchedWords({ html, text, fileNames })

test('the text, or the html without tags, styles and scripts; then the names of files', () => {
  assert.equal(words('<p>Not this</p>', ' The\r\n\tText ', ['Invoice 7.PDF']), 'the text invoice 7.pdf')
  assert.equal(words('<STYLE>p { }</style><p title="x">One<br>Two</p><script>three</script>'), 'one two')
  assert.equal(words('<title>Hidden</title>Shown<style>the rest'), 'shown')
  assert.equal(words('1 < 2'), '1')
  assert.equal(words('', '', []), '')
  assert.equal(words('', 'a\0b'), 'a b')
})

test('hostile texts are cut, and read in one pass', () => {
  assert.equal(words('', 'x'.repeat(1e6)).length, 8_000)
  for (const piece of ['<style>', '<', '<style></style', '<p ', '</'])
    assert.ok(words(piece.repeat(1e6 / piece.length)).length <= 8_000)
})
