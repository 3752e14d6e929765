/** Mail received for routes: a real SMTP client sends it in, real receivers take what the routes make of it. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { createTransport, type SendMailOptions } from 'nodemailer'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { type PostedForm, postedForm } from '../support/posted-form.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { openDialogue } from '../support/smtp-dialogue.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

interface Rig {
  service: TestService
  receiver: Receiver
  sink: Sink
  send(mail: SendMailOptions): Promise<unknown>
}

async function start(
  t: TestContext,
  env: Record<string, string> = {},
  database: 'sqlite' | 'postgres' = 'sqlite',
): Promise<Rig> {
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver({ host: ownAddress() })
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_SMTP_PORT: '0',
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
      SENDWRIGHT_DNS: '127.0.0.1:9',
      ...env,
    },
    { database },
  )
  t.after(async () => {
    await sink.close()
    await receiver.close()
  })
  return { service, receiver, sink, send: (mail) => sendTo(service, mail) }
}

async function sendTo(service: TestService, mail: SendMailOptions): Promise<unknown> {
  const { smtp } = service.service
  const transport = createTransport({
    host: service.config.smtpHost,
    port: smtp.port,
    tls: { rejectUnauthorized: false },
  })
  try {
    return await transport.sendMail(mail)
  } finally {
    transport.close()
  }
}

const route = async ({ service }: Rig, expression: string, action: string | string[], priority = '0') => {
  const answer = await service.call('POST', '/v3/routes', { form: { expression, action, priority } })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.route
}

const nthPost = async ({ receiver }: Rig, count = 1): Promise<PostedForm> => {
  const post = await eventually(`post ${count}`, async () => receiver.posts[count - 1])
  return postedForm(post)
}

const signingKey = async ({ service }: Rig): Promise<string> =>
  (await service.call('GET', '/v5/accounts/http_signing_key')).body.http_signing_key

/** An event whose members are read freely. */
type Shown = Record<string, Record<string, unknown>>

const eventsOf = async ({ service }: Rig, event: string, count: number) =>
  eventually(`${count} ${event} events`, async () => {
    const events = await service.events(`?event=${event}`)
    return events.length === count && (events as unknown as [Shown, ...Shown[]])
  })

const REPLY =
  'Yes, on Monday.\n\nOn Tue, 2 Jun 2026 at 10:00, Shop <shop@example.com> wrote:\n> Shall we?\n> Shop\n'

