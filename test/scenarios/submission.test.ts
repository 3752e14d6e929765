/** SMTP submission through the whole service: real clients, the contract's replies, options as headers, no relaying. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import nodemailer from 'nodemailer'
import { malformedMessages } from '../support/malformed-mime.ts'
import { eventually, startTestService, TEST_KEY, type TestService } from '../support/service.ts'
import { type Dialogue, openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

const PASSWORD = 'correct-horse'
const PORT = 2525

let service: TestService
let login: string

before(async (t) => {
  service = await startTestService(t as TestContext)
  login = await withPassword(service)
})

/** Sets the password of the sandbox's own login. */
async function withPassword(of: TestService): Promise<string> {
  const path = `/v3/domains/${of.domain}/credentials/postmaster`
  assert.equal((await of.call('PUT', path, { form: { password: PASSWORD } })).status, 200)
  return `postmaster@${of.domain}`
}

async function connect(t: TestContext, to = service): Promise<Dialogue> {
  const client = await openDialogue(t, { host: to.config.host, port: PORT })
  assert.match((await client.reply()) ?? '', /^220 mail\.test\.example /)
  await client.say('EHLO client.example')
  return client
}

async function logIn(t: TestContext, to = service, user = login, password = PASSWORD): Promise<Dialogue> {
  const client = await connect(t, to)
  assert.match((await client.say(`AUTH PLAIN ${plainLogin(user, password)}`)) ?? '', /^235 2\.7\.0/)
  return client
}

interface Mail {
  headers?: readonly string[]
  body?: string
  recipients?: readonly string[]
}

/** Submits and returns the reply to the final dot. */
async function submit(client: Dialogue, mail: Mail | Buffer): Promise<string> {
  const {
    headers = [],
    body = 'Hello\r\n',
    recipients = ['alice@example.org'],
  } = Buffer.isBuffer(mail) ? {} : mail
  assert.match((await client.say('MAIL FROM:<>')) ?? '', /^250/)
  for (const recipient of recipients) assert.match((await client.say(`RCPT TO:<${recipient}>`)) ?? '', /^250/)
  assert.match((await client.say('DATA')) ?? '', /^354/)
  const from = headers.some((header) => /^from:/i.test(header)) ? [] : [`From: Shop <shop@${service.domain}>`]
  const raw = Buffer.isBuffer(mail)
    ? mail.toString('latin1')
    : `${[...from, ...headers].join('\r\n')}\r\n\r\n${body}`
  client.write(Buffer.from(`${raw.replace(/^\./gm, '..')}.\r\n`, 'latin1'))
  return (await client.reply()) ?? 'closed'
}

/** The Message-Id in the reply, without brackets. */
function idIn(answer: string): string {
  const id = /^250 2\.0\.0 Queued <([^>]+)>$/.exec(answer)?.[1]
  assert.ok(id, answer)
  return id
}

type Event = Record<string, unknown> & { event: string }

const eventsOf = async (id: string) => (await service.events(`?message-id=${id}`)) as Event[]

const awaitEvent = (id: string, name: string) =>
  eventually(`${name} of ${id}`, async () => (await eventsOf(id)).find(({ event }) => event === name))

/** The mail as received by the server. */
async function received(id: string): Promise<string> {
  await awaitEvent(id, 'delivered')
  const list = await service.call('GET', '/sendwright/v1/inbox')
  for (const item of list.body.items) {
    const { text } = await service.call('GET', `/sendwright/v1/inbox/${item.id}/raw`)
    if (text.includes(`<${id}>`)) return text
  }
  throw new Error(`${id} is not in the inbox`)
}

test('nodemailer submits with AUTH over STARTTLS; events have method and client', async () => {
  const transport = nodemailer.createTransport({
    host: service.config.host,
    port: PORT,
    requireTLS: true,
    auth: { user: login, pass: PASSWORD },
    tls: { rejectUnauthorized: false },
  })
  const info = await transport.sendMail({
    from: `Shop <shop@${service.domain}>`,
    to: 'alice@example.org',
    bcc: 'bob@example.net',
    subject: 'Grüße',
    text: 'Hello\n.\nend',
    html: '<p>Hello</p>',
    attachments: [{ filename: 'large.bin', content: Buffer.alloc(300_000, 7) }],
  })
  transport.close()
  const id = idIn(info.response ?? '')
  assert.equal(`<${id}>`, info.messageId)
  const accepted = (await eventsOf(id)).filter(({ event }) => event === 'accepted')
  assert.deepEqual(accepted.map(({ recipient }) => recipient).sort(), [
    'alice@example.org',
    'bob@example.net',
  ])
  for (const event of accepted) {
    assert.equal(event['method'], 'smtp')
    assert.equal(event['originating-ip'], '127.0.0.1')
    assert.equal(event['api-key-id'], undefined)
  }
  assert.match(await received(id), /^Subject: =\?UTF-8\?/im)
})

