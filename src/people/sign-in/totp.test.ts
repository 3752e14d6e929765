import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromBase32 } from '../../base/base32.ts'
import { matchingStep, newTotpSecret, otpauthUrl, totpCode, totpStep } from './totp.ts'

/** RFC 6238 appendix B: Unix seconds and the codes of eight digits. */
const VECTORS: [seconds: number, sha1: string, sha256: string, sha512: string][] = [
  [59, '94287082', '46119246', '90693936'],
  [1111111109, '07081804', '68084774', '25091201'],
  [1111111111, '14050471', '67062674', '99943326'],
  [1234567890, '89005924', '91819424', '93441116'],
  [2000000000, '69279037', '90698825', '38618901'],
  [20000000000, '65353130', '77737706', '47863826'],
]

test('the codes of RFC 6238 appendix B', () => {
  const seed = (bytes: number) => Buffer.from('1234567890'.repeat(7).slice(0, bytes))
  for (const [seconds, sha1, sha256, sha512] of VECTORS) {
    const step = totpStep(seconds * 1000)
    assert.equal(totpCode(seed(20), step, 8), sha1)
    assert.equal(totpCode(seed(32), step, 8, 'sha256'), sha256)
    assert.equal(totpCode(seed(64), step, 8, 'sha512'), sha512)
  }
})

test('the codes of RFC 4226 appendix D', () => {
  const codes = ['755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871']
  codes.forEach((code, step) => {
    assert.equal(totpCode(Buffer.from('12345678901234567890'), step), code)
  })
})

test('a code is valid in its step and the adjacent ones, and no longer after a later code', () => {
  const secret = newTotpSecret()
  const now = 1_700_000_015_000
  const step = totpStep(now)
  const match = (at: number, last = 0) => matchingStep(secret, totpCode(secret, at), now, last)
  assert.deepEqual(
    [-1, 0, 1].map((ahead) => match(step + ahead)),
    [step - 1, step, step + 1],
  )
  assert.deepEqual([match(step - 2), match(step + 2)], [null, null])
  assert.deepEqual([match(step, step), match(step, step + 1), match(step, step - 1)], [null, null, step])
  assert.equal(matchingStep(secret, '', now, 0), null)
})

test('the secret for authenticator apps is in base 32', () => {
  const secret = Buffer.from('12345678901234567890')
  const url = new URL(otpauthUrl(secret, 'Sendwright', 'a+b@example.org'))
  assert.equal(url.protocol + url.host + url.pathname, 'otpauth:totp/Sendwright:a%2Bb%40example.org')
  const text = url.searchParams.get('secret') ?? ''
  assert.equal(text, 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  assert.deepEqual(fromBase32(text), secret)
})
