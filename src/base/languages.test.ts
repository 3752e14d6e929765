import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languageOf, preferredLanguage } from './languages.ts'

test('the language of a page is the best of those that the reader prefers', () => {
  for (const [field, expected] of [
    [undefined, 'nl'],
    ['', 'nl'],
    ['de', 'de'],
    ['pt-BR,pt;q=0.9,en;q=0.8', 'pt'],
    ['sv, fr;q=0.4, es;q=0.6', 'es'],
    ['ja, zh;q=0.5', 'nl'],
    ['de;q=0, it;q=0.1', 'it'],
    ['EN-us', 'en'],
    ['*', 'nl'],
    ['de;q=abc', 'de'],
    [`${'xx,'.repeat(5_000)}de`, 'nl'],
  ] as const)
    assert.equal(preferredLanguage(field, 'nl'), expected, field)
  assert.equal(languageOf('__proto__'), null)
})
