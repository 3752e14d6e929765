import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { request } from '../../../../test/support/events.ts'
import { createSealer } from '../../../platform/store/secrets/sealing.ts'
import { openPage, sealPage } from './page-request.ts'

const sealer = createSealer('a secret of at least 32 characters!!')
const page = request({ filters: [['subject', '"ünï" OR <b>']], gap: { in: 'since', tx: 7, seq: 9 } })

test('a token decodes to its page request and is one URL-safe path part', () => {
  const token = sealPage(sealer, page)
  assert.match(token, /^[A-Za-z0-9_-]+$/)
  assert.deepEqual(openPage(sealer, token), page)
})

test('tokens of another secret, changed ones and any other text are refused', () => {
  const token = sealPage(sealer, page)
  assert.equal(openPage(createSealer('another secret of 32 characters!!'), token), null)
  for (let at = 0; at < token.length; at += 1) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
    const opened = openPage(sealer, changed)
    // The last character may have unused bits.
    if (opened) assert.deepEqual([at, opened], [token.length - 1, page])
  }
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => openPage(sealer, text) === null),
    { seed: 11, numRuns: 300 },
  )
  assert.equal(openPage(sealer, 'A'.repeat(100_000)), null)
})