eachDatabase((database) => {
  test('a message is posted with every field, signed, and can be read', async (t) => {
    const rig = await start(t, {}, database)
    const { service, receiver, send } = rig
    const to = `orders+17@${service.domain}`
    const url = `http://user:pass@${receiver.host}:${receiver.port}/in/\\g<number>`
    const made = await route(rig, 'match_recipient("orders\\+(?P<number>\\d+)@")', [
      `forward("${url}")`,
      'store()',
    ])
    await send({
      envelope: { from: 'bounces@example.org', to },
      from: 'Änne <anne@example.org>',
      to,
      subject: 'Grüße',
      text: REPLY,
      html: '<p>Yes, on Monday.</p><div class="gmail_quote">Shall we?</div><img src="cid:logo">',
      headers: { 'X-Custom': ['one', 'two'] },
      messageId: '<m1@example.org>',
      attachments: [
        { filename: 'preis "1".pdf', content: Buffer.from([1, 2, 0, 255]), contentType: 'application/pdf' },
        { filename: 'logo.png', content: 'png', cid: 'logo', contentType: 'image/png' },
        {
          content: 'BEGIN:VCALENDAR',
          contentType: 'text/calendar',
          contentDisposition: 'inline',
          filename: false,
        },
      ],
    })
    const form = await nthPost(rig)
    const [post] = receiver.posts
    assert.equal(post?.path, '/in/17')
    assert.equal(post?.headers.authorization, `Basic ${Buffer.from('user:pass').toString('base64')}`)
    assert.match(String(post?.headers['user-agent']), /^Sendwright\/\d/)
    assert.equal(post?.headers['content-length'], String(post?.raw.length))
    const fields: Record<string, string> = {
      recipient: to,
      sender: 'bounces@example.org',
      from: 'Änne <anne@example.org>',
      subject: 'Grüße',
      'stripped-text': 'Yes, on Monday.',
      'stripped-signature': '',
      'body-calendar': 'BEGIN:VCALENDAR',
      'attachment-count': '2',
      'content-id-map': '{"<logo>":"attachment-1"}',
      From: 'Änne <anne@example.org>',
      'Message-Id': '<m1@example.org>',
      'Mime-Version': '1.0',
      'X-Service-Incoming': 'Yes',
      'X-Envelope-From': '<bounces@example.org>',
    }
    for (const [name, value] of Object.entries(fields)) assert.equal(form.text(name), value, name)
    assert.equal(form.text('body-plain')?.replaceAll('\r\n', '\n'), REPLY)
    assert.match(form.text('body-html') ?? '', /gmail_quote/)
    assert.match(form.text('stripped-html') ?? '', /^<p>Yes, on Monday.<\/p>(?!.*Shall we)/)
    assert.deepEqual(form.texts('X-Custom'), ['one', 'two'])
    const pdf = form.file('attachment-2')
    assert.deepEqual([pdf.name, pdf.type], ['preis "1".pdf', 'application/pdf'])
    assert.deepEqual([...new Uint8Array(await pdf.arrayBuffer())], [1, 2, 0, 255])
    assert.deepEqual(
      [form.file('attachment-1').name, form.file('attachment-1').type],
      ['logo.png', 'image/png'],
    )
    const headers = JSON.parse(form.text('message-headers') ?? '') as [string, string][]
    assert.deepEqual(headers.slice(0, 2), [
      ['X-Service-Incoming', 'Yes'],
      ['X-Envelope-From', '<bounces@example.org>'],
    ])
    assert.match(
      headers[2]?.join(': ') ?? '',
      /^Received: from .+ \(\[127\..+\]\) by mail\.test\.example with ESMTPS id /,
    )
    assert.ok(headers.some(([name, value]) => name === 'Subject' && value === 'Grüße'))
    assert.ok(
      headers.some(
        ([name, value]) => name === 'Authentication-Results' && value.startsWith('mail.test.example;'),
      ),
    )
    for (const absent of ['event', 'attachments', 'message-url', 'body-mime', 'X-Service-Spf'])
      assert.deepEqual(form.texts(absent), [], absent)

    const names = form.fields.map(([name]) => name)
    assert.deepEqual(names.slice(-3), ['timestamp', 'token', 'signature'])
    const [timestamp, token] = [form.text('timestamp') as string, form.text('token') as string]
    assert.match(token, /^[0-9a-f]{50}$/)
    const signature = createHmac('sha256', await signingKey(rig))
      .update(timestamp + token)
      .digest('hex')
    assert.equal(form.text('signature'), signature)

    const [accepted] = await eventsOf(rig, 'accepted', 1)
    assert.deepEqual(accepted?.['flags'], {
      'is-authenticated': false,
      'is-routed': true,
      'is-test-mode': false,
    })
    const { method, recipient, routes, envelope } = accepted as Record<string, unknown>
    assert.deepEqual([method, recipient], ['smtp', to])
    assert.deepEqual(envelope, { sender: 'bounces@example.org', targets: to, transport: 'smtp' })
    assert.deepEqual(routes, [
      {
        id: made.id,
        priority: 0,
        description: '',
        expression: made.expression,
        actions: [made.actions[0].replace('user:pass@', 'user:****@'), 'store()'],
        match: { recipient: to },
      },
    ])
    const [delivered] = await eventsOf(rig, 'delivered', 1)
    assert.equal(delivered['flags']?.['is-routed'], true)
    assert.equal(delivered['envelope']?.['transport'], 'http')
    assert.equal(delivered['envelope']?.['targets'], url.replace('pass', '****').replace('\\g<number>', '17'))
    assert.equal(delivered['delivery-status']?.['code'], 200)
    const [stored] = await eventsOf(rig, 'stored', 1)
    const read = await service.call('GET', new URL(String(stored['storage']?.['url'])).pathname)
    assert.equal(read.status, 200, read.text)
    assert.deepEqual(
      [read.body.recipients, read.body.subject, read.body.sender],
      [to, 'Grüße', 'bounces@example.org'],
    )
    assert.equal(read.body['stripped-text'], 'Yes, on Monday.')
    const stats = await eventually('the counters', async () => {
      const { body } = await service.call(
        'GET',
        `/v3/${service.domain}/stats/total?event=accepted&event=delivered&event=stored`,
      )
      const [all] = [body.stats?.at(-1)]
      return all?.stored?.total === 1 && all.delivered.http === 1 && all
    })
    assert.deepEqual([stats.accepted.incoming, stats.accepted.outgoing, stats.delivered.http], [1, 0, 1])
  })
})

