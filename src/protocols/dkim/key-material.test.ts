import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import {
  RFC8463_ED25519_RECORD,
  RFC8463_ED25519_SEED,
  RFC8463_RSA_PEM,
  RFC8463_RSA_RECORD,
} from '../../../test/support/rfc8463.ts'
import { DkimKeyError, dkimKeyToPem, generateDkimKey, publicRecord, readDkimKey } from './key-material.ts'

const ed25519FromSeed = (seed: string) =>
  createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(seed, 'base64')]),
    format: 'der',
    type: 'pkcs8',
  })

test('the keys of RFC 8463 appendix A.1 give the records of A.2', async () => {
  const rsa = await readDkimKey(RFC8463_RSA_PEM)
  assert.equal(`v=DKIM1; ${publicRecord(rsa)}`, RFC8463_RSA_RECORD)
  const ed25519 = { algorithm: 'ed25519' as const, privateKey: ed25519FromSeed(RFC8463_ED25519_SEED) }
  assert.equal(`v=DKIM1; ${publicRecord(ed25519)}`, RFC8463_ED25519_RECORD)
})

test('a generated key survives the way through PEM', async () => {
  for (const key of [await generateDkimKey('rsa', 1024), await generateDkimKey('ed25519')]) {
    const pem = dkimKeyToPem(key)
    assert.match(pem, /^-----BEGIN PRIVATE KEY-----/)
    const again = await readDkimKey(pem)
    assert.equal(again.algorithm, key.algorithm)
    assert.equal(publicRecord(again), publicRecord(key))
  }
})

test('a generated RSA key has the bits asked for, and other sizes are refused', async () => {
  const key = await generateDkimKey('rsa')
  assert.equal(key.privateKey.asymmetricKeyDetails?.modulusLength, 2048)
  for (const bits of [512, 1023, 4097, 1024.5, Number.NaN]) {
    await assert.rejects(generateDkimKey('rsa', bits), DkimKeyError)
  }
})

test('PEM that DKIM cannot use is refused with the rule it breaks', async () => {
  const pem = (key: ReturnType<typeof createPrivateKey>) =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const rsa512 = generateKeyPairSync('rsa', { modulusLength: 512 }).privateKey
  const encrypted = rsa512.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' })
  const bigExponent = generateKeyPairSync('rsa', { modulusLength: 1024, publicExponent: 0x10001 })
  const jwk = bigExponent.privateKey.export({ format: 'jwk' })
  const other = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ format: 'jwk' })
  const mismatched = createPrivateKey({ key: { ...jwk, n: other.n as string }, format: 'jwk' })
  const cases: [string, RegExp][] = [
    ['', /not an unencrypted/],
    ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----', /not a valid PEM/],
    [bigExponent.publicKey.export({ type: 'spki', format: 'pem' }).toString(), /not an unencrypted/],
    [encrypted.toString(), /not an unencrypted/],
    [pem(rsa512), /RSA key of 512 bits/],
    [pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey), /type "ec"/],
    [pem(generateKeyPairSync('rsa-pss', { modulusLength: 1024 }).privateKey), /type "rsa-pss"/],
    [pem(mismatched), /do not fit together/],
    [`${RFC8463_RSA_PEM}${' '.repeat(8192)}`, /over 8192/],
  ]
  for (const [text, message] of cases) {
    await assert.rejects(
      readDkimKey(text),
      (error) => error instanceof DkimKeyError && message.test(error.message),
    )
  }
})
