import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromBase32, toBase32 } from './base32.ts'

test('the examples of RFC 4648 section 10, without padding', () => {
  const examples = {
    '': '',
    f: 'my',
    fo: 'mzxq',
    foo: 'mzxw6',
    foob: 'mzxw6yq',
    fooba: 'mzxw6ytb',
    foobar: 'mzxw6ytboi',
  }
  for (const [plain, text] of Object.entries(examples)) {
    assert.equal(toBase32(Buffer.from(plain)), text)
    assert.equal(fromBase32(text.toUpperCase())?.toString(), plain)
  }
})

test('only what toBase32 writes is read', () => {
  for (const text of ['mz', 'mzxr', 'mzxw6yr', 'm', 'mzx', 'my======', 'm0', 'mý', ' my', 'm\ny']) {
    assert.equal(fromBase32(text), null, JSON.stringify(text))
  }
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'abcxyz2347'), maxLength: 60 }), (text) => {
      const bytes = fromBase32(text)
      return bytes === null || toBase32(bytes) === text
    }),
    { seed: 32, numRuns: 2000 },
  )
})
