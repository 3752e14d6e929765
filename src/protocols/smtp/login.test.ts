/** Logging in: the published exchanges of each mechanism, a server of others, and what is never shown. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { createAuthority, selfSigned } from '../../../test/support/certificates.ts'
import { ownAddress } from '../../../test/support/service.ts'
import { createSink, type Sink, type SinkOptions } from '../../../test/support/smtp-sink.ts'
import { createSocksServer } from '../../../test/support/socks-server.ts'
import { Unavailable } from '../../base/process/errors.ts'
import { dialThrough } from '../proxy/dialling.ts'
import type { TranscriptEntry } from './channel.ts'
import { type ConnectOptions, connectSmtp } from './client.ts'
import { SmtpFailure } from './failure.ts'
import { passwordLogin, type SmtpAuth } from './login.ts'

const authority = createAuthority()
const HOST = 'relay.example'

/** Connects and closes; resolves the failure, or null, with the whole dialogue. */
async function logInTo(
  { host, port }: { host: string; port: number },
  auth: SmtpAuth,
  options: Partial<ConnectOptions> = {},
) {
  const transcript: TranscriptEntry[] = []
  try {
    const connection = await connectSmtp({
      ...{ host, port, auth, heloName: 'client.test', tls: 'opportunistic', verify: false },
      ...{ serverName: HOST, tlsOptions: { ca: authority.cert } },
      transcript: (entry) => transcript.push(entry),
      ...options,
    })
    connection.close()
    return { failure: null, transcript: transcript.map(({ line }) => line) }
  } catch (failure) {
    assert.ok(failure instanceof SmtpFailure, inspect(failure))
    return { failure, transcript: transcript.map(({ line }) => line) }
  }
}

async function sinkFor(t: TestContext, mechanisms: string, options: SinkOptions = {}): Promise<Sink> {
  const sink = await createSink(options)
  t.after(() => sink.close())
  sink.on('EHLO', `250-sink.test\r\n250 AUTH ${mechanisms}`)
  return sink
}

