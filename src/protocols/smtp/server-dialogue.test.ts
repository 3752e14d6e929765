import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DialogueOptions, ServerDialogue, type Step } from './server-dialogue.ts'

const OPTIONS: DialogueOptions = {
  hostname: 'smtp.example.com',
  sizeBytesMax: 26_214_400,
  recipientsMax: 3,
  authWithoutTls: false,
  loginRequired: true,
  startTls: true,
  holdMaxSeconds: 604_800,
  now: () => Date.parse('2026-06-01T12:00:00.250Z'),
}

type Where = 'plain' | 'tls' | 'in' | 'mail' | 'utf8' | 'rcpt'

/** A dialogue that has come so far: TLS and EHLO, login, MAIL, RCPT. */
function at(where: Where, options = OPTIONS): ServerDialogue {
  const dialogue = new ServerDialogue(options, where !== 'plain')
  dialogue.take(Buffer.from('EHLO client.example'))
  if (where === 'plain' || where === 'tls') return dialogue
  dialogue.loggedIn()
  if (where === 'in') return dialogue
  dialogue.began(where === 'utf8')
  if (where === 'rcpt') dialogue.recipientTaken()
  return dialogue
}

const shown = (step: Step) => (step.kind === 'reply' ? `${step.reply}${step.close ? ' [closes]' : ''}` : step)

const BASE64 = Buffer.from('\0bob@example.com\0secret').toString('base64')
const LONG = 'x'.repeat(600)

const TOO_LONG = '501 5.5.4 The message cannot be held for more than 604800 seconds'
const NO_TIME = '501 5.5.4 HOLDFOR needs seconds, HOLDUNTIL a date and time'
const PAST = '501 5.5.4 HOLDUNTIL is in the past'
/** RFC 4865 §4, at noon of 1 June 2026 and a quarter of a second: the time in Unix milliseconds, or the refusal. */
const HOLDS: [parameters: string, expected: number | string][] = [
  ['HOLDFOR=60', Date.parse('2026-06-01T12:01:00.250Z')],
  ['holdfor=604800', Date.parse('2026-06-08T12:00:00.250Z')],
  ['HOLDFOR=604801', TOO_LONG],
  ['HOLDFOR=999999999', TOO_LONG],
  ['HOLDFOR=1000000000', NO_TIME],
  ['HOLDFOR=0', NO_TIME],
  ['HOLDFOR=-5', NO_TIME],
  ['HOLDFOR=soon', NO_TIME],
  ['HOLDFOR', NO_TIME],
  ['HOLDUNTIL=2026-06-02T00:00:00Z', Date.parse('2026-06-02T00:00:00Z')],
  ['HOLDUNTIL=2026-06-02t00:00:00.5z', Date.parse('2026-06-02T00:00:00.5Z')],
  ['HOLDUNTIL=2026-06-02T02:00:00+02:00', Date.parse('2026-06-02T00:00:00Z')],
  ['HOLDUNTIL=2026-06-08T12:00:01Z', TOO_LONG],
  ['HOLDUNTIL=2026-06-01T12:00:00Z', PAST],
  ['HOLDUNTIL=1996-12-19T16:39:57-08:00', PAST],
  ['HOLDUNTIL=2026-06-31T00:00:00Z', NO_TIME],
  ['HOLDUNTIL=2026-06-02T24:30:00Z', NO_TIME],
  ['HOLDUNTIL=2026-06-02T00:00:00', NO_TIME],
  ['HOLDUNTIL=2026-06-02', NO_TIME],
  ['HOLDUNTIL', NO_TIME],
  ['HOLDFOR=60 HOLDUNTIL=2026-06-02T00:00:00Z', '501 5.5.4 HOLDFOR or HOLDUNTIL, not both'],
  ['HOLDFOR=60 HOLDFOR=60', '501 5.1.7 cannot parse from address'],
]