test('the body arrives byte for byte; Bcc is removed, missing fields are added', async (t) => {
  const client = await logIn(t)
  const body = '.leading dot\r\n..\r\n\ttab and blanks  \r\n\r\n\r\nlast\r\n'
  const headers = ['To: list@example.org', 'Bcc: secret@example.org', 'X-Folded: a\r\n\tb', 'Subject: exact']
  const answer = await submit(client, {
    headers,
    body,
    recipients: ['alice@example.org', 'ALICE@example.org'],
  })
  const mail = await received(idIn(answer))
  assert.equal(mail.slice(mail.indexOf('\r\n\r\n') + 4), body)
  assert.match(mail, /\r\nX-Folded: a\r\n\tb\r\n/)
  assert.doesNotMatch(mail, /secret/)
  for (const name of ['Date', 'Message-Id', 'Mime-Version'])
    assert.match(mail, new RegExp(`^${name}: `, 'im'))
  const accepted = (await eventsOf(idIn(answer))).filter(({ event }) => event === 'accepted')
  assert.equal(accepted.length, 1, 'doubled recipients count once')
})

test('option headers of either prefix take effect, and are removed or rewritten', async (t) => {
  const client = await logIn(t)
  const headers = [
    'x-mailgun-tag: a, b',
    'X-Service-Tag: second',
    'X-Mailgun-Variables: {"n": 1,\r\n "deep": {"x": true}}',
    'X-Service-Variables: {"m": "two"}',
    'X-Mailgun-Track: no',
    'X-Service-Unknown: stays',
    'X-Service-Deliver-Within: 1h30m',
    'X-Service-Dkim: yes',
  ]
  const id = idIn(await submit(client, { headers }))
  const accepted = await awaitEvent(id, 'accepted')
  assert.deepEqual(accepted['tags'], ['a, b', 'second'])
  assert.deepEqual(accepted['user-variables'], { n: 1, deep: { x: true }, m: 'two' })
  const mail = await received(id)
  assert.match(mail, /^X-Service-Tag: a, b\r\nX-Service-Tag: second\r$/m)
  assert.match(mail, /^X-Service-Unknown: stays\r$/m)
  assert.doesNotMatch(mail, /X-Mailgun-|-Track:|Deliver-Within|-Dkim:/i)
})

test('test mode, batch mode and the container by headers', async (t) => {
  const client = await logIn(t)
  const dropped = await submit(client, { headers: ['X-Service-Drop-Message: yes'] })
  const delivered = await awaitEvent(idIn(dropped), 'delivered')
  assert.equal((delivered['delivery-status'] as { code: number }).code, 650)
  const inner = ['To: %recipient%', 'Subject: Hi %recipient.name%'].join('\r\n')
  const variables = '{"alice@example.org": {"name": "Alice"}}'
  const container = [
    `--b\r\nContent-Type: application/json\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(variables).toString('base64')}`,
    `--b\r\nContent-Type: message/rfc822\r\n\r\nFrom: shop@${service.domain}\r\n${inner}\r\n\r\nNews\r\n--b--\r\n`,
  ].join('\r\n')
  const batch = await submit(client, {
    headers: ['Content-Type: multipart/mailgun-variables; boundary=b'],
    body: container,
  })
  const mail = await received(idIn(batch))
  assert.match(mail, /^To: alice@example\.org\r$/m)
  assert.match(mail, /^Subject: Hi Alice\r$/m)
})

