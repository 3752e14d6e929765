import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTransaction, isSendableAddress, isSendableHeloName, needs8bit } from './envelope.ts'
import { SmtpFailure } from './failure.ts'

const ADDRESSES: [address: string, ascii: boolean, utf8: boolean][] = [
  ['a@example.com', true, true],
  ['a+b=c@[192.0.2.1]', true, true],
  ['"john doe"@example.com', true, true],
  ['"a\\"b"@example.com', true, true],
  ['jö@example.com', false, true],
  ['a@bücher.example', false, true],
  ['', false, false],
  ['a', false, false],
  ['@example.com', false, false],
  ['a@', false, false],
  ['a b@example.com', false, false],
  ['a@b@example.com', false, false],
  ['a@example.com\r\nRCPT TO:<b@example.com>', false, false],
  ['"a\r\nDATA"@example.com', false, false],
  ['"a\\\rb"@example.com', false, false],
  ['a@example.com> SIZE=1', false, false],
  ['"a>b"@example.com', false, false],
  ['a<b@example.com', false, false],
  ['a\0@example.com', false, false],
  ['a\u0085@example.com', false, false],
  ['a\u2028@example.com', false, false],
  ['a\ud800@example.com', false, false],
  [`${'a'.repeat(513)}@example.com`, false, false],
]

test('an address is sendable when it can stand between angle brackets and nothing else can be read into it', () => {
  for (const [address, ascii, utf8] of ADDRESSES) {
    assert.equal(isSendableAddress(address, false), ascii, JSON.stringify(address))
    assert.equal(isSendableAddress(address, true), utf8, JSON.stringify(address))
  }
})

test('a HELO name is a name or an address literal', () => {
  for (const name of ['mail.example.com', '[192.0.2.1]', '[IPv6:2001:db8::1]'])
    assert.ok(isSendableHeloName(name))
  for (const name of ['', 'a b', 'a\r\nMAIL', 'ä.example', 'a'.repeat(256)])
    assert.ok(!isSendableHeloName(name))
})

test('a transaction that cannot be written is refused with its stage', () => {
  const good = {
    returnPath: '',
    recipients: ['b@example.net'],
    message: { headers: ['Subject: a\r\n b'], body: [] },
    utf8: false,
  }
  const headers = (...fields: string[]) => ({ ...good, message: { headers: fields, body: [] } })
  checkTransaction(good)
  const cases: [typeof good, stage: string, reason: string][] = [
    [{ ...good, returnPath: 'a b' }, 'mail', 'address'],
    [{ ...good, recipients: ['b@example.net', 'x>'] }, 'rcpt', 'address'],
    [{ ...good, recipients: [] }, 'rcpt', 'address'],
    [{ ...good, recipients: Array(1001).fill('b@example.net') }, 'rcpt', 'address'],
    [headers('Subject: a\r\nBcc: c@example.net'), 'data', 'message'],
    [headers('Subject: a\nb'), 'data', 'message'],
    [headers('Subject: a\r b'), 'data', 'message'],
    [headers('Subject: a\r\n'), 'data', 'message'],
    [headers('Subject: \0'), 'data', 'message'],
    [headers('no colon'), 'data', 'message'],
    [headers(': no name'), 'data', 'message'],
    [headers(''), 'data', 'message'],
  ]
  for (const [transaction, stage, reason] of cases) {
    assert.throws(
      () => checkTransaction(transaction),
      (error) => error instanceof SmtpFailure && error.stage === stage && error.reason === reason,
    )
  }
})

test('8-bit is needed for bytes above 127 in header or body, and presumed of a lazy chunk', () => {
  const lazy = { sizeBytes: 1, open: async function* () {} }
  assert.equal(needs8bit({ headers: ['A: b'], body: [Buffer.from('abc')] }), false)
  assert.equal(needs8bit({ headers: ['A: ö'], body: [] }), true)
  assert.equal(needs8bit({ headers: [], body: [Buffer.from('a'), Buffer.from('ö')] }), true)
  assert.equal(needs8bit({ headers: [], body: [lazy] }), true)
})
