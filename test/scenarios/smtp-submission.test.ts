/** Mail submitted over SMTP, through the whole service: login, options in header fields, events. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type MimeMessage, messageSize } from '../../src/protocols/message/mime-message.ts'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import type { SmtpConnection } from '../../src/protocols/smtp/connection.ts'
import { passwordLogin } from '../../src/protocols/smtp/login.ts'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink } from '../support/smtp-sink.ts'

const PASSWORD = 'long enough'

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite') {
  const sink = await createSink()
  t.after(() => sink.close())
  const env = {
    SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no',
  }
  const service = await startTestService(t, env, { database })
  const path = `/v3/domains/${service.domain}/credentials`
  const made = await service.call('POST', path, { form: { login: 'app', password: PASSWORD } })
  assert.equal(made.status, 200, made.text)
  return { sink, service, login: `app@${service.domain}` }
}

const listenerOf = ({ config, service }: TestService) => ({
  host: config.smtpHost,
  port: service.smtp.port,
})

async function connect(service: TestService, user: string, password: string): Promise<SmtpConnection> {
  return connectSmtp({
    ...listenerOf(service),
    heloName: 'app.example',
    tls: 'required',
    verify: false,
    auth: passwordLogin({ user, password, allowUnverified: true }),
  })
}

const submit = (
  connection: SmtpConnection,
  mail: { returnPath: string; recipients: string[]; message: MimeMessage },
) => connection.send({ ...mail, sizeBytes: messageSize(mail.message), utf8: false })

eachDatabase((database) => {
  test('a message submitted over STARTTLS arrives with its options applied, its events have method smtp', async (t) => {
    const { sink, service, login } = await start(t, database)
    const connection = await connect(service, login, PASSWORD)
    t.after(() => connection.close())
    const { recipients, data } = await submit(connection, {
      returnPath: 'somebody@else.example',
      recipients: ['ann@example.org', 'ben@example.org'],
      message: {
        headers: [
          'From: Shop <shop@example.com>',
          'To: ann@example.org, ben@example.org',
          'Bcc: ben@example.org',
          'Subject: Order 17',
          'Message-Id: <order-17@example.com>',
          'X-Mailgun-Tag: orders',
          'X-Service-Tag: Receipts',
          'X-Service-Variables: {"order": 17}',
          'X-Service-Track: no',
          'X-Service-Dkim: yes',
          'X-Service-Recipient-Variables: {"ann@example.org": {"name": "Ann"}}',
        ],
        body: [Buffer.from('Thank you, %recipient.name%.\r\n.leading dot\r\n')],
      },
    })
    assert.deepEqual(
      recipients.map(({ reply }) => reply.code),
      [250, 250],
    )
    assert.deepEqual([data?.code, data?.lines], [250, ['2.0.0 Queued <order-17@example.com>']])
    await connection.quit()

    const [first, second] = (await sink.waitFor(2)).toSorted((a, b) =>
      String(a.envelope.to).localeCompare(String(b.envelope.to)),
    )
    assert.deepEqual([first?.envelope.to, second?.envelope.to], [['ann@example.org'], ['ben@example.org']])
    assert.match(first?.envelope.from ?? '', /^bounce\+/)
    const raw = first?.raw.toString() ?? ''
    assert.ok(raw.endsWith('\r\n\r\nThank you, Ann.\r\n.leading dot\r\n'), raw)
    assert.match(raw, /^To: ann@example\.org\r$/m)
    assert.deepEqual(
      raw.match(/^X-[A-Za-z]+-Tag: .*$/gm)?.map((line) => line.trim()),
      ['X-Service-Tag: orders', 'X-Service-Tag: Receipts'],
    )
    assert.match(raw, /^DKIM-Signature:/m)
    assert.doesNotMatch(raw, /^(?:Bcc|X-Service-Track|X-Service-Dkim|X-Service-Recipient)/im)

    const events = await eventually('two delivered events', async () => {
      const all = await service.events()
      return all.filter(({ event }) => event === 'delivered').length === 2 && all
    })
    assert.deepEqual(events.map(({ event }) => event).sort(), [
      'accepted',
      'accepted',
      'delivered',
      'delivered',
    ])
    for (const event of events) {
      assert.deepEqual([event['tags'], event['user-variables']], [['orders', 'Receipts'], { order: 17 }])
      if (event['event'] !== 'accepted') continue
      assert.equal(event['method'], 'smtp')
      assert.match(String(event['originating-ip']), /^127\./)
      assert.ok(!('api-key-id' in event))
    }
  })
})

test('no TLS, a wrong password, no login, an option that cannot be used: the replies of the contract', async (t) => {
  const { sink, service, login } = await start(t)
  const plain = await openDialogue(t, listenerOf(service))
  await plain.reply()
  assert.doesNotMatch((await plain.say('EHLO app.example')) ?? '', /AUTH/)
  const auth = `AUTH PLAIN ${plainLogin(login, PASSWORD)}`
  assert.equal(await plain.say(auth), '538 5.7.11 Encryption required')
  // Treated as a server that returns mail, which may write to nobody else.
  assert.equal(await plain.say('MAIL FROM:<a@example.com>'), '250 2.1.0 OK')
  assert.equal(await plain.say('RCPT TO:<ann@example.org>'), '550 5.7.1 Relaying denied')
  assert.equal(await plain.say('DATA'), '503 5.5.1 No recipients')
  await plain.say('STARTTLS')
  await plain.secure()
  await plain.say('EHLO app.example')
  const failed = '535 5.7.8 Authentication failed'
  assert.equal(await plain.say(`AUTH PLAIN ${plainLogin(login, 'wrong')}`), failed)
  assert.equal(await plain.say(`AUTH PLAIN ${plainLogin('app@other.example', PASSWORD)}`), failed)
  assert.equal(await plain.say(`AUTH PLAIN ${plainLogin('api', service.key)}`), failed)
  assert.equal(await plain.say(auth), '235 2.7.0 Authentication successful')
  const say = async (message: string) => {
    assert.match((await plain.say('MAIL FROM:<a@example.com>')) ?? '', /^250/)
    assert.match((await plain.say('RCPT TO:<ann@example.org>')) ?? '', /^250/)
    assert.match((await plain.say('DATA')) ?? '', /^354/)
    return plain.say(`${message}\r\n.`)
  }
  assert.equal(await say('Subject: x\r\n\r\nb'), '554 5.6.0 cannot parse from address')
  assert.equal(
    await say('From: a@example.com\r\nX-Service-Track: maybe\r\n\r\nb'),
    "554 5.6.0 'maybe' is not a valid value for o:tracking",
  )
  assert.equal(
    await say('From: a@example.com\r\nX-Service-Sending-Ip: 192.0.2.1\r\n\r\nb').then((reply) =>
      reply?.slice(0, 4),
    ),
    '550 ',
  )
  assert.match((await say('From: a@example.com\r\nSubject: good\r\n\r\nb')) ?? '', /^250 2\.0\.0 Queued </)
  await sink.waitFor(1)
  assert.equal(sink.messages.length, 1)
})

test('the domain of the login sends, whatever From contains; deleting the credential ends the session', async (t) => {
  const { sink, service, login } = await start(t)
  const other = 'other.example'
  const made = await service.call('POST', '/v4/domains', { json: { name: other } })
  assert.equal(made.status, 200, made.text)
  const connection = await connect(service, login, PASSWORD)
  t.after(() => connection.close())
  const send = (to: string) =>
    submit(connection, {
      returnPath: `a@${other}`,
      recipients: [to],
      message: { headers: [`From: a@${other}`, `To: ${to}`, 'Subject: S'], body: [Buffer.from('b\r\n')] },
    })
  assert.equal((await send('ann@example.org')).data?.code, 250)
  const [mail] = await sink.waitFor(1)
  const raw = mail?.raw.toString() ?? ''
  assert.match(raw, new RegExp(`^DKIM-Signature:[^]*?d=${service.domain.replaceAll('.', '\\.')};`, 'm'))
  assert.equal((await service.events('', other)).length, 0)
  assert.ok((await service.events()).length > 0)
  const gone = await service.call('DELETE', `/v3/domains/${service.domain}/credentials/app`)
  assert.equal(gone.status, 200, gone.text)
  await assert.rejects(send('ben@example.org'), /421|credential/i)
})