const big = 'x'.repeat(1_000)
const REFUSED: [name: string, mail: Mail, reply: string | RegExp][] = [
  [
    'two From',
    { headers: ['From: a@example.com', 'From: b@example.com'] },
    '554 5.6.0 cannot parse from address',
  ],
  ['a bad From', { headers: ['From: nobody'] }, '554 5.6.0 cannot parse from address'],
  ['too many fields', { headers: Array(2_000).fill('X: y') }, '554 5.6.0 cannot parse message'],
  [
    'options over 16 KB',
    { headers: Array.from({ length: 17 }, (_, index) => `X-Service-Variables: {"${index}": "${big}"}`) },
    '554 5.6.0 Send options (parameters starting with o:, h:, or v:) are limited to 16KB total',
  ],
  [
    'Secondary-DKIM',
    { headers: ['X-Service-Secondary-DKIM: nope'] },
    '554 5.6.0 nope is not a valid secondary dkim domain name',
  ],
  [
    'Deliver-By',
    { headers: ['X-Service-Deliver-By: soon'] },
    '554 5.6.0 soon is not an RFC-2822 compliant date',
  ],
  [
    'Deliver-Within',
    { headers: ['X-Service-Deliver-Within: 1m'] },
    '554 5.6.0 o:deliver-within must be between 5m and 24h, for example 1h30m',
  ],
  [
    'STO',
    { headers: ['X-Service-Delivery-Time-Optimize-Period: x'] },
    '554 5.6.0 invalid delivery time format',
  ],
  ['TZO', { headers: ['X-Service-Time-Zone-Localize: 25:00'] }, /^554 5\.6\.0 25:00 .*time/],
  [
    'Archive-To',
    { headers: ['X-Service-Archive-To: ftp://x'] },
    "554 5.6.0 ftp://x is not a valid url (value of 'o:archive-to')",
  ],
  ['Variables', { headers: ['X-Service-Variables: [1]'] }, /^554 5\.6\.0 .*is not a valid JSON/],
  [
    'Recipient-Variables',
    { headers: ['X-Service-Recipient-Variables: {'] },
    "554 5.6.0 'recipient-variables' parameter is not a valid JSON",
  ],
  ['Template-Name', { headers: ['X-Service-Template-Name: none'] }, "554 5.6.0 template 'none' not found"],
  [
    'Sending-Ip',
    { headers: ['X-Service-Sending-Ip: 192.0.2.1'] },
    "550 5.7.1 Rejected: IP 192.0.2.1 can't be used to send the message",
  ],
  [
    'Sending-Ip-Pool',
    { headers: ['X-Service-Sending-Ip-Pool: p'] },
    "554 5.6.0 p is not a valid IP pool (value of 'o:sending-ip-pool')",
  ],
  ['Track', { headers: ['X-Service-Track: maybe'] }, /^554 5\.6\.0 .*maybe/],
  ['Require-TLS', { headers: ['X-Service-Require-TLS: maybe'] }, /^554 5\.6\.0 .*maybe/],
  [
    'a container of one part',
    { headers: ['Content-Type: multipart/mailgun-variables; boundary=b'], body: '--b\r\n\r\nx\r\n--b--\r\n' },
    '554 5.6.0 malformed multipart',
  ],
  ['a loop', { headers: Array(50).fill('Received: from a by b') }, '554 5.4.6 Routing loop'],
]

test('every refusal of the contract, and none of them queues anything', async (t) => {
  const client = await logIn(t)
  const accepted = async () => (await service.events('?event=accepted&limit=300')).length
  const before = await accepted()
  for (const [name, mail, reply] of REFUSED) {
    const answer = await submit(client, mail)
    if (typeof reply === 'string') assert.equal(answer, reply, name)
    else assert.match(answer, reply, name)
  }
  assert.equal(await accepted(), before)
  assert.match(await submit(client, {}), /^250/, 'the session continues')
})

test('logins: full addresses and their own passwords only; a deleted one ends at the next MAIL FROM', async (t) => {
  const path = `/v3/domains/${service.domain}/credentials`
  await service.call('POST', path, { form: { login: 'bob', password: PASSWORD } })
  const client = await connect(t)
  for (const [user, password] of [
    ['bob', PASSWORD],
    [login, TEST_KEY],
  ] as const) {
    const answer = await client.say(`AUTH PLAIN ${plainLogin(user, password)}`)
    assert.equal(answer, '535 5.7.8 Authentication failed')
  }
  const bob = await logIn(t, service, `BOB@${service.domain}`)
  assert.match(await submit(bob, {}), /^250/)
  await service.call('DELETE', `${path}/bob`)
  assert.equal(await bob.say('MAIL FROM:<>'), '421 4.7.0 The credential has changed')
  assert.equal(await bob.reply(), null)
})

