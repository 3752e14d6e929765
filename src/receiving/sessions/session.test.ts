/** Sessions over real sockets, with a submission that only notes what it gets. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eventually } from '../../../test/support/service.ts'
import { type Dialogue, openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { startTestListener } from '../../../test/support/test-listener.ts'
import {
  BadRequest,
  Forbidden,
  InsufficientStorage,
  NotFound,
  PayloadTooLarge,
  QuotaExceeded,
  TooManyRequests,
  Unavailable,
} from '../../base/process/errors.ts'
import { type Clock, systemClock } from '../../base/time/clock.ts'
import { createRateLimiter, DEFAULT_LIMITS } from '../../platform/http/limits/rate-limit.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import { StoreFull, StoreUnavailable } from '../../platform/store/store.ts'
import { readChunks } from '../../protocols/message/mime-message.ts'
import { bareAddress } from '../../protocols/mime/address.ts'
import { type SessionLimits, type SessionParts, SMTP_LIMITS, type SmtpLogin } from './session.ts'
import type { ListenerOptions } from './smtp-listener.ts'
import { createSubmission, type SubmissionParts, type SubmittedMail } from './submission.ts'

const LOGIN: SmtpLogin = { login: 'bob@mg.example.com', accountId: 'a', domainId: 'd', changedAt: 1 }
const DOMAIN = 'mg.example.com'
const PASSWORD = 'secret'

interface Taken {
  raw: string
  recipients: string[]
  inMemory: boolean
}

interface Rig {
  host: string
  port: number
  implicitTlsPort: number
  taken: Taken[]
  failedLogins: string[]
  spoolFolder: string
  stop(): Promise<void>
}

interface RigOptions extends Partial<Pick<SubmissionParts, 'stillValid' | 'sendingDomain' | 'limiter'>> {
  limits?: Partial<SessionLimits>
  listener?: Partial<ListenerOptions>
  reception?: SessionParts['reception']
  authWithoutTls?: boolean
  clock?: Clock
  submit?(mail: SubmittedMail): Promise<{ messageId: string }>
}

async function startRig(t: TestContext, options: RigOptions = {}): Promise<Rig> {
  const folder = await temporaryFolder(t)
  const blobs = await openBlobs(folder)
  const taken: Taken[] = []
  const failedLogins: string[] = []
  const listener = await startTestListener(
    folder,
    {
      limits: { ...SMTP_LIMITS, messagesMax: 1_000, idleMs: 20_000, ...options.limits },
      authWithoutTls: () => options.authWithoutTls ?? true,
      authenticate: async (user, password) => (user === LOGIN.login && password === PASSWORD ? LOGIN : null),
      loginFailed: async (address) => void failedLogins.push(address),
      submission: createSubmission({
        stillValid: options.stillValid ?? (async () => true),
        sendingDomain: options.sendingDomain ?? (async () => ({ name: DOMAIN, scheduleMaxMs: 3_600_000 })),
        clock: options.clock ?? systemClock,
        limiter: options.limiter ?? createRateLimiter({ clock: systemClock, off: true }),
        async submit(mail) {
          if (options.submit) return options.submit(mail)
          const pieces: Uint8Array[] = []
          for await (const bytes of readChunks([mail.raw])) pieces.push(bytes)
          taken.push({
            raw: Buffer.concat(pieces).toString('latin1'),
            recipients: mail.recipients.map(bareAddress),
            inMemory: mail.raw instanceof Uint8Array,
          })
          return { messageId: `<${taken.length}@${DOMAIN}>` }
        },
      }),
      reception: options.reception ?? null,
      blobs,
      clock: options.clock ?? systemClock,
    },
    { connectionsPerAddressMax: 100, ...options.listener },
  )
  let stopped: Promise<void> | null = null
  const stop = () => {
    stopped ??= listener.close(5_000)
    return stopped
  }
  t.after(stop)
  const { host, port, implicitTlsPort } = listener
  return {
    host,
    port,
    implicitTlsPort: implicitTlsPort as number,
    taken,
    failedLogins,
    spoolFolder: join(folder, 'spool'),
    stop,
  }
}

async function open(t: TestContext, rig: Rig): Promise<Dialogue> {
  const client = await openDialogue(t, rig)
  assert.equal(await client.reply(), '220 smtp.example.com ESMTP Sendwright')
  await client.say('EHLO client.example')
  return client
}

async function logIn(t: TestContext, rig: Rig): Promise<Dialogue> {
  const client = await open(t, rig)
  const answer = await client.say(`AUTH PLAIN ${plainLogin(LOGIN.login, PASSWORD)}`)
  assert.equal(answer, '235 2.7.0 Authentication successful')
  return client
}

/** Up to the 354. */
async function beginData(client: Dialogue, recipient = 'alice@example.org'): Promise<void> {
  assert.equal(await client.say('MAIL FROM:<bob@mg.example.com>'), '250 2.1.0 OK')
  assert.equal(await client.say(`RCPT TO:<${recipient}>`), '250 2.1.5 OK')
  assert.match((await client.say('DATA')) ?? '', /^354 /)
}

