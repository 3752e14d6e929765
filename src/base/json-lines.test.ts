import assert from 'node:assert/strict'
import test from 'node:test'
import { jsonLines } from './json-lines.ts'

const TEXT = `{
  "a": 1, "b": [
    {"c": "x, \\" }", "d": [1,
      2]},
    null
  ],
  "b.e": {"f": true,
    "f": false}
}
`

test('the line of a value, or of what would contain it', () => {
  const { lineOf, repeated } = jsonLines(TEXT)
  const cases: [string, number][] = [
    ['', 1],
    ['a', 2],
    ['b', 2],
    ['b[0]', 3],
    ['b[0].c', 3],
    ['b[0].d[1]', 4],
    ['b[1]', 5],
    ['b[1].none', 5],
    ['b[7]', 2],
    ['none.at.all', 1],
    ['b.e.f', 8],
  ]
  for (const [path, line] of cases) assert.equal(lineOf(path), line, path)
  assert.deepEqual(repeated, ['b.e.f'])
  assert.deepEqual(jsonLines('[]').repeated, [])
})
