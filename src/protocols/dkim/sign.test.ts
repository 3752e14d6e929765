import assert from 'node:assert/strict'
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import * as rfc8463 from '../../../test/support/rfc8463.ts'
import { type MimeMessage, messageBytes } from '../message/mime-message.ts'
import { type DkimKey, generateDkimKey, publicRecord, readDkimKey } from './key-material.ts'
import { canonicalHeader, type SigningKey, signMessage } from './sign.ts'

const signedAt = new Date('2026-11-21T12:00:00.900Z')
let rsa: DkimKey
let ed25519: DkimKey
let keys: SigningKey[]

before(async () => {
  rsa = await readDkimKey(rfc8463.RFC8463_RSA_PEM)
  ed25519 = await generateDkimKey('ed25519')
  keys = [
    { domain: 'example.com', selector: 'k1', ...rsa },
    { domain: 'example.com', selector: 'k2', ...ed25519 },
  ]
})

/** What a verifier does, by the letter of RFC 6376 §6.1 and with nothing shared with the signer; true = pass. */
function verifies(signature: string, headers: readonly string[], body: string, key: KeyObject): boolean {
  const tag = (name: string) =>
    new RegExp(`[:;]\\s*${name}=([^;]*)`).exec(signature)?.[1]?.replace(/\s/g, '') ?? ''
  const relax = (field: string) => {
    const [, name = '', value = ''] = /^([^:]*?)[ \t]*:(.*)$/s.exec(field) ?? []
    const unfolded = value.replace(/\r\n/g, '').replace(/[ \t]+/g, ' ')
    return `${name.toLowerCase()}:${unfolded.replace(/^ | $/g, '')}`
  }
  const left = [...headers]
  const signed = tag('h')
    .split(':')
    .map((wanted) => {
      const index = left.findLastIndex((field) => relax(field).startsWith(`${wanted.toLowerCase()}:`))
      return index < 0 ? '' : `${relax(left.splice(index, 1)[0] ?? '')}\r\n`
    })
  const text = signed.join('') + relax(signature.replace(/;\s*b=[^;]*$/, '; b='))
  const canonicalBody = body.replace(/[ \t]+/g, ' ').replace(/ \r\n/g, '\r\n').replace(/(\r\n)+$/, '\r\n') // biome-ignore format: one line
  if (createHash('sha256').update(canonicalBody).digest('base64') !== tag('bh')) return false
  const data = Buffer.from(text)
  const raw = Buffer.from(tag('b'), 'base64')
  if (tag('a') === 'rsa-sha256') return verify('sha256', data, key, raw)
  return verify(null, createHash('sha256').update(data).digest(), key, raw)
}

/** Result per signature as mailauth sees it, with the public keys answered from memory. */
async function mailauthResults(message: MimeMessage, fields: string[]): Promise<string[]> {
  const records = new Map(keys.map((key) => [`${key.selector}._domainkey.example.com`, publicRecord(key)]))
  const bytes = await messageBytes({ ...message, headers: [...fields, ...message.headers] })
  const { results } = await dkimVerify(bytes, {
    resolver: async (name: string) => [[records.get(name) ?? '']],
  } as Parameters<typeof dkimVerify>[1])
  return results.map((result) => String(result.status.result))
}

const message = (headers: string[], body = 'Hello\r\n'): MimeMessage => ({
  headers,
  body: [Buffer.from(body)],
})

test('the signatures of RFC 8463 appendix A.3 verify, so the verifier of this test can be believed', async () => {
  const publicKeys = [
    createPublicKey({
      key: Buffer.concat([
        Buffer.from('302a300506032b6570032100', 'hex'),
        Buffer.from('11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', 'base64'),
      ]),
      format: 'der',
      type: 'spki',
    }),
    createPublicKey(rsa.privateKey),
  ]
  rfc8463.RFC8463_SIGNATURES.forEach((field, index) => {
    const key = publicKeys[index] as KeyObject
    assert.equal(verifies(field, rfc8463.RFC8463_HEADERS, rfc8463.RFC8463_BODY, key), true)
    assert.equal(verifies(field, rfc8463.RFC8463_HEADERS, 'Other\r\n', key), false)
  })
})