const MESSAGE = 'From: bob@mg.example.com\r\nSubject: S\r\n\r\nHello\r\n'

async function send(client: Dialogue, message = MESSAGE): Promise<string | null> {
  await beginData(client)
  client.write(`${message}.\r\n`)
  return client.reply()
}

test('a message goes through byte for byte, dots undone, and its Message-Id comes back', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  await beginData(client)
  const bytes = 'X: \xe4\0\r\n\r\n.\r\n..b\r\ntrailing blanks  \r\n\t\r\n'
  client.write(Buffer.from(`${bytes.replace(/^\./gm, '..')}.\r\n`, 'latin1'))
  assert.equal(await client.reply(), '250 2.0.0 Queued <1@mg.example.com>')
  assert.deepEqual(rig.taken, [{ raw: bytes, recipients: ['alice@example.org'], inMemory: true }])
  assert.equal(await client.say('QUIT'), '221 2.0.0 Bye')
  assert.equal(await client.reply(), null)
})

test('AUTH LOGIN, and AUTH over STARTTLS and over TLS from the first byte', async (t) => {
  const rig = await startRig(t, { authWithoutTls: false })
  const plain = await open(t, rig)
  assert.equal(await plain.say('AUTH LOGIN'), '538 5.7.11 Encryption required')
  assert.equal(await plain.say('STARTTLS'), '220 2.0.0 Ready to start TLS')
  await plain.secure()
  const tls = await openDialogue(t, { host: rig.host, port: rig.implicitTlsPort, implicitTls: true })
  await tls.reply()
  for (const client of [plain, tls]) {
    assert.match((await client.say('EHLO client.example')) ?? '', /250 AUTH PLAIN LOGIN$/)
    assert.equal(await client.say('AUTH LOGIN'), '334 VXNlcm5hbWU6')
    assert.equal(await client.say(Buffer.from(LOGIN.login).toString('base64')), '334 UGFzc3dvcmQ6')
    const answer = await client.say(Buffer.from(PASSWORD).toString('base64'))
    assert.equal(answer, '235 2.7.0 Authentication successful')
    assert.match((await send(client)) ?? '', /^250 2\.0\.0 Queued/)
  }
})

test('failed logins: the same answer for every cause, each held back, and the fifth is the last', async (t) => {
  const rig = await startRig(t)
  const client = await open(t, rig)
  const tries = [
    plainLogin('nobody@mg.example.com', PASSWORD),
    plainLogin(LOGIN.login, 'wrong'),
    plainLogin('bob', PASSWORD),
    plainLogin('', ''),
    Buffer.from(`alice@mg.example.com\0${LOGIN.login}\0${PASSWORD}`).toString('base64'),
  ]
  for (const response of tries) {
    assert.equal(await client.say(`AUTH PLAIN ${response}`), '535 5.7.8 Authentication failed')
  }
  assert.deepEqual(await client.rest(), ['421 4.7.0 Too many failed logins'])
  assert.equal(rig.failedLogins.length, 5)
})

test('a changed credential ends the session at the next MAIL FROM', async (t) => {
  let valid = true
  const rig = await startRig(t, { stillValid: async () => valid })
  const client = await logIn(t, rig)
  await send(client)
  valid = false
  assert.equal(await client.say('MAIL FROM:<>'), '421 4.7.0 The credential has changed')
  assert.equal(await client.reply(), null)
})

test('a domain that may not send is refused at MAIL FROM', async (t) => {
  const why = 'Domain mg.example.com is not allowed to send: The domain is disabled'
  const rig = await startRig(t, {
    sendingDomain: async () => {
      throw new Forbidden(why)
    },
  })
  const client = await logIn(t, rig)
  assert.equal(await client.say('MAIL FROM:<>'), `550 5.7.1 ${why}`)
  assert.equal(await client.say('RCPT TO:<a@example.org>'), '503 5.5.1 MAIL FROM first')
})

