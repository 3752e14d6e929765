import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable, printableLine } from './printable.ts'

const CASES: [text: string, line: string, lines?: string][] = [
  ['plain é 日本 👋', 'plain é 日本 👋'],
  ['\u001b[2Jgone', '\\u001b[2Jgone'],
  ['\u009b31m', '\\u009b31m'],
  ['a\rb\0\u007f', 'a\\u000db\\u0000\\u007f'],
  ['gpj.\u202eexe', 'gpj.\\u202eexe'],
  ['two\nlines\tx', 'two\\u000alines\\u0009x', 'two\nlines\tx'],
]
for (const [text, line, lines = line] of CASES)
  test(`${JSON.stringify(text)} does nothing to a terminal`, () => {
    assert.equal(printableLine(text), line)
    assert.equal(printable(text), lines)
  })
