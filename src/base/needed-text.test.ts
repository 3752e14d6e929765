import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPrefilter, neededBy } from './needed-text.ts'

const may = (pattern: string, text: string) =>
  createPrefilter([neededBy(pattern)], [])(text, () => true) === 0

test('a text that lacks what a pattern needs cannot have it', () => {
  const cases: [pattern: string, has: string, lacks: string][] = [
    ['user unknown', 'no: user unknown', 'no: user'],
    ['\\bspf\\b.{0,40}(?:fail|reject)', 'spf may fail', 'spf only'],
    ['(?:over|above) (?:\\S+ ){0,4}quota', 'above the quota', 'above the limit'],
    ['(?:abc|x)def', 'xdef', 'xde'],
    ['colou?r blind', 'color blind', 'collar blind'],
    ['abcd+e', 'abcddde', 'abce'],
    ['a(?:bcd){2}', 'abcdbcd', 'abc'],
    ['[^abc]xyz\\.', 'wxyz.', 'wxyzz'],
    ['(?<name>abc)+', 'abc', 'ab c'],
    ['(?:邮箱|信箱).{0,9}(?:已满|不足)', '邮箱已满', '邮箱不存在'],
  ]
  for (const [pattern, has, lacks] of cases) {
    assert.match(has, new RegExp(pattern, 'u'))
    assert.deepEqual([may(pattern, has), may(pattern, lacks)], [true, false], pattern)
  }
})

test('patterns that need nothing, or that are not understood, may be in any text', () => {
  for (const pattern of [
    'a',
    '\\d\\d\\d',
    '(?:abc|\\d)',
    '(?:abc)?',
    'x{0,3}',
    '\\x41bcd',
    '(?i)abc',
    '\\pLabc',
  ]) {
    assert.equal(may(pattern, ''), true, pattern)
  }
})

test('those of several patterns are asked about in their order, until one is it', () => {
  const find = createPrefilter(['\\d', 'full', 'mailbox full', 'quota'].map(neededBy), ['mailbox full'])
  const asked = (text: string, last: number | null) => {
    const indexes: number[] = []
    const found = find(text, (index) => {
      indexes.push(index)
      return index === last
    })
    assert.equal(found, last)
    return indexes
  }
  assert.deepEqual(asked('the mailbox full of 1', null), [0, 1, 2])
  assert.deepEqual(asked('the mailbox full of 1', 1), [0, 1])
  assert.deepEqual(asked('quota', null), [0, 3])
})