test('rate limits: requests at MAIL FROM, recipients at the end of DATA', async (t) => {
  const requests = createRateLimiter({
    clock: systemClock,
    limits: { ...DEFAULT_LIMITS, sending: { count: 1, windowMs: 3_600_000 } },
  })
  const first = await logIn(t, await startRig(t, { limiter: requests }))
  assert.match((await send(first)) ?? '', /^250/)
  assert.match(
    (await first.say('MAIL FROM:<>')) ?? '',
    /^451 4\.7\.1 Domain mg\.example\.com is not allowed to send: account-requests-per-sec limit exceeded, try again after \d+ seconds$/,
  )
  const recipients = createRateLimiter({
    clock: systemClock,
    limits: { ...DEFAULT_LIMITS, 'sending-recipients': { count: 1, windowMs: 3_600_000 } },
  })
  const rig = await startRig(t, { limiter: recipients })
  const second = await logIn(t, rig)
  assert.match((await send(second)) ?? '', /^250/)
  assert.match(
    (await send(second)) ?? '',
    /^451 4\.7\.1 Domain .*: recipient limit exceeded, try again after/,
  )
  assert.equal(rig.taken.length, 1)
})

const MAPPED: [error: Error, reply: string][] = [
  [new BadRequest('cannot parse from address'), '554 5.6.0 cannot parse from address'],
  [new BadRequest('a\r\nb \u{1f600}'), '554 5.6.0 a b ?'],
  [
    new Forbidden("Rejected: IP 10.0.0.1 can't be used to send the message"),
    "550 5.7.1 Rejected: IP 10.0.0.1 can't be used to send the message",
  ],
  [new NotFound('gone'), '550 5.7.1 gone'],
  [new QuotaExceeded('no more'), '550 5.7.1 no more'],
  [new PayloadTooLarge('too large'), '552 5.3.4 too large'],
  [new TooManyRequests(9, 'queue full'), '451 4.7.1 queue full'],
  [new InsufficientStorage(), '452 4.3.1 Insufficient Storage'],
  [new StoreFull('disk'), '452 4.3.1 Insufficient Storage'],
  [new Unavailable(), '451 4.3.0 Try again later'],
  [new StoreUnavailable('no database'), '451 4.3.0 Try again later'],
  [new TypeError('a fault of ours'), '451 4.3.0 Try again later'],
]

test('every refusal by acceptance has its reply, and the session continues', async (t) => {
  let error: Error = new Error('unset')
  const rig = await startRig(t, { submit: () => Promise.reject(error) })
  const client = await logIn(t, rig)
  for (const [thrown, reply] of MAPPED) {
    error = thrown
    assert.equal(await send(client), reply)
  }
  error = new BadRequest('x'.repeat(2_000))
  assert.equal((await send(client))?.length, 510)
})

test('what a client may say wrong at RCPT TO and MAIL FROM', async (t) => {
  const client = await logIn(t, await startRig(t))
  assert.equal(await client.say('MAIL FROM:<no address>'), '501 5.1.7 cannot parse from address')
  assert.equal(await client.say('MAIL FROM:<bob>'), '501 5.1.7 cannot parse from address')
  assert.equal(await client.say('MAIL FROM:<bob@mg.example.com>'), '250 2.1.0 OK')
  const bad = [
    '',
    'alice',
    'a@b@example.org',
    '@example.org',
    'a@',
    'a@[127.0.0.1]',
    '@one.example:a@example.org',
  ]
  for (const path of [...bad, 'a,b@example.org', 'a(x)@example.org', 'g:a@example.org;', 'a@example..org']) {
    assert.equal(await client.say(`RCPT TO:<${path}>`), '501 5.1.3 cannot parse to address', path)
  }
  assert.equal(await client.say('RCPT TO:<"a b"@Example.ORG>'), '250 2.1.5 OK')
})

test('the 1,001st recipient is refused for now, the others are served', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  const rcpts = Array.from({ length: 1_001 }, (_, index) => `RCPT TO:<user${index}@example.org>\r\n`).join('')
  client.write(`MAIL FROM:<>\r\n${rcpts}DATA\r\n`)
  assert.equal(await client.reply(), '250 2.1.0 OK')
  for (let index = 0; index < 1_000; index++) assert.equal(await client.reply(), '250 2.1.5 OK')
  assert.equal(await client.reply(), '452 4.5.3 Too many recipients')
  assert.match((await client.reply()) ?? '', /^354/)
  client.write(`${MESSAGE}.\r\n`)
  assert.match((await client.reply()) ?? '', /^250 2\.0\.0 Queued/)
  assert.equal(rig.taken[0]?.recipients.length, 1_000)
})

