import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  exactWords,
  type FieldName,
  isWholeAddress,
  matches,
  parseExpression,
  parseFilter,
} from './filter.ts'

/** field, expression, the event's values, whether it matches */
const MATCHES: [FieldName, string, (string | number)[], boolean][] = [
  ['event', 'delivered', ['delivered'], true],
  ['event', 'DELIVERED', ['delivered'], true],
  ['event', 'rejected OR failed', ['failed'], true],
  ['event', 'rejected OR failed', ['delivered'], false],
  ['event', 'NOT failed', ['failed'], false],
  ['event', 'NOT failed', ['opened'], true],
  ['event', 'deliver', ['delivered'], false],
  ['severity', 'temporary', ['temporary'], true],
  ['severity', 'NOT temporary', [], true],
  ['recipient', 'alice@example.org', ['Alice@Example.org'], true],
  ['recipient', 'alice@example.org', ['alice@example.org.uk'], false],
  ['recipient', 'alice@example.org', ['x.alice@example.org'], false],
  ['recipient', 'alice', ['alice@example.org'], true],
  ['recipient', 'alic', ['alice@example.org'], false],
  ['recipient', 'alice@example.org OR bob@example.org', ['bob@example.org'], true],
  ['recipients', 'bob@example.org', ['alice@example.org', 'bob@example.org'], true],
  ['list', 'devs@mg.example.com', ['devs@mg.example.com'], true],
  ['message-id', '<1.a@mg.example.com>', ['1.a@mg.example.com'], true],
  ['message-id', '1.a@mg.example.com', ['1.a@mg.example.com'], true],
  ['message-id', '1.a@mg.example.com', ['11.a@mg.example.com'], false],
  ['from', 'shop@mg.example.com', ['Shop <shop@mg.example.com>'], true],
  ['from', 'shop', ['Shop <shop@mg.example.com>'], true],
  ['from', 'sho', ['Shop <shop@mg.example.com>'], false],
  ['to', 'alice bob', ['Alice <a@x.org>, Bob <b@x.org>'], true],
  ['to', 'alice AND carol', ['Alice <a@x.org>, Bob <b@x.org>'], false],
  ['subject', '"spring sale"', ['The Spring Sale is on'], true],
  ['subject', '"spring sale"', ['sale of spring'], false],
  ['subject', 'spring sale', ['sale of spring'], true],
  ['subject', 'spring NOT sale', ['spring news'], true],
  ['subject', '(spring OR autumn) AND sale', ['Autumn sale'], true],
  ['subject', 'spring OR autumn AND sale', ['spring news'], true],
  ['subject', 'and', ['this and that'], true],
  ['subject', 'größe', ['Die GRÖSSE, Größe'], true],
  ['attachment', 'report.pdf', ['report.pdf'], true],
  ['attachment', 'report', ['a.txt', 'report.pdf'], true],
  ['tags', 'a AND b', ['a', 'b', 'c'], true],
  ['tags', 'a AND b', ['a', 'c'], false],
  ['tags', 'news', ['newsletter'], false],
  ['tags', '"two words"', ['two words'], true],
  ['tags', 'two', ['two words'], false],
  ['tags', 'NOT a', [], true],
  ['size', '>100', [101], true],
  ['size', '>100', [100], false],
  ['size', '>=100 <=200', [200], true],
  ['size', '>100<200', [200], false],
  ['size', '<10 OR >20', [15], false],
  ['size', 'NOT >20', [20], true],
  ['size', '100', [100], true],
  ['size', '>1', [], false],
]

for (const [name, text, values, expected] of MATCHES) {
  test(`${name}=${text} ${expected ? 'matches' : 'does not match'} ${JSON.stringify(values)}`, () => {
    const filter = parseFilter(name, text)
    assert.ok(filter)
    assert.equal(matches(filter, values), expected)
  })
}

const FAULTS: [FieldName, string][] = [
  ['event', 'a OR'],
  ['event', 'OR a'],
  ['event', 'a AND OR b'],
  ['event', 'NOT'],
  ['event', '('],
  ['event', '()'],
  ['event', '(a'],
  ['event', 'a)'],
  ['event', '"a'],
  ['event', '""'],
  ['event', ' '],
  ['size', 'big'],
  ['size', '> '],
  ['size', '>>1'],
  ['size', '10x'],
  ['subject', 'a'.repeat(1501)],
  ['subject', 'a '.repeat(101)],
  ['subject', `${'('.repeat(22)}a${')'.repeat(22)}`],
  ['subject', `${'NOT '.repeat(22)}a`],
]

for (const [name, text] of FAULTS) {
  test(`${name}=${text.slice(0, 30)} is a syntax error`, () => assert.equal(parseFilter(name, text), null))
}

test('any text is parsed or refused, and every parsed text can be evaluated', () => {
  const piece = fc.constantFrom('a', 'B', 'AND', 'OR', 'NOT', '(', ')', '"', '>1', '<=2', ' ', '\u0000', 'é')
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.constantFrom('tags', 'size', 'subject'),
      (pieces, name) => {
        const filter = parseFilter(name as FieldName, pieces.join(' '))
        if (filter) assert.equal(typeof matches(filter, ['a', 'b', 1]), 'boolean')
      },
    ),
    { seed: 7, numRuns: 500 },
  )
})

const WHOLE: [string, string[] | null][] = [
  ['a@x.org', ['a@x.org']],
  ['a@x.org OR b@x.org', ['a@x.org', 'b@x.org']],
  ['a@x.org AND alice', ['a@x.org']],
  ['A@x.org', ['a@x.org', 'A@x.org']],
  ['a@x.org OR alice', null],
  ['alice', null],
  ['NOT a@x.org', null],
]

for (const [text, expected] of WHOLE) {
  test(`${text} searches an index for ${JSON.stringify(expected)}`, () => {
    const expression = parseExpression(text)
    assert.ok(expression)
    const words = exactWords(expression, isWholeAddress)
    assert.deepEqual(words && [...words], expected)
  })
}