test('a URL that ends with mime gets the whole message', async (t) => {
  const rig = await start(t)
  await route(rig, 'catch_all()', `forward("${rig.receiver.url}/raw.mime")`)
  const raw =
    'From: a@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nX-Service-Sid: forged\r\n\r\nHi\r\n..dots\r\n'
  await rig.send({ envelope: { from: '', to: `x@${rig.service.domain}` }, raw })
  const form = await nthPost(rig)
  const names = form.fields.map(([name]) => name)
  const fields = ['recipient', 'sender', 'from', 'subject', 'message-headers', 'body-mime']
  assert.deepEqual(names, [...fields, 'timestamp', 'token', 'signature'])
  assert.deepEqual([form.text('sender'), form.text('subject')], ['', 'Grüße'])
  const mime = form.text('body-mime') ?? ''
  assert.match(mime, /^X-Service-Incoming: Yes\r\nX-Envelope-From: <>\r\nReceived: from /)
  assert.ok(
    mime.endsWith('\r\nFrom: a@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHi\r\n..dots\r\n'),
    mime,
  )
})

test('a stored message is announced, with links to its files', async (t) => {
  const rig = await start(t)
  await route(rig, 'catch_all()', `store(notify="${rig.receiver.url}/cb")`)
  await rig.send({
    envelope: { from: 'a@example.org', to: `x@${rig.service.domain}` },
    from: 'a@example.org',
    subject: 'One file',
    text: '1 < 2',
    attachments: [{ filename: 'a.bin', content: Buffer.alloc(300_000, 7), cid: 'c1' }],
  })
  const form = await nthPost(rig)
  assert.equal(form.text('domain'), rig.service.domain)
  assert.equal(form.text('stripped-html'), '<p>1 &lt; 2</p>')
  assert.equal(form.texts('attachment-1').length, 0)
  const [file] = JSON.parse(form.text('attachments') ?? '')
  const messageUrl = form.text('message-url') ?? ''
  assert.deepEqual(file, {
    url: `${messageUrl}/attachments/0`,
    'content-type': 'application/octet-stream',
    name: 'a.bin',
    size: 300_000,
  })
  assert.deepEqual(JSON.parse(form.text('content-id-map') ?? ''), { '<c1>': file.url })
  assert.equal((await rig.service.call('GET', new URL(messageUrl).pathname)).body.subject, 'One file')
  const bytes = await fetch(new URL(new URL(file.url).pathname, rig.service.url), {
    headers: { authorization: `Basic ${Buffer.from(`api:${rig.service.key}`).toString('base64')}` },
  })
  assert.deepEqual(Buffer.from(await bytes.arrayBuffer()), Buffer.alloc(300_000, 7))
  const [delivered] = await eventsOf(rig, 'delivered', 1)
  assert.equal(delivered['flags']?.['is-callback'], true)
})

test('a large message is posted whole', async (t) => {
  const rig = await start(t)
  await route(rig, 'catch_all()', `forward("${rig.receiver.url}/in")`)
  const files = [3, 5].map((size, at) => ({
    filename: `f${at}`,
    content: Buffer.alloc(size * 1_000_000, at + 1),
  }))
  await rig.send({
    envelope: { from: 'a@example.org', to: `x@${rig.service.domain}` },
    from: 'a@example.org',
    text: 'Two files',
    attachments: files,
  })
  const form = await nthPost(rig)
  for (const [at, { content }] of files.entries()) {
    const file = form.file(`attachment-${at + 1}`)
    assert.ok(Buffer.from(await file.arrayBuffer()).equals(content), `file ${at}`)
  }
})