test('non-ASCII addresses with SMTPUTF8: the domain becomes punycode', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  await client.say('MAIL FROM:<> SMTPUTF8')
  client.write(Buffer.from('RCPT TO:<jürgen@bücher.example>\r\n'))
  assert.equal(await client.reply(), '250 2.1.5 OK')
  await client.say('DATA')
  client.write(`${MESSAGE}.\r\n`)
  assert.match((await client.reply()) ?? '', /^250/)
  assert.deepEqual(rig.taken[0]?.recipients, ['jürgen@xn--bcher-kva.example'])
})

const BARE: string[] = [
  '\n.\n',
  '\n.\r\n',
  '\r\n.\n',
  '\r.\r',
  '\r.\r\n',
  '\r\n.\r',
  '\r\r\n',
  '\r\n\n',
  '\r\n.\r\r\n',
  '\r\0\n.\r\n',
  '\r\n.\r\0\n',
  '\n',
  '\r',
  '\n\n.\r\n',
]

test('smuggling: a bare CR or LF in DATA is refused, the connection closed, nothing after it read (R32)', async (t) => {
  const rig = await startRig(t)
  const inner =
    'MAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@example.org>\r\nDATA\r\nSubject: smuggled\r\n\r\n.\r\n'
  for (const end of BARE) {
    for (const apart of [false, true]) {
      const client = await logIn(t, rig)
      await beginData(client)
      if (apart) {
        // The pieces of a line end in packets of their own.
        for (const byte of `Subject: a\r\n\r\nb${end}`) client.write(byte)
        client.write(inner)
      } else client.write(`Subject: a\r\n\r\nb${end}${inner}`)
      assert.deepEqual(await client.rest(), ['554 5.6.0 Line ends must be CRLF'], JSON.stringify(end))
    }
  }
  assert.deepEqual(rig.taken, [])
})

test('smuggling: NUL is content and ends nothing; what follows the one true end is the next command (R32)', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  await beginData(client)
  client.write('Subject: a\r\n\r\nb\r\n\0.\r\n.\0\r\n\0\r\n.\r\nNOOP\r\nQUIT\r\n')
  assert.deepEqual(await client.rest(), [
    '250 2.0.0 Queued <1@mg.example.com>',
    '250 2.0.0 OK',
    '221 2.0.0 Bye',
  ])
  assert.equal(rig.taken[0]?.raw, 'Subject: a\r\n\r\nb\r\n\0.\r\n\0\r\n\0\r\n')
})

test('smuggling: BDAT, another protocol, and lines that end in LF close the connection unread', async (t) => {
  const rig = await startRig(t)
  const cases: [string, string][] = [
    ['BDAT 30 LAST\r\n', '502 5.5.1 BDAT is not offered'],
    ['POST / HTTP/1.1\r\n', '500 5.5.1 This is a mail server'],
    ['NOOP\n', '500 5.5.2 Line ends must be CRLF'],
    [`NOOP ${'x'.repeat(5_000)}`, '500 5.5.2 Line too long'],
  ]
  for (const [line, reply] of cases) {
    const client = await logIn(t, rig)
    client.write(`${line}MAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@example.org>\r\n`)
    assert.deepEqual(await client.rest(), [reply])
  }
})

test('plain text after STARTTLS is dropped, none of it is executed (R33)', async (t) => {
  const rig = await startRig(t)
  const inner = `EHLO evil\r\nAUTH PLAIN ${plainLogin(LOGIN.login, PASSWORD)}\r\nMAIL FROM:<evil@example.com>\r\n`
  const client = await open(t, rig)
  client.write(`STARTTLS\r\n${inner}`)
  assert.equal(await client.reply(), '220 2.0.0 Ready to start TLS')
  await client.secure()
  // The first reply over TLS is the first command's over TLS.
  assert.equal(await client.say('MAIL FROM:<me@example.com>'), '530 5.7.0 Authentication required')
  assert.equal(await client.say('NOOP'), '250 2.0.0 OK')
})