const CASES: [where: Where, line: string, expected: string | Step][] = [
  ['plain', 'EHLO', '501 5.5.4 EHLO needs a name'],
  ['plain', 'helo client.example', '250 smtp.example.com'],
  ['plain', 'STARTTLS', { kind: 'starttls' }],
  ['plain', 'starttls now', '501 5.5.4 No argument allowed'],
  ['tls', 'STARTTLS', '503 5.5.1 TLS is already on'],
  ['plain', `AUTH PLAIN ${BASE64}`, '538 5.7.11 Encryption required'],
  ['plain', 'AUTH LOGIN', '538 5.7.11 Encryption required'],
  ['plain', 'AUTH CRAM-MD5', '538 5.7.11 Encryption required'],
  ['tls', `AUTH PLAIN ${BASE64}`, { kind: 'login', user: 'bob@example.com', password: 'secret' }],
  ['tls', `auth plain ${BASE64}`, { kind: 'login', user: 'bob@example.com', password: 'secret' }],
  ['tls', 'AUTH PLAIN', '334 '],
  ['tls', 'AUTH PLAIN =', { kind: 'login', user: '', password: '' }],
  ['tls', 'AUTH PLAIN %%%%', '501 5.5.2 Not base64'],
  ['tls', 'AUTH PLAIN AAA', '501 5.5.2 Not base64'],
  ['tls', 'AUTH LOGIN', '334 VXNlcm5hbWU6'],
  ['tls', 'AUTH LOGIN Ym9i', '334 UGFzc3dvcmQ6'],
  ['tls', 'AUTH CRAM-MD5', '504 5.5.4 Unknown mechanism'],
  ['tls', 'AUTH', '501 5.5.4 Syntax: AUTH mechanism'],
  ['in', `AUTH PLAIN ${BASE64}`, '503 5.5.1 Already authenticated'],
  ['plain', 'MAIL FROM:<a@example.com>', '530 5.7.0 Authentication required'],
  ['tls', 'MAIL FROM:<a@example.com>', '530 5.7.0 Authentication required'],
  ['tls', 'MAIL FROM:a@example.com', '530 5.7.0 Authentication required'],
  ['in', 'MAIL FROM:<a@example.com>', { kind: 'mail', sender: 'a@example.com', utf8: false }],
  ['in', 'mail from: <a@example.com>', { kind: 'mail', sender: 'a@example.com', utf8: false }],
  ['in', 'MAIL FROM:<>', { kind: 'mail', sender: '', utf8: false }],
  ['in', 'MAIL FROM:<"a b>c"@example.com>', { kind: 'mail', sender: '"a b>c"@example.com', utf8: false }],
  ['in', 'MAIL FROM:<ä@example.com> SMTPUTF8', { kind: 'mail', sender: 'ä@example.com', utf8: true }],
  ['in', 'MAIL FROM:<ä@example.com>', '553 5.6.7 Non-ASCII addresses need SMTPUTF8'],
  [
    'in',
    'MAIL FROM:<a@b.example> SIZE=26214400 BODY=8BITMIME AUTH=<>',
    { kind: 'mail', sender: 'a@b.example', utf8: false },
  ],
  ['in', 'MAIL FROM:<a@b.example> SIZE=26214401', '552 5.3.4 Message is too large, max size is 25MB'],
  [
    'in',
    'MAIL FROM:<a@b.example> SIZE=99999999999999999999',
    '552 5.3.4 Message is too large, max size is 25MB',
  ],
  ['in', 'MAIL FROM:<a@b.example> SIZE=-1', '501 5.5.4 SIZE needs a number'],
  ['in', 'MAIL FROM:<a@b.example> SIZE', '501 5.5.4 SIZE needs a number'],
  ['in', 'MAIL FROM:<a@b.example> BODY=BINARYMIME', '501 5.5.4 BODY is 7BIT or 8BITMIME'],
  ['in', 'MAIL FROM:<a@b.example> SMTPUTF8=1', '501 5.5.4 SMTPUTF8 has no value'],
  ['in', 'MAIL FROM:<a@b.example> RET=HDRS', '555 5.5.4 Unknown parameter'],
  ['in', 'MAIL FROM:<a@b.example> ENVID=x', '555 5.5.4 Unknown parameter'],
  [
    'in',
    'MAIL FROM:<a@b.example> REQUIRETLS',
    { kind: 'mail', sender: 'a@b.example', utf8: false, requireTls: true },
  ],
  ['in', 'MAIL FROM:<a@b.example> REQUIRETLS=1', '501 5.5.4 REQUIRETLS has no value'],
  ...HOLDS.map(([parameters, expected]): (typeof CASES)[number] => [
    'in',
    `MAIL FROM:<a@b.example> ${parameters}`,
    typeof expected === 'string'
      ? expected
      : { kind: 'mail', sender: 'a@b.example', utf8: false, holdUntil: expected },
  ]),
  ['tls', 'MAIL FROM:<a@b.example> HOLDFOR=60', '530 5.7.0 Authentication required'],
  ['in', 'MAIL FROM:<a@b.example> SIZE=1 SIZE=2', '501 5.1.7 cannot parse from address'],
  ['in', 'MAIL FROM:a@b.example', '501 5.1.7 cannot parse from address'],
  ['in', 'MAIL FROM:<a@b.example', '501 5.1.7 cannot parse from address'],
  ['in', 'MAIL TO:<a@b.example>', '501 5.1.7 cannot parse from address'],
  ['mail', 'MAIL FROM:<a@b.example>', '503 5.5.1 A transaction is open'],
  ['in', 'RCPT TO:<a@b.example>', '503 5.5.1 MAIL FROM first'],
  ['mail', 'RCPT TO:<a@b.example>', { kind: 'recipient', address: 'a@b.example' }],
  ['mail', 'RCPT TO:<a@b.example> NOTIFY=NEVER', '555 5.5.4 Unknown parameter'],
  ['mail', 'RCPT TO:<a@b.example> ORCPT=rfc822;a@b.example', '555 5.5.4 Unknown parameter'],
  ['mail', 'RCPT TO:a@b.example', '501 5.1.3 cannot parse to address'],
  ['mail', 'RCPT TO:<a@b.example>, <c@d.example>', '501 5.1.3 cannot parse to address'],
  ['mail', 'RCPT TO:<ä@example.com>', '553 5.6.7 Non-ASCII addresses need SMTPUTF8'],
  ['utf8', 'RCPT TO:<ä@example.com>', { kind: 'recipient', address: 'ä@example.com' }],
  ['in', 'DATA', '503 5.5.1 MAIL FROM first'],
  ['mail', 'DATA', '503 5.5.1 No recipients'],
  ['rcpt', 'DATA', { kind: 'content' }],
  ['rcpt', 'DATA now', '501 5.5.4 No argument allowed'],
  ['plain', 'RSET', '250 2.0.0 OK'],
  ['plain', 'NOOP whatever', '250 2.0.0 OK'],
  ['plain', 'VRFY postmaster', '252 2.1.5 Cannot verify, will take the message and try'],
  ['plain', 'EXPN list', '252 2.1.5 Cannot verify, will take the message and try'],
  ['plain', 'HELP', '214 2.0.0 See RFC 5321'],
  ['plain', 'QUIT', '221 2.0.0 Bye [closes]'],
  ['rcpt', 'BDAT 10 LAST', '502 5.5.1 BDAT is not offered [closes]'],
  ['in', 'ETRN example.com', '502 5.5.1 ETRN is not offered'],
  ['in', 'TURN', '502 5.5.1 TURN is not offered'],
  ['in', 'HLEO', '500 5.5.1 Unknown command'],
  ['in', '', '500 5.5.1 Unknown command'],
  ['in', 'GET / HTTP/1.1', '500 5.5.1 This is a mail server [closes]'],
  ['in', 'Host: example.com', '500 5.5.1 This is a mail server [closes]'],
  ['in', 'NOOP\0', '500 5.5.2 Syntax error'],
  ['in', 'MAIL FROM:<a@b.example>\rRCPT TO:<c@d.example>', '500 5.5.2 Syntax error'],
  ['in', `NOOP ${LONG}`, '500 5.5.2 Line too long'],
  ['in', `MAIL FROM:<a@b.example> SIZE=1 ${LONG}`, '500 5.5.2 Line too long'],
  [
    'utf8',
    `RCPT TO:<ä${'x'.repeat(500)}@example.com>`,
    { kind: 'recipient', address: `ä${'x'.repeat(500)}@example.com` },
  ],
  [
    'tls',
    `AUTH PLAIN ${Buffer.from(`\0a\0${LONG}`).toString('base64')}`,
    { kind: 'login', user: 'a', password: LONG },
  ],
]

