import assert from 'node:assert/strict'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { certificateRequest, selfSignedCertificate } from './certificate.ts'

const VALIDITY = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 86_400_000) }

test('certificates of every length can be used: a full last line of PEM leaves no empty line', () => {
  // A name's length moves the end of the text through all places of its last line.
  for (let length = 1; length <= 60; length++) {
    const name = `${'a'.repeat(length)}.example`
    const { cert, key } = selfSignedCertificate([name], VALIDITY)
    assert.doesNotMatch(cert, /\n\n/)
    createSecureContext({ cert, key })
    assert.equal(new X509Certificate(cert).checkHost(name), name)
  }
})

test('a request names the hosts and carries the key', () => {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const request = certificateRequest(['a.example', 'b.example'], keys)
  const spki = keys.publicKey.export({ type: 'spki', format: 'der' })
  for (const part of [spki, Buffer.from('a.example'), Buffer.from('b.example')])
    assert.ok(request.includes(part))
  assert.equal(request[0], 0x30)
})