test('plain text in a packet of its own after STARTTLS ends the handshake', async (t) => {
  const rig = await startRig(t)
  const client = await open(t, rig)
  assert.equal(await client.say('STARTTLS'), '220 2.0.0 Ready to start TLS')
  client.write('MAIL FROM:<evil@example.com>\r\n')
  assert.ok(!(await client.rest()).some((reply) => reply.startsWith('250')))
})

test('a client that breaks the handshake off, before it or on seeing the certificate, is let go at once', async (t) => {
  // Nothing ends by itself.
  const rig = await startRig(t, { clock: createTestClock() })
  const early = await open(t, rig)
  await early.say('STARTTLS')
  early.endWriting()
  assert.deepEqual(await early.rest(), [])
  const mistrusting = await open(t, rig)
  await mistrusting.say('STARTTLS')
  await assert.rejects(mistrusting.secure({ rejectUnauthorized: true }), /self-signed/)
  mistrusting.destroy()
  // With a session in its handshake it would wait for all of the time that it is given.
  await rig.stop()
})

test('a login in plain text does not survive STARTTLS', async (t) => {
  const client = await logIn(t, await startRig(t))
  await client.say('STARTTLS')
  await client.secure()
  await client.say('EHLO client.example')
  assert.equal(await client.say('MAIL FROM:<>'), '530 5.7.0 Authentication required')
})

test('a large message goes to the spool as it comes, byte for byte', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  const message = `Subject: large\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(20_000)}`
  assert.match((await send(client, message)) ?? '', /^250/)
  assert.equal(rig.taken[0]?.inMemory, false)
  assert.ok(rig.taken[0]?.raw === message)
})

test('over the size: refused at MAIL FROM if declared, else after the content; the session continues', async (t) => {
  const rig = await startRig(t, { limits: { sizeBytesMax: 100_000 } })
  const client = await logIn(t, rig)
  const tooLarge = '552 5.3.4 Message is too large, max size is 25MB'
  assert.equal(await client.say('MAIL FROM:<> SIZE=100001'), tooLarge)
  const body = (bytes: number) => `${'x'.repeat(98)}\r\n`.repeat(bytes / 100)
  assert.equal(await send(client, body(100_100)), tooLarge)
  assert.match((await send(client, body(100_000))) ?? '', /^250/)
  assert.equal(rig.taken.length, 1)
  await beginData(client)
  client.write(body(500_000))
  assert.equal(await client.reply(), tooLarge, 'an endless message is cut off')
  assert.equal(await client.reply(), null)
  // Only the accepted one is left, and that because the fake never keeps it.
  assert.equal((await readdir(rig.spoolFolder)).length, 1)
})

test('neither a refused large message nor a client that disconnects leaves a file', async (t) => {
  const submit = () => Promise.reject(new BadRequest('cannot parse message'))
  const rig = await startRig(t, { submit })
  const client = await logIn(t, rig)
  const message = `${'x'.repeat(98)}\r\n`.repeat(2_000)
  assert.equal(await send(client, message), '554 5.6.0 cannot parse message')
  await beginData(client)
  client.write(message)
  client.destroy()
  await rig.stop()
  assert.deepEqual(await readdir(rig.spoolFolder), [])
})

test('fifty hops are a loop', async (t) => {
  const rig = await startRig(t)
  const client = await logIn(t, rig)
  const hops = (count: number) =>
    `${'Received: from a\r\n by b\r\n'.repeat(count)}${MESSAGE}Received: body\r\n`
  assert.match((await send(client, hops(49))) ?? '', /^250/)
  assert.equal(await send(client, hops(50)), '554 5.4.6 Routing loop')
})

test('the twentieth bad command is the last', async (t) => {
  const rig = await startRig(t)
  const client = await open(t, rig)
  client.write('WHAT\r\n'.repeat(25))
  const replies = await client.rest()
  assert.deepEqual(replies.slice(0, 20), Array(20).fill('500 5.5.1 Unknown command'))
  assert.deepEqual(replies.slice(20), ['421 4.7.0 Too many bad commands'])
})

test('a client that never logs in cannot stay', async (t) => {
  const client = await open(t, await startRig(t))
  client.write('NOOP\r\n'.repeat(300))
  const replies = await client.rest()
  assert.equal(replies.length, 251)
  assert.equal(replies.at(-1), '421 4.7.0 Too many commands without authentication')
})