const loginOf = (mechanism: SmtpAuth['mechanism'], user: string, secret: string): SmtpAuth => ({
  mechanism,
  user,
  secret: () => secret,
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const said = (sink: Sink) => sink.commands.map(([, line]) => line).filter((line) => !line.startsWith('EHLO'))

/** The exchanges that the mechanisms' documents print; lines of the client and of the server take turns. */
const PUBLISHED: [source: string, auth: SmtpAuth, lines: string[], failure: RegExp | null][] = [
  [
    'RFC 4616 §4, PLAIN',
    loginOf('plain', 'tim', 'tanstaaftanstaaf'),
    ['AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm', '235 2.7.0 Authentication successful'],
    null,
  ],
  [
    'RFC 2195 §2, CRAM-MD5',
    loginOf('cram-md5', 'tim', 'tanstaaftanstaaf'),
    [
      'AUTH CRAM-MD5',
      '334 PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2UucmVzdG9uLm1jaS5uZXQ+',
      'dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw',
      '235 2.7.0 Authentication successful',
    ],
    null,
  ],
  [
    'developers.google.com, "OAuth 2.0 Mechanism", SMTP accepted',
    loginOf('xoauth2', 'someuser@example.com', 'ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg'),
    [
      'AUTH XOAUTH2 dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRHRXVZMjl0Q2cBAQ==',
      '235 2.7.0 Accepted',
    ],
    null,
  ],
  [
    'developers.google.com, "OAuth 2.0 Mechanism", SMTP refused',
    loginOf('xoauth2', 'someuser@example.com', 'ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg'),
    [
      'AUTH XOAUTH2 dXNlcj1zb21ldXNlckBleGFtcGxlLmNvbQFhdXRoPUJlYXJlciB5YTI5LnZGOWRmdDRxbVRjMk52YjNSbGNrQmhkSFJoZG1semRHRXVZMjl0Q2cBAQ==',
      '334 eyJzdGF0dXMiOiI0MDEiLCJzY2hlbWVzIjoiYmVhcmVyIG1hYyIsInNjb3BlIjoiaHR0cHM6Ly9tYWlsLmdvb2dsZS5jb20vIn0K',
      '',
      '535-5.7.1 Username and Password not accepted. Learn more at\r\n535 5.7.1 http://support.google.com/mail/',
    ],
    /^SMTP auth: 535 5\.7\.1 Username and Password not accepted\..*\/mail\/ \{"status":"401","schemes":"bearer mac","scope":"https:\/\/mail\.google\.com\/"\}$/,
  ],
  [
    'learn.microsoft.com, "Authenticate an IMAP, POP or SMTP connection using OAuth"',
    loginOf('xoauth2', 'test@contoso.onmicrosoft.com', 'EwBAAl3BAAUFFpUAo7J3Ve0bjLBWZWCclRC3EoAA'),
    [
      'AUTH XOAUTH2 dXNlcj10ZXN0QGNvbnRvc28ub25taWNyb3NvZnQuY29tAWF1dGg9QmVhcmVyIEV3QkFBbDNCQUFVRkZwVUFvN0ozVmUwYmpMQldaV0NjbFJDM0VvQUEBAQ==',
      '235 2.7.0 Authentication successful',
    ],
    null,
  ],
  [
    'Exchange Online refuses without a challenge',
    loginOf('xoauth2', 'test@contoso.onmicrosoft.com', 'EwBAAl3BAAUFFpUAo7J3Ve0bjLBWZWCclRC3EoAA'),
    [
      'AUTH XOAUTH2 dXNlcj10ZXN0QGNvbnRvc28ub25taWNyb3NvZnQuY29tAWF1dGg9QmVhcmVyIEV3QkFBbDNCQUFVRkZwVUFvN0ozVmUwYmpMQldaV0NjbFJDM0VvQUEBAQ==',
      '535 5.7.3 Authentication unsuccessful [SN2PR00CA0018.namprd00.prod.outlook.com]',
    ],
    /^SMTP auth: 535 5\.7\.3 Authentication unsuccessful \[SN2PR00CA0018/,
  ],
]
for (const [source, auth, lines, expected] of PUBLISHED)
  test(`as published: ${source}`, async (t) => {
    const sink = await sinkFor(t, 'PLAIN LOGIN CRAM-MD5 XOAUTH2')
    for (let index = 0; index < lines.length; index += 2)
      sink.on(lines[index] as string, lines[index + 1] as string)
    const { failure } = await logInTo(sink, auth)
    assert.deepEqual(
      said(sink),
      lines.filter((_, index) => index % 2 === 0),
    )
    if (expected === null) assert.equal(failure, null)
    else assert.match(failure?.message ?? '', expected)
  })

test('OAUTHBEARER names host and port, and refuses as RFC 7628 §4.3 prints it', async (t) => {
  const sink = await sinkFor(t, 'OAUTHBEARER')
  const token = 'vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=='
  const reason = '{"status":"invalid_token","scope":"example_scope"}'
  sink.on('AUTH', `334 ${base64(reason)}`)
  sink.on('AQ==', '535 5.7.8 Error: authentication failed')
  const auth = loginOf('oauthbearer', 'us,er=@example.com', token)
  const { failure } = await logInTo(sink, auth)
  assert.equal(failure?.message, `SMTP auth: 535 5.7.8 Error: authentication failed ${reason}`)
  const [command, dummy, ...rest] = said(sink)
  assert.equal(
    Buffer.from(command?.split(' ')[2] ?? '', 'base64').toString(),
    `n,a=us=2Cer=3D@example.com,\x01host=${HOST}\x01port=${sink.port}\x01auth=Bearer ${token}\x01\x01`,
  )
  assert.deepEqual([dummy, rest], ['AQ==', []])
})

test('what is too long for the command goes alone, up to what servers take', async (t) => {
  const sink = await sinkFor(t, 'XOAUTH2')
  sink.on('AUTH', '334 ')
  for (const [length, reason] of [
    [8_000, undefined],
    [9_300, 'login'],
  ] as const) {
    const auth = loginOf('xoauth2', 'user', 't'.repeat(length))
    const response = base64(`user=user\x01auth=Bearer ${'t'.repeat(length)}\x01\x01`)
    sink.on(response, '235 2.7.0 Accepted')
    const { failure, transcript } = await logInTo(sink, auth)
    assert.equal(failure?.reason, reason)
    assert.ok(transcript.includes('AUTH XOAUTH2'))
    assert.equal(said(sink).includes(response), reason === undefined)
  }
})

test('a refused token is renewed once, on a new connection, whether the server closed the old one or not', async (t) => {
  for (const closes of [true, false]) {
    const sink = await sinkFor(t, 'XOAUTH2')
    const responseOf = (token: string) => base64(`user=user\x01auth=Bearer ${token}\x01\x01`)
    sink.on('AUTH', (session, line) => {
      if (line.endsWith(responseOf('fresh-token'))) return '235 2.7.0 Accepted'
      session.write('535 5.7.8 expired\r\n')
      if (closes) session.drop()
      return null
    })
    const asked: (string | undefined)[] = []
    const auth: SmtpAuth = {
      ...{ mechanism: 'xoauth2', user: 'user' },
      secret: (refused) => {
        asked.push(refused)
        return refused === undefined ? 'stale-token' : 'fresh-token'
      },
    }
    const { failure, transcript } = await logInTo(sink, auth)
    assert.equal(failure, null)
    assert.deepEqual(asked, [undefined, 'stale-token'])
    assert.deepEqual(said(sink), [
      `AUTH XOAUTH2 ${responseOf('stale-token')}`,
      `AUTH XOAUTH2 ${responseOf('fresh-token')}`,
    ])
    assert.deepEqual(
      transcript.filter((line) => /^(AUTH|[25]35)/.test(line)),
      ['AUTH XOAUTH2 [hidden]', '535 5.7.8 expired', 'AUTH XOAUTH2 [hidden]', '235 2.7.0 Accepted'],
    )
  }
})

test('one renewal is all: a second refusal, the same token again or none are the result', async (t) => {
  const sink = await sinkFor(t, 'XOAUTH2')
  sink.on('AUTH', '535 5.7.8 no')
  const cases: [secret: SmtpAuth['secret'], commands: number, message: RegExp][] = [
    [(refused) => `${refused ?? 'token'}-next`, 2, /535 5\.7\.8 no$/],
    [() => 'the same', 1, /535 5\.7\.8 no$/],
    [
      (refused) => (refused ? Promise.reject(new Error('invalid_grant')) : 'token'),
      1,
      /cannot log in: invalid_grant$/,
    ],
    [() => Promise.reject(new Error('invalid_client')), 0, /cannot log in: invalid_client$/],
  ]
  for (const [secret, commands, message] of cases) {
    const before = said(sink).length
    const { failure } = await logInTo(sink, { mechanism: 'xoauth2', user: 'user', secret })
    assert.match(failure?.message ?? '', message)
    assert.equal(said(sink).length - before, commands)
  }
})

test('a server that is busy, or refuses a password, is not asked again', async (t) => {
  for (const [mechanism, reply] of [
    ['xoauth2', '454 4.7.0 Temporary authentication failure'],
    ['plain', '535 5.7.8 wrong'],
  ] as const) {
    const sink = await sinkFor(t, 'PLAIN XOAUTH2')
    sink.on('AUTH', reply)
    let asked = 0
    const { failure } = await logInTo(sink, { mechanism, user: 'user', secret: () => `secret ${asked++}` })
    assert.equal(failure?.message, `SMTP auth: ${reply}`)
    assert.deepEqual([asked, said(sink).length], [1, 1])
  }
})

const EVERY = ['auto', 'plain', 'login', 'cram-md5', 'xoauth2', 'oauthbearer'] as const

test('no mechanism is used with a peer that does not verify', async (t) => {
  const sink = await createSink({ tls: selfSigned([HOST]) })
  t.after(() => sink.close())
  sink.on('EHLO', '250-sink.test\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN CRAM-MD5 XOAUTH2 OAUTHBEARER')
  for (const mechanism of EVERY) {
    let asked = 0
    const auth: SmtpAuth = { mechanism, user: 'user', secret: () => `secret ${asked++}` }
    const { failure } = await logInTo(sink, auth)
    assert.deepEqual([failure?.stage, failure?.reason, asked], ['auth', 'certificate', 0])
  }
  assert.ok(!said(sink).some((line) => line.startsWith('AUTH')))
})

test('without a mechanism of its own, a password goes the best way that the server offers', async (t) => {
  const secure = { tls: authority.issue([HOST]) }
  for (const [options, offered, used] of [
    [secure, 'CRAM-MD5 LOGIN PLAIN', 'PLAIN'],
    [secure, 'CRAM-MD5 LOGIN', 'LOGIN'],
    [secure, 'SCRAM-SHA-256 cram-md5', 'CRAM-MD5'],
    [{}, 'PLAIN LOGIN CRAM-MD5', 'CRAM-MD5'],
    [{}, 'LOGIN PLAIN', 'PLAIN'],
  ] as const) {
    const sink = await createSink(options)
    t.after(() => sink.close())
    sink.on('EHLO', `250-sink.test\r\n250-STARTTLS\r\n250 AUTH ${offered}`)
    const tls = options === secure ? 'required' : 'none'
    await logInTo(sink, passwordLogin({ user: 'user', password: 'password' }), { tls })
    const command = said(sink).find((line) => line.startsWith('AUTH'))
    assert.equal(command?.split(' ')[1], used, offered)
  }
})

test('a mechanism that the server lacks is named with those that it has', async (t) => {
  const sink = await sinkFor(t, 'PLAIN LOGIN')
  const { failure } = await logInTo(sink, loginOf('xoauth2', 'user', 'token'))
  assert.equal(failure?.message, 'SMTP auth: the server offers AUTH PLAIN LOGIN, and not XOAUTH2')
})

test('a server that goes on asking, or is content too early, is at fault', async (t) => {
  const sink = await sinkFor(t, 'PLAIN')
  for (const reply of ['334 cGxlYXNl', '250 2.0.0 Ok']) {
    sink.on('AUTH', reply)
    const { failure } = await logInTo(sink, loginOf('plain', 'user', 'password'))
    assert.equal(failure?.reason, 'protocol')
  }
})

test('control characters in user or token cannot add fields', async (t) => {
  const sink = await sinkFor(t, 'PLAIN XOAUTH2 OAUTHBEARER')
  for (const mechanism of ['plain', 'xoauth2', 'oauthbearer'] as const)
    for (const auth of [
      loginOf(mechanism, 'user\x01auth=Bearer other', 'token'),
      loginOf(mechanism, 'user', 'to\0ken'),
    ]) {
      const { failure } = await logInTo(sink, auth)
      assert.deepEqual([failure?.reason, said(sink)], ['login', []])
    }
})

test('secrets are in no transcript and no error, also where the server repeats them', async (t) => {
  const sink = await sinkFor(t, 'PLAIN LOGIN CRAM-MD5 XOAUTH2 OAUTHBEARER')
  const secret = 'Planted-secret-9f2'
  for (const mechanism of EVERY) {
    sink.on('AUTH', (_session, line) => `535-5.7.8 ${line}\r\n535 5.7.8 no ${secret}`)
    if (mechanism === 'login' || mechanism === 'cram-md5') sink.on('AUTH', '334 PDFAc2luaz4=')
    if (mechanism === 'xoauth2') sink.on('AUTH', `334 ${base64(`{"status":"${secret}"}`)}`)
    const { failure, transcript } = await logInTo(sink, loginOf(mechanism, 'user', secret))
    assert.ok(failure)
    const shown = [
      ...transcript,
      ...[failure.message, inspect(failure, { depth: 9, showHidden: true }), JSON.stringify(failure)],
      JSON.stringify({ ...failure }),
    ].join('\n')
    for (const text of [secret, base64(secret), base64(`\0user\0${secret}`)])
      assert.ok(!shown.includes(text), `${mechanism}: ${text} in\n${shown}`)
  }
})

test('a digest is in no transcript where the server repeats it: a password could be guessed by it', async (t) => {
  const sink = await sinkFor(t, 'CRAM-MD5')
  const response = 'dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw'
  const text = Buffer.from(response, 'base64').toString()
  sink.on('AUTH', '334 PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2UucmVzdG9uLm1jaS5uZXQ+')
  sink.on(response, `535-5.7.8 ${response}\r\n535 5.7.8 no ${text}`)
  const { failure, transcript } = await logInTo(sink, loginOf('cram-md5', 'tim', 'tanstaaftanstaaf'))
  assert.ok(failure)
  const shown = [...transcript, failure.message].join('\n')
  for (const secret of [response, text]) assert.ok(!shown.includes(secret), shown)
})

test('a fault of this machine is no fault of the server', async (t) => {
  const sink = await sinkFor(t, 'XOAUTH2')
  const away = new Unavailable(1)
  const auth: SmtpAuth = { ...loginOf('xoauth2', 'user', ''), secret: () => Promise.reject(away) }
  const { host, port } = sink
  await assert.rejects(
    connectSmtp({ host, port, auth, heloName: 'client.test', tls: 'none', verify: false }),
    (error) => error === away,
  )
})

/** A server by Nodemailer's authors, with a certificate that verifies. */
async function startForeign(t: TestContext, options: SMTPServerOptions) {
  const server = new SMTPServer({ ...authority.issue([HOST]), ...options })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.after(() => new Promise<void>((resolve) => server.close(resolve)))
  return { host: '127.0.0.1', port: (server.server.address() as AddressInfo).port }
}

test('every mechanism of smtp-server, over STARTTLS and over implicit TLS', async (t) => {
  for (const secure of [false, true]) {
    const peer = await startForeign(t, {
      secure,
      authMethods: ['PLAIN', 'LOGIN', 'CRAM-MD5', 'XOAUTH2'],
      onAuth({ method, username, password, accessToken, validatePassword }, _session, done) {
        const isRight =
          method === 'CRAM-MD5' ? validatePassword('pässword') : (accessToken ?? password) === 'pässword'
        if (isRight && username === 'user') done(null, { user: 'user' })
        else if (method === 'XOAUTH2') done(null, { data: { status: '401', schemes: 'bearer mac' } })
        else done(new Error('Invalid username or password'))
      },
    })
    const tls = secure ? 'implicit' : 'required'
    for (const mechanism of ['plain', 'login', 'cram-md5', 'xoauth2'] as const) {
      const right = await logInTo(peer, loginOf(mechanism, 'user', 'pässword'), { tls, verify: true })
      assert.equal(right.failure, null, mechanism)
      const wrong = await logInTo(peer, loginOf(mechanism, 'user', 'wrong'), { tls, verify: true })
      assert.equal(wrong.failure?.reply?.code, 535, mechanism)
      if (mechanism === 'xoauth2')
        assert.match(wrong.failure?.message ?? '', /\{"status":"401","schemes":"bearer mac"\}$/)
    }
  }
})

test('through a proxy on this machine the peer is the target: no password without TLS', async (t) => {
  const sink = await createSink({ auth: { user: 'user', password: 'secret' } })
  t.after(() => sink.close())
  const socks = await createSocksServer(t, { host: ownAddress(), from: '127.0.0.1', instead: sink })
  const proxy = { kind: 'socks5' as const, host: socks.host, port: socks.port, login: null }
  const attempt = connectSmtp({
    ...{ host: '203.0.113.5', port: 25, heloName: 'client.test', tls: 'opportunistic', verify: false },
    auth: { mechanism: 'auto', user: 'user', secret: () => 'secret' },
    dial: (target, limits) => dialThrough(proxy, '192.0.2.9', target, limits),
  })
  await assert.rejects(attempt, /the password is not sent over a connection without TLS/)
  assert.deepEqual(socks.targets, ['203.0.113.5:25'])
  assert.deepEqual(
    sink.commands.map(([, line]) => line),
    ['EHLO client.test'],
  )
})