test('header fields are canonicalised as in RFC 6376 §3.4.5', () => {
  assert.equal(canonicalHeader('A: X'), 'a:X')
  assert.equal(canonicalHeader('B : Y\t\r\n\tZ  '), 'b:Y Z')
  assert.equal(canonicalHeader('Subject:'), 'subject:')
  assert.equal(canonicalHeader('Subject: \u00a0x\u00a0 '), 'subject:\u00a0x\u00a0')
})

test('RSA and Ed25519 signatures pass mailauth and the plain verifier', async () => {
  const signed = message(rfc8463.RFC8463_HEADERS, rfc8463.RFC8463_BODY)
  const fields = await signMessage(signed, keys, { signedAt })
  assert.deepEqual(await mailauthResults(signed, fields), ['pass', 'pass'])
  fields.forEach((field, index) => {
    const key = createPublicKey((keys[index] as SigningKey).privateKey)
    assert.equal(verifies(field, signed.headers, rfc8463.RFC8463_BODY, key), true)
  })
})

test('the field is folded, lists what may not be added once more than it occurs, and has no length', async () => {
  const headers = ['List-Id: <l.example.com>', 'X-Other: 1', 'To: a@example.net', 'From: b@example.com']
  const [field = ''] = await signMessage(message(headers), keys, { signedAt })
  const tags = field.replace(/\r\n /g, ' ')
  assert.match(
    tags,
    /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=example\.com; s=k1; t=1795262400; /,
  )
  assert.match(
    tags.replace(/(?<=:) /g, ''),
    / h=from:from:to:to:cc:subject:date:message-id:mime-version:content-type:content-transfer-encoding:reply-to:list-id; /,
  )
  assert.doesNotMatch(tags, / l=/)
  for (const line of field.split('\r\n')) assert.ok(line.length <= 78, line)
  assert.ok(field.split('\r\n').every((line, index) => index === 0 || line.startsWith(' ')))
})

const CLOSED =
  `From Reply-To Subject To Cc Date Message-ID Content-Type Content-Transfer-Encoding MIME-Version`.split(
    /\s+/,
  )
for (const name of CLOSED) {
  for (const isPresent of [true, false]) {
    test(`a ${name} field added above or below ${isPresent ? 'another' : 'none'} breaks the signature`, async () => {
      const others = CLOSED.filter((other) => other !== name).map((other) => `${other}: a@example.com`)
      const signed = message(isPresent ? [...others, `${name}: b@example.com`] : others)
      const fields = await signMessage(signed, keys, { signedAt })
      assert.deepEqual(await mailauthResults(signed, fields), ['pass', 'pass'])
      for (const headers of [
        [`${name}: evil@example.org`, ...signed.headers],
        [...signed.headers, `${name.toLowerCase()}: evil@example.org`],
      ]) {
        const results = await mailauthResults({ ...signed, headers }, fields)
        assert.ok(!results.includes('pass'), results.join())
        const [field = ''] = fields
        assert.equal(verifies(field, headers, 'Hello\r\n', createPublicKey(rsa.privateKey)), false)
      }
    })
  }
}

test('what servers on the way add leaves the signature as it is', async () => {
  const signed = message(rfc8463.RFC8463_HEADERS)
  const fields = await signMessage(signed, keys, { signedAt })
  const added = [
    'Received: by x',
    'Return-Path: <a@example.com>',
    'Sender: l@example.net',
    'List-Id: <l.example.net>',
  ]
  const more = [
    'List-Unsubscribe: <mailto:l@example.net>',
    'Resent-From: l@example.net',
    'X-Spam-Score: 0',
    'Delivered-To: b@example.net',
    'Bcc: b@example.net',
  ]
  const headers = [...added, ...more, ...signed.headers]
  assert.deepEqual(await mailauthResults({ ...signed, headers }, fields), ['pass', 'pass'])
})