test('messages per connection are limited', async (t) => {
  const rig = await startRig(t, { limits: { messagesMax: 2 } })
  const client = await logIn(t, rig)
  assert.match((await send(client)) ?? '', /^250/)
  assert.match((await send(client)) ?? '', /^250/)
  assert.equal(await client.say('MAIL FROM:<>'), '421 4.7.0 Too many messages on one connection')
  assert.equal(await client.reply(), null)
})

test('an idle client, one that never finishes its line, and one that never finishes its message are disconnected', async (t) => {
  const rig = await startRig(t, { limits: { idleMs: 80 } })
  const idle = await open(t, rig)
  assert.deepEqual(await idle.rest(), ['421 4.4.2 Timeout'])
  const slow = await open(t, rig)
  const drip = setInterval(() => slow.write('x'), 20)
  assert.deepEqual(await slow.rest(), ['421 4.4.2 Timeout'])
  clearInterval(drip)
  const other = await startRig(t, { limits: { contentMs: 80 } })
  const sending = await logIn(t, other)
  await beginData(sending)
  const lines = setInterval(() => sending.write('x\r\n'), 20)
  assert.deepEqual(await sending.rest(), ['421 4.4.2 Timeout'])
  clearInterval(lines)
  assert.deepEqual(other.taken, [])
})

test('one address has its share of connections; a closed one makes room', async (t) => {
  const rig = await startRig(t, { listener: { connectionsPerAddressMax: 3 } })
  const clients = await Promise.all([1, 2, 3].map(() => open(t, rig)))
  const fourth = await openDialogue(t, rig)
  assert.deepEqual(await fourth.rest(), ['421 4.7.0 Too many connections'])
  await clients[0]?.say('QUIT')
  assert.equal(await clients[0]?.reply(), null)
  await eventually('a free place', async () => {
    const next = await openDialogue(t, rig)
    return (await next.reply())?.startsWith('220')
  })
})

test('when all places are taken the stranger who has been idle for longest makes room', async (t) => {
  let nowMs = 0
  const clock = { ...systemClock, monotonic: () => nowMs }
  const rig = await startRig(t, { clock, listener: { connectionsMax: 3 } })
  const known = await logIn(t, rig)
  const first = await open(t, rig)
  // It sends, but no command.
  first.write('NO')
  const second = await open(t, rig)
  // Nobody has been idle for a second yet.
  const early = await openDialogue(t, rig)
  assert.deepEqual(await early.rest(), ['421 4.7.0 Too many connections'])
  nowMs = 999
  assert.equal(await second.say('NOOP'), '250 2.0.0 OK')
  nowMs = 1_000
  first.write('O')
  const next = await open(t, rig)
  assert.deepEqual(await first.rest(), ['421 4.7.0 Too many connections'])
  assert.equal(await second.say('NOOP'), '250 2.0.0 OK')
  assert.equal(await next.say('NOOP'), '250 2.0.0 OK')
  assert.match((await send(known)) ?? '', /^250 /)
  const again = await openDialogue(t, rig)
  assert.deepEqual(await again.rest(), ['421 4.7.0 Too many connections'])
})

test('a stop says 421 to idle clients, and lets a running message finish first', async (t) => {
  const rig = await startRig(t)
  const idle = await open(t, rig)
  const busy = await logIn(t, rig)
  await beginData(busy)
  busy.write('Subject: late\r\n')
  const stopped = rig.stop()
  assert.deepEqual(await idle.rest(), ['421 4.3.2 Service shutting down'])
  busy.write('\r\nbody\r\n.\r\n')
  assert.deepEqual(await busy.rest(), [
    '250 2.0.0 Queued <1@mg.example.com>',
    '421 4.3.2 Service shutting down',
  ])
  await stopped
  assert.equal(rig.taken[0]?.raw, 'Subject: late\r\n\r\nbody\r\n')
})

test('a client may send everything at once and close its side', async (t) => {
  const rig = await startRig(t)
  const client = await openDialogue(t, rig)
  const login = `AUTH PLAIN ${plainLogin(LOGIN.login, PASSWORD)}`
  client.write(
    `EHLO a\r\n${login}\r\nMAIL FROM:<>\r\nRCPT TO:<a@example.org>\r\nDATA\r\n${MESSAGE}.\r\nQUIT\r\n`,
  )
  client.endWriting()
  const replies = await client.rest()
  assert.deepEqual(
    replies.slice(2).map((reply) => reply.slice(0, 3)),
    ['235', '250', '250', '354', '250', '221'],
  )
  assert.equal(rig.taken.length, 1)
})