test('a message is forwarded by mail as it came, and failures return to the service', async (t) => {
  const rig = await start(t)
  const made = await route(rig, 'match_recipient("(.*)@")', 'forward("\\1@example.net, boss@example.net")')
  const raw =
    'From: Anne <anne@example.org>\r\nSubject: =?utf-8?b?w6Q=?=\r\nDKIM-Signature: v=1; d=example.org\r\nList-Unsubscribe: <mailto:u@example.org>\r\n\r\n<a href="https://example.org">x</a>\r\n'
  await rig.send({ envelope: { from: 'anne@example.org', to: `bob@${rig.service.domain}` }, raw })
  await rig.sink.waitFor(2)
  const targets = rig.sink.messages.map(({ envelope }) => envelope.to[0]).sort()
  assert.deepEqual(targets, ['bob@example.net', 'boss@example.net'])
  for (const { envelope, raw: sent } of rig.sink.messages) {
    assert.match(envelope.from, new RegExp(`^bounce\\+[a-z2-7]{39}@${rig.service.domain}$`))
    const text = sent.toString()
    assert.ok(text.endsWith(`\r\n${raw}`), text)
    const added = text.slice(0, -raw.length)
    assert.match(added, new RegExp(`^X-Service-Forwarded: ${made.id}\r\n`))
    assert.doesNotMatch(added, /^(?:DKIM-Signature|Mime-Version|X-Service-Sid|X-Service-Sending-Ip)/im)
  }
  const [delivered] = await eventsOf(rig, 'delivered', 2)
  assert.equal(delivered['flags']?.['is-routed'], true)
  assert.equal(delivered['envelope']?.['transport'], 'smtp')
})

test('forwarded mail is not sent to addresses that bounced; complaints and unsubscribes do not stop it', async (t) => {
  const rig = await start(t)
  const { service, sink } = rig
  await route(rig, 'catch_all()', 'forward("gone@example.net, left@example.net, angry@example.net")')
  const lists = { bounces: 'gone', unsubscribes: 'left', complaints: 'angry' }
  for (const [list, local] of Object.entries(lists)) {
    const form = { address: `${local}@example.net` }
    assert.equal((await service.call('POST', `/v3/${service.domain}/${list}`, { form })).status, 200)
  }
  const raw = 'From: anne@example.org\r\n\r\nx\r\n'
  await rig.send({ envelope: { from: 'anne@example.org', to: `bob@${service.domain}` }, raw })
  const [failed] = await eventsOf(rig, 'failed', 1)
  assert.deepEqual([failed['recipient'], failed['reason']], ['gone@example.net', 'suppress-bounce'])
  await sink.waitFor(2)
  assert.deepEqual(sink.messages.map(({ envelope }) => envelope.to[0]).sort(), [
    'angry@example.net',
    'left@example.net',
  ])
})

test('only mail that a route wants is taken, and nothing is relayed', async (t) => {
  const rig = await start(t)
  const { service } = rig
  const { domain } = service
  const other = (await service.call('POST', '/v4/domains', { form: { name: 'unverified.example' } })).body
  assert.ok(other)
  await route(rig, 'match_recipient("bob@") and match_header("subject", "yes")', 'store()')
  const client = await openDialogue(t, { host: service.config.smtpHost, port: service.service.smtp.port })
  const say = (line: string) => client.say(line)
  await client.reply()
  await say('EHLO client.example')
  await say('MAIL FROM:<a@example.org>')
  assert.equal(await say(`RCPT TO:<alice@${domain}>`), '550 5.1.1 Recipient not found')
  assert.equal(await say('RCPT TO:<bob@unverified.example>'), '550 5.1.1 Recipient not found')
  assert.equal(await say(`RCPT TO:<bob@sub.${domain}>`), '550 5.7.1 Relaying denied')
  assert.equal(await say('RCPT TO:<bob@example.net>'), '550 5.7.1 Relaying denied')
  assert.equal(await say(`RCPT TO:<BOB@${domain.toUpperCase()}>`), '250 2.1.5 OK')
  await say('DATA')
  assert.equal(await say('Subject: no\r\n\r\nx\r\n.'), '550 5.1.1 Recipient not found')
  await say('MAIL FROM:<a@example.org>')
  await say(`RCPT TO:<bob@${domain}>`)
  await say('DATA')
  assert.equal(await say('Subject: Yes\r\n\r\nx\r\n.'), '250 2.0.0 Received')
  await eventsOf(rig, 'stored', 1)
  assert.equal(rig.sink.messages.length, 0)
})
