import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { YieldingDigest } from './params.ts'

const plainDigest = (name: string, values: readonly string[]) =>
  createHash('sha256')
    .update(JSON.stringify([name, values]))
    .digest('hex')

test('a field that is hashed in pieces gives what its JSON gives', async () => {
  const unit = fc.constantFrom('a', '"', '\n', '\0', '\u00fc', '\u{1f600}', '\ud800', '\udc00')
  const text = fc
    .tuple(fc.nat({ max: 3 }), fc.string({ unit, minLength: 1, maxLength: 5 }), fc.nat({ max: 200_000 }))
    .map(([offset, piece, length]) => 'x'.repeat(offset) + piece.repeat(Math.ceil(length / piece.length)))
  const property = fc.asyncProperty(text, fc.array(text, { maxLength: 3 }), async (name, values) => {
    const digest = new YieldingDigest()
    await digest.addField(name, values)
    assert.equal(digest.hex(), plainDigest(name, values))
  })
  await fc.assert(property, { seed: 17, numRuns: 60 })
})