test('a domain that may not send yet gets the reason at MAIL FROM; plain-text logins can be forbidden', async (t) => {
  const direct = await startTestService(t, {
    SENDWRIGHT_DELIVERY: 'smtp://127.0.0.1:9',
    SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: 'no',
    SENDWRIGHT_SMTPS_PORT: '4650',
  })
  const form = { name: 'new.example', smtp_password: PASSWORD }
  assert.equal((await direct.call('POST', '/v4/domains', { form })).status, 200)
  const plain = await connect(t, direct)
  const auth = `AUTH PLAIN ${plainLogin('postmaster@new.example', PASSWORD)}`
  assert.equal(await plain.say(auth), '538 5.7.11 Encryption required')
  const { host } = direct.config
  const client = await openDialogue(t, { host, port: 4650, implicitTls: true })
  await client.reply()
  await client.say('EHLO client.example')
  assert.match((await client.say(auth)) ?? '', /^235/)
  assert.equal(
    await client.say('MAIL FROM:<>'),
    '550 5.7.1 Domain new.example is not allowed to send: The domain is unverified and requires DNS configuration. Log in to your control panel to view required DNS records.',
  )
})

test('on PostgreSQL it is the same', async (t) => {
  const other = await startTestService(t, {}, { database: 'postgres' })
  const client = await logIn(t, other, await withPassword(other))
  const headers = [`From: shop@${other.domain}`, 'X-Service-Tag: one']
  const id = idIn(await submit(client, { headers, recipients: ['a@example.org', 'b@example.org'] }))
  const accepted = await other.events(`?message-id=${id}&event=accepted`)
  assert.deepEqual(accepted.map(({ recipient }) => recipient).sort(), ['a@example.org', 'b@example.org'])
})

const RELAY_SENDERS = [
  '<>',
  '<a@elsewhere.example>',
  '<postmaster>',
  '<a@localhost>',
  '<a@[127.0.0.1]>',
  'DOMAIN',
]
const RELAY_RECIPIENTS = [
  '<victim@elsewhere.example>',
  '<victim%elsewhere.example@DOMAIN>',
  '<victim@elsewhere.example@DOMAIN>',
  '<"victim@elsewhere.example">',
  '<"victim@elsewhere.example"@DOMAIN>',
  '<elsewhere.example!victim>',
  '<elsewhere.example!victim@DOMAIN>',
  '<@DOMAIN:victim@elsewhere.example>',
  '<victim@[192.0.2.1]>',
  '<victim%elsewhere.example@[127.0.0.1]>',
  'victim@elsewhere.example',
]

test('nobody relays without a login: the classic forms (R35)', async (t) => {
  let forms = 0
  for (const sender of RELAY_SENDERS) {
    for (const recipient of RELAY_RECIPIENTS) {
      const client = await connect(t)
      const from = sender === 'DOMAIN' ? `<postmaster@${service.domain}>` : sender
      const to = recipient.replace('DOMAIN', service.domain)
      // Returned mail needs no login, so MAIL FROM is accepted; only our own addresses are recipients.
      assert.match((await client.say(`MAIL FROM:${from}`)) ?? '', /^(?:250|501) /)
      assert.match((await client.say(`RCPT TO:${to}`)) ?? '', /^(?:550 5\.7\.1|550 5\.1\.1|503|501) /)
      assert.match((await client.say('DATA')) ?? '', /^503 /)
      client.destroy()
      forms++
    }
  }
  assert.ok(forms >= 30)
})

test('malformed MIME: every message gets a reply, and the service keeps running', async (t) => {
  const client = await logIn(t)
  const codes = new Map<string, number>()
  for (const raw of malformedMessages(250, 30)) {
    const code = (await submit(client, raw)).slice(0, 9)
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }
  assert.deepEqual(
    [...codes.keys()].filter((code) => !/^(?:250 2\.0\.0|554 5\.6\.0|554 5\.4\.6)$/.test(code)),
    [],
  )
  assert.match(await submit(client, {}), /^250/)
})