for (const [where, line, expected] of CASES) {
  test(`${where}: ${JSON.stringify(line.slice(0, 70))}`, () => {
    assert.deepEqual(shown(at(where).take(Buffer.from(line))), expected)
  })
}

test('EHLO lists what is offered: AUTH only where it may be used, STARTTLS only before TLS, REQUIRETLS only in it', () => {
  const ehlo = (options: DialogueOptions, secure: boolean) => {
    const step = new ServerDialogue(options, secure).take(Buffer.from('EHLO a'))
    return step.kind === 'reply' ? step.reply.split('\r\n') : []
  }
  const common = ['PIPELINING', 'SIZE 26214400', '8BITMIME', 'SMTPUTF8', 'ENHANCEDSTATUSCODES']
  const start = ['smtp.example.com', ...common].map((line) => `250-${line}`)
  const hold = '250-FUTURERELEASE 604800 2026-06-08T12:00:00Z'
  assert.deepEqual(ehlo(OPTIONS, false), [...start, '250 STARTTLS'])
  assert.deepEqual(ehlo(OPTIONS, true), [...start, '250-REQUIRETLS', hold, '250 AUTH PLAIN LOGIN'])
  assert.deepEqual(ehlo({ ...OPTIONS, authWithoutTls: true }, false), [
    ...start,
    hold,
    '250-STARTTLS',
    '250 AUTH PLAIN LOGIN',
  ])
  assert.deepEqual(ehlo({ ...OPTIONS, authWithoutTls: true, holdMaxSeconds: null }, false).slice(-2), [
    '250-STARTTLS',
    '250 AUTH PLAIN LOGIN',
  ])
})

