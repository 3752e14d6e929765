import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedRows, type DiffRow, diffLines } from './line-diff.ts'

const SIGNS = { same: '=', changed: '~', removed: '-', added: '+' }
const short = ({ kind, left, right }: DiffRow) =>
  `${SIGNS[kind]} ${left ? left.number + left.text : '.'}|${right ? right.number + right.text : '.'}`

const CASES: readonly [left: string, right: string, rows: string[]][] = [
  ['', '', []],
  ['a\nb\n', 'a\nb', ['= 1a|1a', '= 2b|2b']],
  ['a\r\nb', 'a\nb', ['= 1a|1a', '= 2b|2b']],
  ['a\nb\nc', 'a\nx\nc', ['= 1a|1a', '~ 2b|2x', '= 3c|3c']],
  ['a\nc', 'a\nb\nc', ['= 1a|1a', '+ .|2b', '= 2c|3c']],
  ['a\nb\nc', 'c', ['- 1a|.', '- 2b|.', '= 3c|1c']],
  ['', 'a', ['+ .|1a']],
  ['a\na', 'a\na\na', ['= 1a|1a', '= 2a|2a', '+ .|3a']],
  ['p\na\nq\nb\nr', 'p\nb\na\nr', ['= 1p|1p', '- 2a|.', '- 3q|.', '= 4b|2b', '+ .|3a', '= 5r|4r']],
]

test('lines that are equal stand in a row, those of one change side by side', () => {
  for (const [left, right, rows] of CASES) {
    assert.deepEqual(diffLines(left, right).map(short), rows, JSON.stringify([left, right]))
  }
})

test('a middle that is too long to compare is one change, and both sides stay whole', () => {
  const lines = (mark: string) => Array.from({ length: 5_000 }, (_, at) => `${mark}${at}`)
  const left = ['same', ...lines('a'), 'end'].join('\n')
  const right = ['same', ...lines('b'), 'end'].join('\n')
  const rows = diffLines(left, right)
  assert.equal(rows.length, 5_002)
  assert.equal(changedRows(rows), 5_000)
  assert.deepEqual(rows.map((row) => row.left?.text).join('\n'), left)
  assert.deepEqual(rows.map((row) => row.right?.text).join('\n'), right)
})