test('repeated fields are taken from the bottom', async () => {
  const signed = message([
    'From: a@example.com',
    'To: first@example.net',
    'Cc: c@example.net',
    'To: last@example.net',
  ])
  const fields = await signMessage(signed, keys, { signedAt })
  assert.match((fields[0] ?? '').replace(/\s/g, ''), /h=from:from:to:to:to:cc:cc:subject:/)
  assert.deepEqual(await mailauthResults(signed, fields), ['pass', 'pass'])
})

test('what is signed goes by the fields of each message, whatever others had before it', async () => {
  const shapes = [
    ['From: a@example.com', 'To: b@example.com'],
    ['To: b@example.com', 'From: a@example.com'],
    ['From: a@example.com', 'no field', 'To: b@example.com'],
    ['From: a@example.com', ': no name', 'To: b@example.com'],
    ['from: a@example.com', 'TO : b@example.com'],
    ['From: a@example.com', 'To: b@example.com', 'X-Other: c', 'To: d@example.com'],
  ]
  for (const headers of [...shapes, ...shapes.toReversed()]) {
    const [field = ''] = await signMessage(message(headers), [keys[1] as SigningKey], { signedAt })
    assert.ok(verifies(field, headers, 'Hello\r\n', createPublicKey(ed25519.privateKey)), headers.join(' | '))
    const closed = 'cc:subject:date:message-id:mime-version:content-type:content-transfer-encoding:reply-to'
    const listed = `${headers.length > 3 ? 'from:from:to:to:to' : 'from:from:to:to'}:${closed}`
    assert.equal(/h=([^;]*)/.exec(field)?.[1]?.replace(/\s/g, ''), listed)
  }
})

test('without keys nothing is signed and the body stays unread', async () => {
  const unread = { sizeBytes: 1, open: () => assert.fail('body was read') }
  assert.deepEqual(await signMessage({ headers: ['From: a'], body: [unread] }, [], { signedAt }), [])
})

test('a signer never passes on a header field, domain or selector with a line end in it', async () => {
  const [key] = keys as [SigningKey]
  for (const field of [
    'Subject: a\r\nBcc: b',
    'Subject: a\nb',
    'Subject: a\rb',
    'Subject: a\0',
    'Subject: a\r\n',
  ]) {
    await assert.rejects(signMessage(message(['From: a@example.com', field]), keys, { signedAt }))
  }
  const from = message(['From: a@example.com'])
  await assert.rejects(signMessage(from, [{ ...key, domain: 'a.example; x=1' }], { signedAt }))
  await assert.rejects(signMessage(from, [{ ...key, selector: 'k\r\n' }], { signedAt }))
})

test('messages of every shape verify: long, folded, 8-bit and UTF-8 fields, odd white space, empty bodies', async () => {
  const value = fc
    .array(
      fc.constantFrom(
        'word',
        ' ',
        '  ',
        '\t',
        '\r\n ',
        '\r\n\t',
        'é',
        '日本',
        'x'.repeat(300),
        ';',
        '=',
        ':',
      ),
      {
        maxLength: 12,
      },
    )
    // A fold with nothing after it would be an empty line to a lenient reader; composers never write one.
    .map((parts) => `${parts.join('').replace(/(?:\r\n[ \t])+/g, '\r\n ')}end`)
  const body = fc
    .array(fc.constantFrom('text', ' ', '\t', '\r\n', '\r\n\r\n', '.', '日本', '\r\n  '), { maxLength: 20 })
    .map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(value, value, body, async (subject, listId, text) => {
      const headers = [
        'From: "J. Ö" <jö@example.com>',
        `Subject: ${subject}`,
        `List-Id:${listId}`,
        'MIME-Version: 1.0',
        'Content-Type: text/plain; charset=utf-8',
      ]
      const signed = message(headers, text)
      assert.deepEqual(await mailauthResults(signed, await signMessage(signed, keys, { signedAt })), [
        'pass',
        'pass',
      ])
    }),
    { seed: 8463, numRuns: 150 },
  )
})