test('REQUIRETLS without TLS: what to do first; parameters that are not offered are unknown', () => {
  const plain = { ...OPTIONS, authWithoutTls: true }
  const say = (options: DialogueOptions, parameter: string) => {
    const dialogue = new ServerDialogue(options, false)
    dialogue.take(Buffer.from('EHLO a'))
    dialogue.loggedIn()
    return shown(dialogue.take(Buffer.from(`MAIL FROM:<a@b.example> ${parameter}`)))
  }
  assert.equal(say(plain, 'REQUIRETLS'), '530 5.7.0 Must issue a STARTTLS command first')
  assert.equal(say({ ...plain, startTls: false }, 'REQUIRETLS'), '555 5.5.4 Unknown parameter')
  assert.equal(say({ ...plain, holdMaxSeconds: null }, 'HOLDFOR=60'), '555 5.5.4 Unknown parameter')
})

test('AUTH LOGIN asks for name and password, and can be cancelled', () => {
  const dialogue = at('tls')
  const say = (line: string) => shown(dialogue.take(Buffer.from(line)))
  assert.equal(say('AUTH LOGIN'), '334 VXNlcm5hbWU6')
  assert.equal(say('*'), '501 5.7.0 Authentication cancelled')
  assert.equal(say('AUTH LOGIN'), '334 VXNlcm5hbWU6')
  assert.equal(say('Ym9i'), '334 UGFzc3dvcmQ6')
  assert.deepEqual(say('c2VjcmV0'), { kind: 'login', user: 'bob', password: 'secret' })
  assert.equal(say('NOOP'), '250 2.0.0 OK')
})

test('acting for another identity fails as a wrong password does', () => {
  const other = Buffer.from('other@example.com\0bob@example.com\0secret').toString('base64')
  assert.deepEqual(at('tls').take(Buffer.from(`AUTH PLAIN ${other}`)), {
    kind: 'login',
    user: '',
    password: '',
  })
})

test('one recipient too many is refused for now', () => {
  const dialogue = at('mail')
  for (let count = 0; count < OPTIONS.recipientsMax; count++) dialogue.recipientTaken()
  assert.equal(shown(dialogue.take(Buffer.from('RCPT TO:<a@b.example>'))), '452 4.5.3 Too many recipients')
})

test('after TLS everything said before is forgotten', () => {
  const dialogue = new ServerDialogue({ ...OPTIONS, authWithoutTls: true }, false)
  dialogue.take(Buffer.from('EHLO a'))
  dialogue.loggedIn()
  dialogue.began(false)
  dialogue.recipientTaken()
  dialogue.secured()
  assert.equal(shown(dialogue.take(Buffer.from('DATA'))), '503 5.5.1 MAIL FROM first')
  assert.equal(
    shown(dialogue.take(Buffer.from('MAIL FROM:<a@b.example>'))),
    '530 5.7.0 Authentication required',
  )
  assert.equal(shown(dialogue.take(Buffer.from(`AUTH PLAIN ${BASE64}`))), '503 5.5.1 EHLO first')
})

test('a server without a certificate neither offers STARTTLS nor begins it', () => {
  const dialogue = new ServerDialogue({ ...OPTIONS, startTls: false }, false)
  assert.doesNotMatch(String(shown(dialogue.take(Buffer.from('EHLO a')))), /STARTTLS/)
  assert.equal(shown(dialogue.take(Buffer.from('STARTTLS'))), '502 5.5.1 STARTTLS is not offered')
})

test('RSET and EHLO end the transaction', () => {
  for (const line of ['RSET', 'EHLO again', 'HELO again']) {
    const dialogue = at('rcpt')
    dialogue.take(Buffer.from(line))
    assert.equal(shown(dialogue.take(Buffer.from('DATA'))), '503 5.5.1 MAIL FROM first')
  }
})

test('whatever a client says: one reply each, and content only after a login, a sender and a recipient', () => {
  const word = fc.constantFrom(
    ...[
      'EHLO x',
      'HELO x',
      'RSET',
      'DATA',
      'NOOP',
      'STARTTLS',
      'AUTH LOGIN',
      'AUTH PLAIN',
      BASE64,
      '*',
      'Ym9i',
    ],
    ...[
      'MAIL FROM:<a@b.example>',
      'MAIL FROM:<>',
      'RCPT TO:<c@d.example>',
      'RCPT TO:<>',
      'MAIL FROM:<a',
      '\0',
    ],
  )
  const line = fc.oneof({ weight: 9, arbitrary: word }, { weight: 1, arbitrary: fc.string() })
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
      const dialogue = new ServerDialogue({ ...OPTIONS, authWithoutTls: true }, false)
      let [login, sender, recipients] = [false, false, 0]
      for (const text of lines) {
        const step = dialogue.take(Buffer.from(text))
        if (step.kind === 'reply') {
          assert.match(step.reply, /^\d{3}[ -][\x20-\x7e\r\n]*$/)
          if (/^(?:EHLO|HELO|RSET)/.test(text) && step.reply.startsWith('250'))
            [sender, recipients] = [false, 0]
        } else if (step.kind === 'login') {
          dialogue.loggedIn()
          login = true
        } else if (step.kind === 'starttls') {
          dialogue.secured()
          ;[login, sender, recipients] = [false, false, 0]
        } else if (step.kind === 'mail') {
          assert.ok(login && !sender)
          dialogue.began(false)
          sender = true
        } else if (step.kind === 'recipient') {
          assert.ok(sender)
          dialogue.recipientTaken()
          recipients++
        } else {
          assert.ok(login && sender && recipients > 0)
          dialogue.ended()
          ;[sender, recipients] = [false, 0]
        }
      }
    }),
    { seed: 31, numRuns: 2_000 },
  )
})
